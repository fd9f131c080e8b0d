/** Bytes to lines, one at a time; a slow taker holds up the input. */
import { dataFault } from "../client/fault.ts";

const NEWLINE = 0x0a;

/** Ends when the signal aborts, with what is whole by then. */
export async function* untilStopped<T>(
  input: AsyncIterable<T>,
  stop: AbortSignal,
): AsyncGenerator<T, void> {
  let stopWaiting: (() => void) | null = null;
  // Not a race against one promise of the stop: that would keep all that ever won.
  stop.addEventListener("abort", () => stopWaiting?.(), { once: true });
  const source = input[Symbol.asyncIterator]();
  for (;;) {
    const next = await new Promise<IteratorResult<T, unknown> | null>((resolve, reject) => {
      if (stop.aborted) return resolve(null);
      stopWaiting = () => resolve(null);
      source.next().then(resolve, reject);
    });
    if (next === null || next.done === true) return;
    yield next.value;
  }
}

/** A line that lies in one chunk is a view of it. */
function join(pieces: readonly Uint8Array[], last: Uint8Array): Uint8Array {
  if (pieces.length === 0) return last;
  const out = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, last.length));
  let at = 0;
  for (const piece of [...pieces, last]) {
    out.set(piece, at);
    at += piece.length;
  }
  return out;
}

/** Without their line ends; a last line needs none. Lines stay as they are when the input goes on. */
export async function* linesOf(
  input: AsyncIterable<Uint8Array>,
  bytesMax: number,
): AsyncGenerator<Uint8Array, void> {
  let begun: Uint8Array[] = [];
  let begunBytes = 0;
  let number = 1;
  for await (const read of input) {
    // The reader of the input may use its memory again.
    const chunk = read.slice();
    let at = 0;
    for (;;) {
      const end = chunk.indexOf(NEWLINE, at);
      const part = chunk.subarray(at, end < 0 ? chunk.length : end);
      if (begunBytes + part.length > bytesMax) {
        throw dataFault(`Cannot take line ${number}: it is longer than ${bytesMax} bytes`);
      }
      if (end < 0) {
        begun.push(part);
        begunBytes += part.length;
        break;
      }
      yield join(begun, part);
      begun = [];
      begunBytes = 0;
      number += 1;
      at = end + 1;
    }
  }
  if (begunBytes > 0) yield join(begun, new Uint8Array(0));
}
