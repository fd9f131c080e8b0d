/** Live streams of the broker as a process: cut connections, a killed broker, and each record exactly once. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type BrokerProcess, startBroker, tempDir } from "../support/broker_process.ts";
import { cuttingProxy } from "../support/cutting_proxy.ts";
import { until } from "./until.ts";

const RECORDS = 180;
const PARTITIONS = 3;
const PAUSE_MS = 10;

interface Shown {
  readonly partition: number;
  readonly offset: number;
  readonly value: string;
}

interface Event {
  readonly name: string;
  readonly data: string;
}

const pause = () => new Promise<void>((done) => void setTimeout(done, PAUSE_MS));

/** As the HTML standard has it: lines until an empty one; what is cut before that never was. */
class EventParser {
  #rest = "";
  #id = "";
  #name = "";
  #data: string[] = [];
  lastId = "";

  *feed(text: string): Generator<Event, void> {
    const lines = (this.#rest + text).split("\n");
    this.#rest = lines.pop()!;
    for (const line of lines) {
      if (line === "") {
        this.lastId = this.#id;
        const event = { name: this.#name || "message", data: this.#data.join("\n") };
        if (this.#data.length > 0) yield event;
        [this.#name, this.#data] = ["", []];
        continue;
      }
      const [field = "", value = ""] = line.split(/: ?(.*)/s);
      if (field === "id") this.#id = value;
      else if (field === "event") this.#name = value;
      else if (field === "data") this.#data.push(value);
    }
  }

  /** A new connection begins with what was whole of the last one. */
  restart(): void {
    [this.#rest, this.#name, this.#data, this.#id] = ["", "", [], this.lastId];
  }
}

/** Reads a stream for ever, and comes back where it was after each cut. */
function follow(url: string, onRecord: (record: Shown) => void) {
  const stop = new AbortController();
  const parser = new EventParser();
  const once = async () => {
    const headers: Record<string, string> = parser.lastId === ""
      ? {}
      : { "last-event-id": parser.lastId };
    const response = await fetch(url, { headers, signal: stop.signal });
    if (!response.ok || response.body === null) return;
    const decoder = new TextDecoder();
    for await (const chunk of response.body) {
      for (const event of parser.feed(decoder.decode(chunk, { stream: true }))) {
        if (event.name === "message") onRecord(JSON.parse(event.data) as Shown);
      }
    }
  };
  const run = (async () => {
    while (!stop.signal.aborted) {
      await once().catch(() => {});
      parser.restart();
      await pause();
    }
  })();
  return async () => {
    stop.abort();
    await run;
  };
}

async function produceAll(broker: () => BrokerProcess): Promise<void> {
  for (let i = 0; i < RECORDS; i += 10) {
    const records = Array.from({ length: 10 }, (_, at) => ({
      value: `${i + at} ${"x".repeat(((i + at) * 37) % 900)}`,
      partition: (i + at) % PARTITIONS,
    }));
    await until("a record is written", async () => {
      const answer = await fetch(`${broker().http}/v1/topics/t/records`, {
        method: "POST",
        headers: { "content-type": "application/json", "idempotency-key": `"batch-${i}"` },
        body: JSON.stringify(records),
      }).catch(() => null);
      return answer?.status === 200;
    });
  }
}

function assertOnce(seen: readonly Shown[]): void {
  for (let partition = 0; partition < PARTITIONS; partition++) {
    const offsets = seen.filter((one) => one.partition === partition).map((one) => one.offset);
    assert.deepEqual(offsets, offsets.map((_, i) => i), `partition ${partition}`);
  }
  const numbers = seen.map(({ value }) => Number.parseInt(value, 10)).toSorted((a, b) => a - b);
  assert.deepEqual(numbers, Array.from({ length: RECORDS }, (_, i) => i));
}

test("cut connections and a killed broker: each record once, in the order of its partition", {
  timeout: 60_000,
}, async () => {
  const dir = tempDir();
  let broker = await startBroker({ args: ["--store", `dir:${dir.path}`] });
  await fetch(`${broker.http}/v1/topics`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ name: "t", partitions: PARTITIONS }),
  });
  let nth = 0;
  const proxy = await cuttingProxy(broker.http, () => 700 + (nth++ * 1_237) % 9_000);
  const seen: Shown[] = [];
  const stop = follow(`${proxy.url}/v1/topics/t/stream?from=latest`, (one) => void seen.push(one));
  await until(
    "the reader is there",
    async () =>
      /^skerry_http_streams_open 1$/m.test(await (await fetch(`${broker.http}/metrics`)).text()),
  );
  const producing = produceAll(() => broker);
  await until("a third is read", () => seen.length > RECORDS / 3);
  await broker.kill9();
  broker = await broker.restart();
  await producing;
  await until("there were cuts", () => proxy.cuts >= 3);
  await until("all is read", () => seen.length >= RECORDS);
  await stop();
  await proxy.close();
  assertOnce(seen);
  assert.equal(await broker.stop(), 0, broker.output());
  dir.remove();
});

test("a broker that stops says so to its readers, and leaves in time", async () => {
  const broker = await startBroker({ args: ["--store", "memory:"] });
  await fetch(`${broker.http}/v1/topics/t/records`, { method: "POST", body: "a" });
  const response = await fetch(`${broker.http}/v1/topics/t/stream`, {
    headers: { accept: "application/x-ndjson" },
  });
  const text = response.text();
  const startedMs = performance.now();
  assert.equal(await broker.stop(), 0, broker.output());
  assert.ok(performance.now() - startedMs < 10_000);
  assert.ok((await text).endsWith('{"end":{"reason":"server-stop"}}\n'));
});
