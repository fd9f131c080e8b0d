import assert from "node:assert/strict";
import { test } from "node:test";
import { webConnection } from "./web_connection.ts";

test("what a stream's reader got does not change when the writer's memory is used again", async () => {
  const toPeer = new TransformStream<Uint8Array, Uint8Array>();
  const fromPeer = new TransformStream<Uint8Array, Uint8Array>();
  const connection = webConnection({ readable: fromPeer.readable, writable: toPeer.writable });
  const bytes = new Uint8Array([1, 2, 3]);
  const reader = toPeer.readable.getReader();
  const [got] = await Promise.all([reader.read(), connection.write(bytes)]);
  bytes.fill(9);
  assert.deepEqual(got.value, new Uint8Array([1, 2, 3]));
  connection.close();
});
