import assert from "node:assert/strict";
import { test } from "node:test";
import { createFakeClock } from "../../tests/support/fake_clock.ts";
import {
  HTTP_BODY_BYTES_MAX,
  HTTP_BODY_STALL_MS,
  HTTP_LARGE_BODIES_BYTES_MAX,
  HTTP_MEDIUM_BODIES_BYTES_MAX,
  HTTP_MEDIUM_BODY_BYTES,
  HTTP_PERMIT_WAIT_MS,
  HTTP_SMALL_BODIES_BYTES_MAX,
  HTTP_SMALL_BODY_BYTES,
} from "../lib/limits.ts";
import { ProblemError } from "./problem.ts";
import { createBodyRooms, readBody } from "./read_body.ts";

const LARGE_AT_ONCE = HTTP_LARGE_BODIES_BYTES_MAX / HTTP_BODY_BYTES_MAX;

function rig() {
  const clock = createFakeClock();
  const rooms = createBodyRooms(clock);
  const all = () => [rooms.small.free, rooms.medium.free, rooms.large.free].join();
  const unused = all();
  return {
    clock,
    rooms,
    isEmpty: () => all() === unused,
  };
}

/** A body whose parts come when they are pushed. */
function upload(length: number | null, signal?: AbortSignal) {
  let controller!: ReadableStreamDefaultController<Uint8Array>;
  let asked = 0;
  let isCancelled = false;
  const body = new ReadableStream<Uint8Array>({
    start: (given) => void (controller = given),
    pull: () => void (asked += 1),
    cancel: () => void (isCancelled = true),
  }, { highWaterMark: 0 });
  const request = new Request("http://node/", {
    method: "POST",
    body,
    duplex: "half",
    headers: length === null ? {} : { "content-length": String(length) },
    ...(signal === undefined ? {} : { signal }),
  });
  return {
    request,
    push: (bytes: number) => controller.enqueue(new Uint8Array(bytes)),
    pushBytes: (bytes: Uint8Array) => controller.enqueue(bytes),
    end: () => controller.close(),
    asked: () => asked,
    isCancelled: () => isCancelled,
  };
}

function status(expected: number) {
  return (error: unknown): boolean => {
    assert.ok(error instanceof ProblemError, String(error));
    assert.equal(error.problem.status, expected);
    return true;
  };
}

test("a declared length is taken before anything is read, and given back once", async () => {
  const { clock, rooms, isEmpty } = rig();
  const one = upload(1_000_000);
  const reading = readBody(one.request, rooms);
  await clock.settle();
  assert.equal(rooms.medium.free, HTTP_MEDIUM_BODIES_BYTES_MAX - 1_000_000);
  one.push(400_000);
  one.push(600_000);
  one.end();
  const body = await reading;
  assert.equal(body.bytes.length, 1_000_000);
  assert.equal(rooms.medium.free, HTTP_MEDIUM_BODIES_BYTES_MAX - 1_000_000);
  body.release();
  body.release();
  assert.ok(isEmpty());
  assert.equal(clock.timers, 0);
});

test("bodies that do not say their length grow side by side without blocking each other", async () => {
  const { clock, rooms, isEmpty } = rig();
  const uploads = Array.from({ length: 3 * LARGE_AT_ONCE }, () => upload(null));
  const reading = uploads.map(async ({ request }) => {
    const body = await readBody(request, rooms);
    body.release();
    return body.bytes.length;
  });
  const part = HTTP_SMALL_BODY_BYTES;
  for (const { push } of uploads) push(part);
  await clock.settle();
  assert.equal(rooms.large.free, HTTP_LARGE_BODIES_BYTES_MAX, "still small");
  for (const { push } of uploads) push(1);
  await clock.settle();
  assert.deepEqual([rooms.large.free, rooms.large.waiting], [0, 2 * LARGE_AT_ONCE]);
  for (const { push, end } of uploads) {
    push(1_000_000);
    end();
  }
  const lengths = await Promise.all(reading);
  assert.deepEqual(new Set(lengths), new Set([part + 1 + 1_000_000]));
  assert.ok(isEmpty());
  assert.equal(clock.timers, 0);
});

test("a body of unknown length keeps only what it turned out to be", async () => {
  const { clock, rooms } = rig();
  const one = upload(null);
  const reading = readBody(one.request, rooms);
  one.push(500_000);
  await clock.settle();
  assert.equal(rooms.large.free, HTTP_LARGE_BODIES_BYTES_MAX - HTTP_BODY_BYTES_MAX);
  one.end();
  await reading;
  assert.equal(rooms.large.free, HTTP_LARGE_BODIES_BYTES_MAX - 500_000);
});

test("small bodies do not wait behind large ones; large ones wait unread and are told to come again", async () => {
  const { clock, rooms } = rig();
  await rooms.large.acquire(HTTP_LARGE_BODIES_BYTES_MAX);
  const large = upload(HTTP_BODY_BYTES_MAX);
  const refused = assert.rejects(readBody(large.request, rooms), status(503));
  const small = upload(3);
  small.push(3);
  small.end();
  assert.equal((await readBody(small.request, rooms)).bytes.length, 3);
  await clock.advance(HTTP_PERMIT_WAIT_MS);
  await refused;
  assert.equal(large.asked(), 0);
  assert.equal(rooms.large.waiting, 0);
});

