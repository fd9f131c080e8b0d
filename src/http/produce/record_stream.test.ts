import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { createFakeClock } from "../../../tests/support/fake_clock.ts";
import { testEnv } from "../../../tests/support/test_env.ts";
import { toUtf8, utf8 } from "../../lib/bytes.ts";
import {
  HTTP_BODY_STALL_MS,
  HTTP_PRODUCE_STREAMS_MAX,
  HTTP_STREAM_IDLE_MS,
  HTTP_STREAM_LINE_BYTES_MAX,
  HTTP_STREAM_UNTAKEN_RECORDS_MAX,
  PRODUCE_PERMIT_BYTES,
  WRITE_STALL_MS,
} from "../../lib/limits.ts";
import { Semaphore } from "../../lib/semaphore.ts";
import type { Gateway, RecordInput, Written } from "../port.ts";
import { ProblemError } from "../problem.ts";
import { createBodyRooms } from "../read_body.ts";
import type { ProduceOptions } from "../write_port.ts";
import { readQuery } from "../api/read_query.ts";
import { streamQuery, streamRecords } from "./stream_route.ts";

const NDJSON = { "content-type": "application/x-ndjson" };

interface Asked {
  readonly values: readonly string[];
  readonly admit: () => void;
  readonly answer: (written?: readonly Written[]) => void;
  readonly fail: (error: unknown) => void;
}

/** A gateway that answers by hand or at once, and a body that is written by hand. */
function setup({ manual = false } = {}) {
  const clock = createFakeClock();
  const env = testEnv({ clock });
  const asked: Asked[] = [];
  let next = 0;
  const produce = (_: string, records: readonly RecordInput[], options?: ProduceOptions) => {
    const first = next;
    next += records.length;
    return new Promise<readonly Written[]>((resolve, reject) => {
      const answer = (written?: readonly Written[]) =>
        resolve(
          written ?? records.map((_record, i) => ({
            ok: true,
            partition: 0,
            offset: first + i,
            timestampMs: 1,
          })),
        );
      const values = records.map(({ value }) => utf8(value!));
      const admit = () => options?.onAdmitted?.();
      asked.push({ values, admit, answer, fail: reject });
      if (manual) return;
      admit();
      answer();
    });
  };
  const producePermits = new Semaphore(PRODUCE_PERMIT_BYTES);
  const rooms = createBodyRooms(clock);
  const services = {
    gateway: { produce } as unknown as Gateway,
    env,
    rooms,
    producePermits,
    recordStreams: new Semaphore(HTTP_PRODUCE_STREAMS_MAX),
  };
  const open = (headers: Record<string, string> = NDJSON, query = "") => {
    const gone = new AbortController();
    let writer!: ReadableStreamDefaultController<Uint8Array>;
    let cancelled = false;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => void (writer = controller),
      cancel: () => void (cancelled = true),
    });
    const init = { method: "POST", body, headers, signal: gone.signal, duplex: "half" };
    const request = new Request(`http://node/${query}`, init as RequestInit);
    const asked = readQuery(request, streamQuery);
    const response = streamRecords(services, request, { topic: "t", partition: null }, asked);
    const reader = response.body!.getReader();
    const one = async () => {
      const part = await reader.read();
      return part.done ? null : utf8(part.value);
    };
    // The sign of life at the beginning.
    const read = async () => {
      const text = await one();
      return text === "\n" ? await one() : text;
    };
    const rest = async () => {
      let text = "";
      for (let part = await read(); part !== null; part = await read()) text += part;
      return text;
    };
    return {
      response,
      write: (text: string) => writer.enqueue(toUtf8(text)),
      end: () => writer.close(),
      breakOff: () => writer.error(new Error("reset")),
      gone,
      reader,
      read,
      rest,
      isCancelled: () => cancelled,
    };
  };
  const held = () => producePermits.used + rooms.medium.used;
  return { clock, asked, open, held };
}

function lastLine(text: string): Record<string, unknown> {
  const line = text.trimEnd().split("\n").at(-1)!;
  return (JSON.parse(line) as { end: Record<string, unknown> }).end;
}

