/**
 * Permits for the records of one read over HTTP, until the client has taken them. Large reads have a share
 * of the node's permits only, and wait for each other in front of it: a few clients that ask for much and
 * read nothing would else hold them all, and stall small reads and Kafka's.
 */
import type { Clock } from "../env/clock.ts";
import { HTTP_LARGE_READS_BYTES_MAX, HTTP_SMALL_READ_BYTES } from "../lib/limits.ts";
import { Semaphore } from "../lib/semaphore.ts";
import type { Permits } from "../broker/handler.ts";
import { takePermits } from "../http/permit_wait.ts";

export interface ReadRoom {
  /** The node's, shared with the Kafka side. */
  readonly all: Semaphore;
  readonly large: Semaphore;
}

export interface ReadRooms {
  readonly hot: ReadRoom;
  readonly cold: ReadRoom;
}

export function createReadRooms(
  { hotFetch, coldFetch }: Pick<Permits, "hotFetch" | "coldFetch">,
): ReadRooms {
  const roomOf = (all: Semaphore) => ({ all, large: new Semaphore(HTTP_LARGE_READS_BYTES_MAX) });
  return { hot: roomOf(hotFetch), cold: roomOf(coldFetch) };
}

/** What counts for so many bytes against the share of large reads. */
function largePart(bytes: number): number {
  return bytes > HTTP_SMALL_READ_BYTES ? bytes : 0;
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
    const large = largePart(bytes);
    if (large > 0) await takePermits(room.large, large, clock, { signal });
    try {
      await takePermits(room.all, bytes, clock, { signal });
    } catch (error) {
      room.large.release(large);
      throw error;
    }
    return new ReadPlace(room, bytes);
  }

  /** To so many bytes, at once or not at all. */
  tryGrow(bytes: number): boolean {
    if (bytes <= this.#bytes) return true;
    const { all, large } = this.#room;
    const more = largePart(bytes) - largePart(this.#bytes);
    if (more > 0 && !large.tryAcquire(more)) return false;
    if (!all.tryAcquire(bytes - this.#bytes)) {
      large.release(more);
      return false;
    }
    this.#bytes = bytes;
    return true;
  }

  shrink(bytes: number): void {
    const { all, large } = this.#room;
    all.release(this.#bytes - bytes);
    large.release(largePart(this.#bytes) - largePart(bytes));
    this.#bytes = bytes;
  }
}
