import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { collected } from "../../../tests/support/garbage.ts";
import { concatBytes, toUtf8, utf8 } from "../../lib/bytes.ts";
import { linesOf, untilStopped } from "./lines.ts";

async function* pieces(all: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* all;
}

async function lines(all: readonly Uint8Array[], bytesMax = 1_000): Promise<string[]> {
  const out: string[] = [];
  for await (const line of linesOf(pieces(all), bytesMax)) out.push(utf8(line));
  return out;
}

test("a last line needs no end, an empty line is a line", async () => {
  assert.deepEqual(await lines([toUtf8("a\n\nb")]), ["a", "", "b"]);
  assert.deepEqual(await lines([toUtf8("a\n")]), ["a"]);
  assert.deepEqual(await lines([toUtf8("")]), []);
  assert.deepEqual(await lines([]), []);
});

test("lines do not depend on how the input is cut", async () => {
  await fc.assert(fc.asyncProperty(
    fc.array(fc.constantFrom("a", "é", "\n"), { maxLength: 30 }),
    fc.array(fc.nat(40), { maxLength: 6 }),
    async (letters, cuts) => {
      const text = letters.join("");
      const bytes = toUtf8(text);
      const at = [0, ...cuts.filter((cut) => cut < bytes.length), bytes.length].toSorted((a, b) =>
        a - b
      );
      const cut = at.slice(1).map((end, i) => bytes.slice(at[i], end));
      const wanted = text.split("\n");
      if (wanted.at(-1) === "") wanted.pop();
      assert.deepEqual(await lines(cut), wanted);
    },
  ));
});

test("a line may be as long as the limit and no longer, in however many pieces", async () => {
  assert.deepEqual(await lines([toUtf8("abc"), toUtf8("d\n")], 4), ["abcd"]);
  await assert.rejects(lines([toUtf8("x\nabc"), toUtf8("de\n")], 4), /line 2: it is longer than 4/);
});

test("memory of the input may be used again", async () => {
  const chunk = toUtf8("ab");
  async function* reused(): AsyncGenerator<Uint8Array> {
    yield chunk;
    chunk.set(toUtf8("c\n"));
    yield chunk;
  }
  const out: Uint8Array[] = [];
  for await (const line of linesOf(reused(), 10)) out.push(line);
  chunk.fill(0);
  assert.equal(utf8(concatBytes(out)), "abc");
});

test("the signal ends the input, also one that says nothing", async () => {
  const stop = new AbortController();
  async function* silent(): AsyncGenerator<Uint8Array> {
    yield toUtf8("a\n");
    await new Promise(() => {});
  }
  const out: string[] = [];
  for await (const line of linesOf(untilStopped(silent(), stop.signal), 10)) {
    out.push(utf8(line));
    stop.abort();
  }
  assert.deepEqual(out, ["a"]);
});

test("what was read is not kept", async () => {
  const CHUNKS = 20;
  const chunks: WeakRef<Uint8Array>[] = [];
  let gone = 0;
  async function* large(): AsyncGenerator<Uint8Array> {
    for (let i = 0; i < CHUNKS; i++) {
      const chunk = new Uint8Array(1 << 20).fill(0x0a, 0, 1);
      chunks.push(new WeakRef(chunk));
      yield chunk;
    }
    gone = await collected(chunks);
  }
  const input = untilStopped(large(), new AbortController().signal);
  for await (const chunk of input) assert.equal(chunk.length, 1 << 20);
  assert.ok(gone > CHUNKS / 2, `${gone} of ${CHUNKS} chunks are gone`);
});