describe("a stream of records", () => {
  test("lines are records however they are cut, and the last one needs no line feed", async () => {
    const { open, asked, held } = setup();
    const stream = open();
    assert.equal(stream.response.headers.get("content-type"), "application/x-ndjson");
    stream.write('{"value":"a"}\n{"val');
    assert.match((await stream.read())!, /"offset":0/);
    stream.write('ue":"b"}\r\n\n \n{"value":"c"}');
    stream.end();
    const text = await stream.rest();
    assert.deepEqual(asked.flatMap(({ values }) => values), ["a", "b", "c"]);
    assert.deepEqual(lastLine(text), { records: 3, failed: 0, reason: "complete" });
    assert.equal(held(), 0);
  });

  test("a record may come byte by byte", async () => {
    const { open, asked } = setup();
    const stream = open();
    const value = "abcdefghij".repeat(50);
    for (const byte of `{"value":"${value}"}\n{"value":"b"}`) stream.write(byte);
    stream.end();
    await stream.rest();
    assert.deepEqual(asked.flatMap(({ values }) => values), [value, "b"]);
  });

  test("a refused line is a result in its place, and the stream goes on", async () => {
    const { open } = setup();
    const stream = open();
    stream.write('{"value":"a"}\nnope\n{"value":1,"x":2}\n{"value":"b"}\n');
    stream.end();
    const lines = (await stream.rest()).trimEnd().split("\n").map((line) => JSON.parse(line));
    assert.deepEqual(lines.slice(0, 4).map(({ offset, error }) => offset ?? error.line), [
      0,
      2,
      3,
      1,
    ]);
    assert.equal(lines[1].error.status, 400);
    assert.deepEqual(lines[4], { end: { records: 4, failed: 2, reason: "complete" } });
  });

  test("records are appended in order, though earlier ones still wait; results keep the order", async () => {
    const { open, asked, clock } = setup({ manual: true });
    const stream = open();
    stream.write('{"value":"a"}\n');
    await clock.settle();
    stream.write('{"value":"b"}\n');
    await clock.settle();
    assert.equal(asked.length, 1, "the first one has no place yet");
    asked[0]!.admit();
    await clock.settle();
    assert.equal(asked.length, 2);
    asked[1]!.admit();
    asked[1]!.answer();
    const first = stream.read();
    await clock.settle();
    asked[0]!.answer();
    assert.match((await first)!, /"offset":0/);
    assert.match((await stream.read())!, /"offset":1/);
    stream.end();
    await stream.rest();
  });

  test("a client that takes no results is not read past its window, and is cut off in the end", async () => {
    const { open, asked, clock, held } = setup();
    const stream = open();
    for (let i = 0; i < 30; i++) {
      stream.write('{"value":"v"}\n'.repeat(1_000));
      await clock.settle();
    }
    const taken = asked.reduce((sum, { values }) => sum + values.length, 0);
    assert.equal(taken, HTTP_STREAM_UNTAKEN_RECORDS_MAX);
    await stream.read();
    await clock.settle();
    const more = asked.reduce((sum, { values }) => sum + values.length, 0);
    assert.equal(more, taken + 1_000);
    await clock.advance(WRITE_STALL_MS);
    await assert.rejects(stream.read());
    assert.equal(held(), 0);
    assert.ok(stream.isCancelled());
    assert.equal(clock.timers, 0);
  });

  test("silence ends it with a last line; silence within a line is an error", async () => {
    const { open, clock, held } = setup();
    const idle = open();
    const text = idle.rest();
    await clock.advance(HTTP_STREAM_IDLE_MS);
    assert.deepEqual(lastLine(await text), { records: 0, failed: 0, reason: "idle" });
    const half = open();
    half.write('{"value":');
    const last = half.rest();
    await clock.settle();
    await clock.advance(HTTP_BODY_STALL_MS);
    assert.equal((lastLine(await last)["error"] as { status: number }).status, 408);
    assert.equal(held(), 0);
    assert.equal(clock.timers, 0);
  });

  test("a body that breaks off or a line that is too long ends it, and says so", async () => {
    const { open, clock, held } = setup();
    const broken = open();
    broken.write('{"value":"a"}\n{"va');
    await clock.settle();
    broken.breakOff();
    const end = lastLine(await broken.rest());
    assert.deepEqual([end["records"], (end["error"] as { status: number }).status], [1, 400]);
    const long = open();
    const piece = "x".repeat(100_000);
    for (let bytes = 0; bytes <= HTTP_STREAM_LINE_BYTES_MAX; bytes += piece.length) {
      long.write(piece);
    }
    assert.equal((lastLine(await long.rest())["error"] as { status: number }).status, 413);
    assert.equal(held(), 0);
    assert.ok(long.isCancelled());
  });

  test("what fails as a whole ends the stream behind the results before it", async () => {
    const { open, asked, clock, held } = setup({ manual: true });
    const stream = open();
    stream.write('{"value":"a"}\n');
    await clock.settle();
    asked[0]!.fail(new ProblemError({ status: 503, title: "Busy", detail: "busy" }));
    const end = lastLine(await stream.rest());
    assert.equal((end["error"] as { status: number }).status, 503);
    const other = open();
    other.write('{"value":"a"}\n');
    await clock.settle();
    asked[1]!.fail(new TypeError("a bug with secrets"));
    const text = await other.rest();
    assert.equal((lastLine(text)["error"] as { status: number }).status, 500);
    assert.ok(!text.includes("secrets"));
    assert.equal(held(), 0);
  });

  test("a client that goes away leaves nothing behind", async () => {
    for (const how of ["signal", "cancel"] as const) {
      const { open, asked, clock, held } = setup({ manual: true });
      const stream = open();
      stream.write('{"value":"a"}\n{"value":');
      await clock.settle();
      assert.notEqual(held(), 0);
      if (how === "signal") stream.gone.abort();
      else await stream.reader.cancel();
      asked[0]!.answer();
      await clock.settle();
      assert.equal(held(), 0, how);
      assert.ok(stream.isCancelled(), how);
      assert.equal(clock.timers, 0, how);
    }
  });

  test("there are only so many, and each gives its place back", async () => {
    const { open, clock } = setup();
    const streams = Array.from({ length: HTTP_PRODUCE_STREAMS_MAX }, () => open());
    assert.throws(
      () => open(),
      (error) => error instanceof ProblemError && error.problem.status === 503,
    );
    streams[0]!.gone.abort();
    await clock.settle();
    const late = open();
    for (const stream of [...streams, late]) stream.gone.abort();
  });

  test("what is no NDJSON, or is encoded, or asks for more than a stream can, is refused", () => {
    const { open } = setup();
    const cases = [
      [{ "content-type": "application/json" }, 415],
      [{ ...NDJSON, "content-encoding": "gzip" }, 415],
      [{ ...NDJSON, "idempotency-key": "k" }, 400],
    ] as const;
    for (const [headers, status] of cases) {
      assert.throws(
        () => open(headers),
        (error) => error instanceof ProblemError && error.problem.status === status,
      );
    }
  });
});
