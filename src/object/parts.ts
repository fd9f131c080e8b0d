/** Helpers for `putParts`: equal part sizes are a rule of some stores, so every store insists on them. */
import { assert } from "../lib/assert.ts";

/** Passes parts on; fails on an empty part and on a part that follows a smaller one or differs from the first. */
export async function* equalParts(parts: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let size = 0;
  let last = 0;
  for await (const part of parts) {
    if (size === 0) size = part.length;
    assert(
      part.length > 0 && part.length <= size,
      `Part of ${part.length} bytes among parts of ${size}`,
    );
    assert(last === 0 || last === size, `A part follows a short one: ${last} of ${size} bytes`);
    last = part.length;
    yield part;
  }
  assert(size > 0, "putParts needs at least one part");
}
