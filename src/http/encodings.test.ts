/** Encoded bodies in, encoded answers out. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { gunzipSync, gzipSync } from "node:zlib";
import { createFakeClock } from "../../tests/support/fake_clock.ts";
import { testEnv } from "../../tests/support/test_env.ts";
import { toUtf8, utf8 } from "../lib/bytes.ts";
import { HTTP_INFLATE_RATIO_MAX } from "../lib/limits.ts";
import { answerOf, chunksOf } from "./answer.ts";
import { ProblemError } from "./problem.ts";
import { createBodyRooms, readBody } from "./read_body.ts";

const env = testEnv();

function encoded(bytes: Uint8Array, encoding: string): Request {
  return new Request("http://node/", {
    method: "POST",
    body: bytes as Uint8Array<ArrayBuffer>,
    headers: { "content-encoding": encoding, "content-length": String(bytes.length) },
  });
}

async function statusOf(work: Promise<unknown>): Promise<number> {
  const error: unknown = await work.then(() => null, (thrown: unknown) => thrown);
  assert.ok(error instanceof ProblemError, String(error));
  return error.problem.status;
}

test("gzip and zstd are decoded, and everything that is held goes back", async () => {
  const rooms = createBodyRooms(env.clock, env.codecs);
  const text = "some text, ".repeat(1_000);
  for (const codec of ["gzip", "zstd"] as const) {
    const bytes = env.codecs.compress(codec, toUtf8(text));
    for (const name of [codec, `X-${codec}`]) {
      const body = await readBody(encoded(bytes, name), rooms);
      assert.equal(utf8(body.bytes), text);
      assert.equal(rooms.small.used, 0, "the encoded bytes are gone");
      assert.equal(rooms.inflated.used, text.length);
      body.release();
      body.release();
      assert.equal(rooms.inflated.used, 0);
    }
  }
});

test("a bomb, a broken body and an unknown encoding are refused, and nothing is held", async () => {
  const rooms = createBodyRooms(env.clock, env.codecs);
  const bomb = gzipSync(new Uint8Array(64 << 20));
  assert.ok(bomb.length * HTTP_INFLATE_RATIO_MAX < 64 << 20);
  const whole = gzipSync(toUtf8("text"));
  const cases = [
    [bomb, "gzip", 400],
    [gzipSync(new Uint8Array(2_000_000)), "gzip", 400],
    [whole.subarray(0, -1), "gzip", 400],
    [toUtf8("no gzip"), "gzip", 400],
    [whole, "zstd", 400],
    [whole, "br", 415],
    [whole, "gzip, gzip", 415],
  ] as const;
  for (const [bytes, encoding, status] of cases) {
    assert.equal(await statusOf(readBody(encoded(bytes, encoding), rooms)), status, encoding);
    const { small, medium, large, inflated } = rooms;
    assert.deepEqual([small, medium, large, inflated].map(({ used }) => used), [0, 0, 0, 0]);
  }
  assert.equal(await statusOf(readBody(encoded(whole, "gzip"), rooms, 3)), 413);
  assert.equal(await statusOf(readBody(encoded(whole, "gzip"), createBodyRooms(env.clock))), 415);
});

function answer(text: string, accepted: string | null, over: Record<string, string> = {}) {
  let released = 0;
  const request = new Request("http://node/", {
    headers: accepted === null ? {} : { "accept-encoding": accepted },
  });
  const clock = createFakeClock();
  const pieces = text.match(/[^]{1,1000}/g) ?? [];
  const response = answerOf(chunksOf(pieces), {
    request,
    clock,
    headers: { "content-type": "application/json", ...over },
    release: () => void (released += 1),
  });
  return { response, released: () => released, clock };
}

test("an answer above 1 KiB is gzip for who takes it", async () => {
  for (const length of [2_000, 300_000]) {
    const text = "abcdefghij".repeat(length / 10);
    for (const accepted of ["gzip", "br, x-gzip;q=0.5", "*", "deflate, gzip"]) {
      const { response, released } = answer(text, accepted, { etag: '"1"' });
      assert.equal(response.headers.get("content-encoding"), "gzip", accepted);
      assert.equal(response.headers.get("vary"), "Accept-Encoding");
      assert.equal(response.headers.get("etag"), 'W/"1"');
      const bytes = new Uint8Array(await response.arrayBuffer());
      assert.ok(bytes.length < length / 4);
      assert.equal(utf8(gunzipSync(bytes)), text);
      assert.equal(released(), 1);
    }
    for (const accepted of [null, "br", "gzip;q=0", "*, gzip;q=0"]) {
      const { response } = answer(text, accepted, { etag: '"1"' });
      assert.equal(response.headers.get("content-encoding"), null, String(accepted));
      assert.equal(response.headers.get("vary"), "Accept-Encoding");
      assert.equal(response.headers.get("etag"), '"1"');
      assert.equal(await response.text(), text);
    }
  }
  const small = answer("abc", "gzip").response;
  assert.equal(small.headers.get("vary"), null);
  assert.equal(await small.text(), "abc");
  const bytes = answer("a".repeat(2_000), "gzip", { "content-type": "application/octet-stream" });
  assert.equal(bytes.response.headers.get("content-encoding"), null);
});

test("a reader of an encoded answer that goes away gives back what is held", async () => {
  const { response, released } = answer("abcdefghij".repeat(1_000_000), "gzip");
  const reader = response.body!.getReader();
  await reader.read();
  assert.equal(released(), 0, "it is not made faster than it is taken");
  await reader.cancel();
  for (let i = 0; i < 50 && released() === 0; i++) await new Promise((go) => setTimeout(go, 1));
  assert.equal(released(), 1);
});
