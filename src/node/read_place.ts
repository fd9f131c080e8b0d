/**
 * Permits for the records of one read over HTTP, until the client has taken them. Large reads have a share
 * of the node's permits only, and wait for each other in front of it: a few clients that ask for much and
 * read nothing would else hold them all, and stall small reads and Kafka's. So have live streams, of which
 * there are many.
 */
import type { Clock } from "../env/clock.ts";
import {
  HTTP_LARGE_READS_BYTES_MAX,
  HTTP_LIVE_READS_BYTES_MAX,
  HTTP_SMALL_READ_BYTES,
} from "../lib/limits.ts";
import { Semaphore } from "../lib/semaphore.ts";
import type { Permits } from "../broker/handler.ts";
import { takePermits } from "../http/permit_wait.ts";

export interface ReadRoom {
  /** The node's, shared with the Kafka side. */
  readonly all: Semaphore;
  /** For reads above `shareFrom` bytes. */
  readonly share: Semaphore;
  readonly shareFrom: number;
}

export interface ReadTemperatures {
  readonly hot: ReadRoom;
  readonly cold: ReadRoom;
}

export interface ReadRooms extends ReadTemperatures {
  readonly live: ReadTemperatures;
}

export function createReadRooms(
  { hotFetch, coldFetch }: Pick<Permits, "hotFetch" | "coldFetch">,
): ReadRooms {
  const pageRoom = (all: Semaphore): ReadRoom => ({
    all,
    share: new Semaphore(HTTP_LARGE_READS_BYTES_MAX),
    shareFrom: HTTP_SMALL_READ_BYTES,
  });
  const liveRoom = (all: Semaphore): ReadRoom => ({
    all,
    share: new Semaphore(HTTP_LIVE_READS_BYTES_MAX),
    shareFrom: 0,
  });
  return {
    hot: pageRoom(hotFetch),
    cold: pageRoom(coldFetch),
    live: { hot: liveRoom(hotFetch), cold: liveRoom(coldFetch) },
  };
}

/** What counts for so many bytes against the share. */
function sharePart({ shareFrom }: ReadRoom, bytes: number): number {
  return bytes > shareFrom ? bytes : 0;
}

/** Whoever holds permits waits for none: the share comes before the permits, and growing never waits. */
export class ReadPlace {
  readonly #room: ReadRoom;
  #bytes: number;

  private constructor(room: ReadRoom, bytes: number) {
    this.#room = room;
    this.#bytes = bytes;
  }

  /** Throws ProblemError after the wait, or once the client is gone; then nothing is held. */
  static async take(
    room: ReadRoom,
    bytes: number,
    clock: Clock,
    signal: AbortSignal,
  ): Promise<ReadPlace> {
    const shared = sharePart(room, bytes);
    if (shared > 0) await takePermits(room.share, shared, clock, { signal });
    try {
      await takePermits(room.all, bytes, clock, { signal });
    } catch (error) {
      room.share.release(shared);
      throw error;
    }
    return new ReadPlace(room, bytes);
  }

  /** Null where somebody would have to wait. */
  static tryTake(room: ReadRoom, bytes: number): ReadPlace | null {
    const place = new ReadPlace(room, 0);
    return place.tryGrow(bytes) ? place : null;
  }

  /** To so many bytes, at once or not at all. */
  tryGrow(bytes: number): boolean {
    if (bytes <= this.#bytes) return true;
    const { all, share } = this.#room;
    const more = sharePart(this.#room, bytes) - sharePart(this.#room, this.#bytes);
    if (more > 0 && !share.tryAcquire(more)) return false;
    if (!all.tryAcquire(bytes - this.#bytes)) {
      share.release(more);
      return false;
    }
    this.#bytes = bytes;
    return true;
  }

  shrink(bytes: number): void {
    const { all, share } = this.#room;
    all.release(this.#bytes - bytes);
    share.release(sharePart(this.#room, this.#bytes) - sharePart(this.#room, bytes));
    this.#bytes = bytes;
  }
}
