/** Lines of JSON out of a body that goes on. It is read as its lines are taken, so that a slow reader holds one chunk. */
import { isObject, noAnswer, type Problem, SkerryError, wrongAnswer } from "./errors.ts";
import type { Host } from "./host.ts";

/** The broker shows no record whose text is longer than half of this. */
const LINE_CHARS_MAX = 67_108_864;

export class JsonLines {
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>;
  readonly #host: Host;
  readonly #idleMs: number;
  readonly #decoder = new TextDecoder();
  #lines: string[] = [];
  #at = 0;
  /** The beginning of a line. */
  #rest = "";

  constructor(body: ReadableStream<Uint8Array>, host: Host, idleMs: number) {
    this.#reader = body.getReader();
    this.#host = host;
    this.#idleMs = idleMs;
  }

  /** Null at the end of the body, whatever stood there half. Throws SkerryError. */
  async next(): Promise<Problem | null> {
    for (;;) {
      while (this.#at < this.#lines.length) {
        const line = this.#lines[this.#at++]!;
        if (line !== "") return parsed(line);
      }
      const chunk = await this.#read();
      if (chunk === null) return null;
      this.#take(this.#decoder.decode(chunk, { stream: true }));
    }
  }

  cancel(): void {
    this.#reader.cancel().catch(() => {});
  }

  #take(text: string): void {
    const lines = text.split("\n");
    lines[0] = this.#rest + lines[0]!;
    this.#rest = lines.pop()!;
    if (this.#rest.length > LINE_CHARS_MAX) throw wrongAnswer("a line does not end");
    this.#lines = lines;
    this.#at = 0;
  }

  /** The broker says something every 15 s; time counts only while somebody reads. */
  async #read(): Promise<Uint8Array | null> {
    let isLate = false;
    const cancel = this.#host.after(this.#idleMs, () => {
      isLate = true;
      this.cancel();
    });
    try {
      const { value, done } = await this.#reader.read();
      if (isLate) throw noAnswer("timeout");
      return done ? null : value;
    } catch (error) {
      throw error instanceof SkerryError ? error : noAnswer("network", error);
    } finally {
      cancel();
    }
  }
}

function parsed(line: string): Problem {
  try {
    const value: unknown = JSON.parse(line);
    if (isObject(value)) return value;
  } catch {
    // Below.
  }
  throw wrongAnswer("a line is not a JSON object");
}
