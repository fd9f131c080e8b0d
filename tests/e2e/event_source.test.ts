/** Clients of server-sent events as they are: cut in the middle, they resume without loss or duplicate. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fetchEventSource } from "@microsoft/fetch-event-source";
import { EventSource } from "eventsource";
import { startBroker } from "../support/broker_process.ts";
import { cuttingProxy } from "../support/cutting_proxy.ts";
import { until } from "./until.ts";

const RECORDS = 120;
const PARTITIONS = 2;

interface Shown {
  readonly partition: number;
  readonly offset: number;
}

/** Follows a URL until it is stopped. */
type Client = (
  url: string,
  on: { readonly record: (data: string) => void; readonly other: (name: string) => void },
) => () => void;

const CLIENTS: Readonly<Record<string, Client>> = {
  "eventsource": (url, { record, other }) => {
    const source = new EventSource(url);
    source.addEventListener("message", ({ data }) => record(data as string));
    for (const name of ["cursor", "gap", "problem", "end"]) {
      source.addEventListener(name, () => other(name));
    }
    return () => source.close();
  },
  "@microsoft/fetch-event-source": (url, { record, other }) => {
    const stop = new AbortController();
    // It is written for pages: all that it wants of them is whether they are hidden.
    Object.assign(globalThis, {
      document: { hidden: false, addEventListener() {}, removeEventListener() {} },
      window: globalThis,
    });
    const done = fetchEventSource(url, {
      signal: stop.signal,
      onmessage: ({ event, data }) => {
        if (event === "") record(data);
        else other(event);
      },
      onclose() {
        throw new Error("come back");
      },
      onerror: () => 50,
    });
    done.catch(() => {});
    return () => stop.abort();
  },
};

for (const [name, follow] of Object.entries(CLIENTS)) {
  test(`${name}: cut in the middle, each record once`, { timeout: 60_000 }, async () => {
    const broker = await startBroker({ args: ["--store", "memory:"] });
    await fetch(`${broker.http}/v1/topics`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ name: "t", partitions: PARTITIONS }),
    });
    let nth = 0;
    const proxy = await cuttingProxy(broker.http, () => 1_500 + (nth++ * 2_711) % 9_000);
    const seen: Shown[] = [];
    const others: string[] = [];
    const url = `${proxy.url}/v1/topics/t/stream?from=latest`;
    const stop = follow(url, {
      record: (data) => void seen.push(JSON.parse(data) as Shown),
      other: (event) => void others.push(event),
    });
    await until("it has opened", () => others.includes("cursor"));
    for (let i = 0; i < RECORDS; i++) {
      const answer = await fetch(
        `${broker.http}/v1/topics/t/partitions/${i % PARTITIONS}/records`,
        {
          method: "POST",
          body: "x".repeat((i * 53) % 700),
        },
      );
      assert.equal(answer.status, 200);
      if (i === RECORDS / 2) await until("it was cut", () => proxy.cuts >= 2);
    }
    proxy.spare();
    await until("all is read", () => seen.length >= RECORDS);
    stop();
    for (let partition = 0; partition < PARTITIONS; partition++) {
      const offsets = seen.filter((one) => one.partition === partition).map((one) => one.offset);
      assert.deepEqual(offsets, offsets.map((_, i) => i));
    }
    assert.equal(seen.length, RECORDS);
    assert.deepEqual([...new Set(others)], ["cursor"], "nothing else than where it stands");
    await proxy.close();
    assert.equal(await broker.stop(), 0, broker.output());
  });
}
