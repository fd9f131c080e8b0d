import assert from "node:assert/strict";
import { test } from "node:test";
import { FaultError } from "../../lib/errors.ts";
import { errorName } from "../../protocol/error_code.ts";
import { listOffsetsApi } from "../../protocol/message/02_list_offsets.ts";
import { type BrokerWorld, createBrokerWorld } from "../../../tests/support/broker_world.ts";
import { bind } from "../broker.ts";
import { listOffsetsHandler } from "./02_list_offsets.ts";

const LATEST = -1;

/** Partition 0 looks for times for ever, partition 1 answers. */
async function world() {
  const broker = await createBrokerWorld({
    routes: (services) => [bind(listOffsetsHandler(services))],
  });
  await broker.createTopic("t", 2);
  const log = await broker.log("t", 0);
  await broker.log("t", 1);
  const aborted: boolean[] = [];
  log.offsetForTimestamp = (_, signal) =>
    new Promise((_resolve, reject) => {
      signal?.addEventListener("abort", () => {
        aborted.push(true);
        reject(new FaultError("aborted", "aborted", { retriable: true }));
      });
    });
  log.maxTimestamp = () => new Promise(() => {});
  return { broker, aborted };
}

function ask(
  broker: BrokerWorld,
  version: number,
  timestamp: number,
  timeoutMs: number,
  signal = new AbortController().signal,
) {
  const partitions = [0, 1].map((partitionIndex) => ({ partitionIndex, timestamp }));
  const request = { replicaId: -1, isolationLevel: 0, topics: [{ name: "t", partitions }] };
  return broker.call(listOffsetsApi, version, { ...request, timeoutMs }, { signal })
    .then(({ topics }) => topics[0]!.partitions.map(({ errorCode }) => errorName(errorCode)));
}

test("timeoutMs ends what is still looked for, and only that", async () => {
  const { broker, aborted } = await world();
  for (const [version, timestamp] of [[10, 5], [11, 5], [11, -3]] as const) {
    let answered: readonly string[] | null = null;
    const asking = ask(broker, version, timestamp, 5000).then((errors) => void (answered = errors));
    await broker.clock.advance(4999);
    assert.equal(answered, null);
    await broker.clock.advance(1);
    await asking;
    assert.deepEqual(answered, ["REQUEST_TIMED_OUT", "NONE"]);
  }
  assert.deepEqual(aborted, [true, true], "the search itself ends too");
  assert.deepEqual(await ask(broker, 11, LATEST, 1), ["NONE", "NONE"]);
  assert.equal(broker.clock.timers, 1, "only the tick of the partitions is left");
});

test("without timeoutMs, as before version 10, a lookup has 30 seconds", async () => {
  for (const version of [9, 11]) {
    const { broker } = await world();
    const asking = ask(broker, version, 5, 0);
    await broker.clock.advance(30_000);
    assert.deepEqual(await asking, ["REQUEST_TIMED_OUT", "NONE"]);
  }
});

test("nobody looks on for a client that is gone", async () => {
  const { broker, aborted } = await world();
  const gone = new AbortController();
  const asking = ask(broker, 11, 5, 60_000, gone.signal);
  await broker.clock.settle();
  gone.abort();
  assert.deepEqual(await asking, ["REQUEST_TIMED_OUT", "NONE"]);
  assert.deepEqual(aborted, [true]);
});
