/** Objects of JSON one behind the other, with or without space between them. */
import { badRequest } from "../../problem.ts";
import type { Splitter } from "../../produce/line_reader.ts";

const [QUOTE, BACKSLASH] = [0x22, 0x5c];
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

export class JsonObjects implements Splitter {
  #depth = 0;
  #isInText = false;
  #isEscaped = false;
  #isBroken = false;

  skip(part: Uint8Array, at: number): number {
    let next = at;
    while (next < part.length && isSpace(part[next]!)) next += 1;
    // Behind what is no object nobody can tell where the next one begins.
    if (next < part.length && this.#isBroken) {
      throw badRequest("Cannot read the body: what stands between two records is no JSON object");
    }
    return next;
  }

  /** What is no object is an item too, for what was before it has to be dealt with first. */
  end(part: Uint8Array, at: number): { readonly end: number; readonly next: number } | null {
    if (at < part.length && this.#depth === 0 && part[at] !== OPEN_OBJECT) {
      this.#isBroken = true;
      return { end: part.length, next: part.length };
    }
    for (let i = at; i < part.length; i++) {
      if (this.#isEnd(part[i]!)) return { end: i + 1, next: i + 1 };
    }
    return null;
  }

  #isEnd(byte: number): boolean {
    if (this.#isEscaped) this.#isEscaped = false;
    else if (byte === QUOTE) this.#isInText = !this.#isInText;
    else if (this.#isInText) this.#isEscaped = byte === BACKSLASH;
    else if (byte === OPEN_OBJECT || byte === OPEN_ARRAY) this.#depth += 1;
    else if (byte === CLOSE_OBJECT || byte === CLOSE_ARRAY) {
      this.#depth -= 1;
      return this.#depth === 0;
    }
    return false;
  }
}