test("a body of 200 KB does not wait behind 200 large uploads that stall", async () => {
  const { clock, rooms } = rig();
  const gone = new AbortController();
  const stalled = Array.from(
    { length: 200 },
    () => assert.rejects(readBody(upload(30_000_000, gone.signal).request, rooms)),
  );
  await clock.settle();
  assert.ok(rooms.large.waiting > 150);
  const medium = upload(200_000);
  medium.push(200_000);
  medium.end();
  const { bytes, release } = await readBody(medium.request, rooms);
  assert.equal(bytes.length, 200_000);
  assert.equal(rooms.medium.free, HTTP_MEDIUM_BODIES_BYTES_MAX - 200_000);
  release();
  gone.abort();
  await clock.advance(HTTP_BODY_STALL_MS);
  await Promise.all(stalled);
  assert.equal(rooms.large.free, HTTP_LARGE_BODIES_BYTES_MAX);
});

test("a waiting request that is aborted gives its place back", async () => {
  const { clock, rooms } = rig();
  await rooms.large.acquire(HTTP_LARGE_BODIES_BYTES_MAX);
  const gone = new AbortController();
  const declared = readBody(upload(HTTP_MEDIUM_BODY_BYTES + 1, gone.signal).request, rooms);
  const grown = upload(null, gone.signal);
  grown.push(HTTP_SMALL_BODY_BYTES + 1);
  const growing = readBody(grown.request, rooms);
  const both = [assert.rejects(declared), assert.rejects(growing)];
  await clock.settle();
  assert.equal(rooms.large.waiting, 2);
  gone.abort();
  await Promise.all(both);
  assert.equal(rooms.large.waiting, 0);
  assert.equal(rooms.small.free, HTTP_SMALL_BODIES_BYTES_MAX);
  assert.equal(clock.timers, 0);
});

test("an upload that stops is 408, large or small, and holds nothing", async () => {
  for (const length of [null, 10, 1_000_000]) {
    const { clock, rooms, isEmpty } = rig();
    const one = upload(length);
    const refused = assert.rejects(readBody(one.request, rooms), status(408));
    one.push(5);
    await clock.advance(HTTP_BODY_STALL_MS);
    await refused;
    assert.ok(isEmpty(), String(length));
    // A small body is read by the host in one go: it goes with its connection.
    assert.equal(one.isCancelled(), length !== 10, String(length));
  }
});

test("an upload that dribbles is ended, one that keeps the pace is not", async () => {
  const pace = async (bytes: number) => {
    const { clock, rooms } = rig();
    const one = upload(HTTP_BODY_BYTES_MAX);
    let outcome = 0;
    const reading = readBody(one.request, rooms).then(
      () => void (outcome = 200),
      (error: unknown) => void (outcome = (error as ProblemError).problem.status),
    );
    for (let sent = 0; sent < 8 * bytes && outcome === 0; sent += bytes) {
      one.push(bytes);
      await clock.advance(HTTP_BODY_STALL_MS / 2);
    }
    if (outcome === 0) return "goes on";
    await reading;
    return outcome;
  };
  assert.equal(await pace(1000), 408);
  assert.equal(await pace(1_000_000), "goes on");
});

test("a body that is longer or shorter than it says is refused", async () => {
  for (const declared of [10, 100_000]) {
    for (const real of [declared - 1, declared + 1]) {
      const { rooms, isEmpty } = rig();
      const one = upload(declared);
      one.push(real);
      one.end();
      await assert.rejects(readBody(one.request, rooms), status(400), `${declared} ${real}`);
      assert.ok(isEmpty());
    }
  }
});

test("encodings, lengths that are none, and bodies above the limit are refused unread", async () => {
  const { rooms, isEmpty } = rig();
  const refuse = async (headers: Record<string, string>, expected: number) => {
    const { request, asked } = upload(null);
    for (const [name, value] of Object.entries(headers)) request.headers.set(name, value);
    await assert.rejects(readBody(request, rooms), status(expected));
    assert.equal(asked(), 0);
  };
  await refuse({ "content-encoding": "gzip" }, 415);
  await refuse({ "content-length": "-1" }, 400);
  await refuse({ "content-length": String(HTTP_BODY_BYTES_MAX + 1) }, 413);
  const identity = upload(0);
  identity.request.headers.set("content-encoding", "Identity");
  assert.equal((await readBody(identity.request, rooms)).bytes.length, 0);
  assert.ok(isEmpty());
});

/** The largest array of bytes that is made of nothing but its length meanwhile. */
async function largestMade(work: () => Promise<void>): Promise<number> {
  const real = globalThis.Uint8Array;
  let largest = 0;
  globalThis.Uint8Array = new Proxy(real, {
    construct(target, given: unknown[], made) {
      if (typeof given[0] === "number") largest = Math.max(largest, given[0]);
      return Reflect.construct(target, given, made === globalThis.Uint8Array ? target : made);
    },
  });
  try {
    await work();
  } finally {
    globalThis.Uint8Array = real;
  }
  return largest;
}

test("an upload that only says that it is large costs no memory of that size", async () => {
  const { clock, rooms, isEmpty } = rig();
  const one = upload(HTTP_BODY_BYTES_MAX);
  const part = new Uint8Array(1_000);
  const largest = await largestMade(async () => {
    const reading = assert.rejects(readBody(one.request, rooms), status(408));
    await clock.settle();
    one.pushBytes(part);
    await clock.advance(HTTP_BODY_STALL_MS);
    await clock.advance(HTTP_BODY_STALL_MS);
    await reading;
  });
  assert.ok(largest < HTTP_SMALL_BODY_BYTES, `${largest} bytes at once`);
  assert.ok(isEmpty());
});
