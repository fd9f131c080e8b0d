/**
 * Lines of a body that does not end: what has arrived, line by line. Of a line that is not complete at most
 * HTTP_STREAM_LINE_BYTES_MAX are kept, in memory that is taken once it is no longer small.
 */
import type { Clock } from "../../env/clock.ts";
import { GrowingOutput } from "../../lib/growing_output.ts";
import {
  HTTP_BODY_STALL_MS,
  HTTP_SMALL_BODY_BYTES,
  HTTP_STREAM_IDLE_MS,
  HTTP_STREAM_LINE_BYTES_MAX,
} from "../../lib/limits.ts";
import { takePermits } from "../permit_wait.ts";
import { badRequest, ProblemError } from "../problem.ts";
import { type BodyRooms, tooLarge } from "../read_body.ts";

const LINE_FEED = 0x0a;

/** Where the items of a body end. It sees all bytes once and in order, and may remember what came before. */
export interface Splitter {
  /** Where the next item begins: behind what stands between two of them. */
  skip(part: Uint8Array, at: number): number;
  /** Behind the last byte of the item, and where the next one may begin; null while it goes on. */
  end(part: Uint8Array, at: number): { readonly end: number; readonly next: number } | null;
}

const LINES: Splitter = {
  skip: (_part, at) => at,
  end(part, at) {
    const end = part.indexOf(LINE_FEED, at);
    return end < 0 ? null : { end, next: end + 1 };
  },
};

/** How the body ends: by itself, or after it has brought nothing for too long. */
export type LinesEnd = "complete" | "idle";

export class LineReader {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array> | null;
  readonly #request: Request;
  readonly #rooms: BodyRooms;
  readonly #splitter: Splitter;
  /** The beginning of a line; grown, since it may come byte by byte. */
  #pending = new GrowingOutput(HTTP_STREAM_LINE_BYTES_MAX, 0);
  #roomBytes = 0;

  constructor(request: Request, rooms: BodyRooms, splitter: Splitter = LINES) {
    this.#request = request;
    this.#rooms = rooms;
    this.#splitter = splitter;
    this.#reader = request.body?.getReader() ?? null;
  }

  /** The lines that the next part of the body completes, perhaps none. Throws ProblemError. */
  async next(): Promise<readonly Uint8Array[] | LinesEnd> {
    const part = await this.#read();
    if (part === "idle") return part;
    if (part === null) {
      const last = this.#takePending();
      return last.length > 0 ? [last] : "complete";
    }
    return await this.#split(part);
  }

  async #read(): Promise<Uint8Array | null | "idle"> {
    if (this.#reader === null) return null;
    const isWithinLine = this.#pending.length > 0;
    const limitMs = isWithinLine ? HTTP_BODY_STALL_MS : HTTP_STREAM_IDLE_MS;
    const part = await withinMs(this.#rooms.clock, limitMs, this.#reader.read());
    if (part === "late") {
      if (!isWithinLine) return "idle";
      throw new ProblemError({
        status: 408,
        title: "Request timeout",
        detail: "Cannot read the body: a line does not arrive",
      });
    }
    if (part === "broken") throw badRequest("Cannot read the body: it ended early");
    return part.done ? null : part.value;
  }

  async #split(part: Uint8Array): Promise<readonly Uint8Array[]> {
    const lines: Uint8Array[] = [];
    let at = this.#begin(part, 0);
    for (let cut = this.#splitter.end(part, at); cut !== null; cut = this.#splitter.end(part, at)) {
      lines.push(this.#complete(part.subarray(at, cut.end)));
      at = this.#begin(part, cut.next);
    }
    if (at < part.length) await this.#keep(part.subarray(at));
    return lines;
  }

  #begin(part: Uint8Array, at: number): number {
    return this.#pending.length > 0 ? at : this.#splitter.skip(part, at);
  }

  /** Most lines lie within one part, and are views of it. */
  #complete(rest: Uint8Array): Uint8Array {
    checkLength(this.#pending.length + rest.length);
    if (this.#pending.length === 0) return rest;
    this.#pending.append(rest);
    return this.#takePending();
  }

  async #keep(rest: Uint8Array): Promise<void> {
    const bytes = this.#pending.length + rest.length;
    checkLength(bytes);
    if (bytes > HTTP_SMALL_BODY_BYTES && this.#roomBytes === 0) {
      const { medium, clock } = this.#rooms;
      await takePermits(medium, HTTP_STREAM_LINE_BYTES_MAX, clock, this.#request);
      this.#roomBytes = HTTP_STREAM_LINE_BYTES_MAX;
    }
    this.#pending.append(rest);
  }

  #takePending(): Uint8Array {
    const line = this.#pending.result();
    this.#pending = new GrowingOutput(HTTP_STREAM_LINE_BYTES_MAX, 0);
    this.#rooms.medium.release(this.#roomBytes);
    this.#roomBytes = 0;
    return line;
  }

  /** Nothing is held afterwards, and nothing more is read. */
  stop(): void {
    this.#takePending();
    this.#reader?.cancel().catch(() => {});
  }
}

function checkLength(bytes: number): void {
  if (bytes <= HTTP_STREAM_LINE_BYTES_MAX) return;
  throw tooLarge(`Cannot read the body: a line has more than ${HTTP_STREAM_LINE_BYTES_MAX} bytes`);
}

/** The outcome, or that it takes longer, or that there is none. */
async function withinMs<T>(
  clock: Clock,
  ms: number,
  work: Promise<T>,
): Promise<T | "late" | "broken"> {
  return await new Promise((resolve) => {
    const cancel = clock.after(ms, () => resolve("late"));
    work.then(resolve, () => resolve("broken")).finally(cancel);
  });
}
