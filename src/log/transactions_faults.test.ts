/**
 * Transactions while every call to the stream layer fails once, or is the process's last, at every place.
 * Clients and coordinator send again what they have no answer for: the log ends up as without any fault.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  appendInTransaction,
  appendMarker,
  type Harness,
  outcome,
  readCommitted,
  unopened,
} from "../../tests/support/partition_harness.ts";
import { streamEpoch, type StreamId } from "../lib/brand.ts";
import { type FaultCode, FaultError } from "../lib/errors.ts";
import { decodeLogMeta } from "./log_meta.ts";
import { storedValues } from "./meta_stream.ts";
import type { Appended, AppendRefused } from "./partition_log.ts";

type Step = (h: Harness) => Promise<unknown>;

/** Told to clients that try again. */
const RETRIABLE: readonly string[] = ["NOT_ENOUGH_REPLICAS", "NOT_LEADER_OR_FOLLOWER"];

/** Other refusals would be wrong: each step is right at its time. */
function sent(append: (h: Harness) => Appended | AppendRefused): Step {
  return async (h) => {
    const result = append(h);
    if (!result.ok && RETRIABLE.includes(result.error)) {
      throw new FaultError("overloaded", "refused", { retriable: true });
    }
    assert.ok(result.ok, outcome(result));
    await result.durable;
  };
}

function data(producerId: number, producerEpoch: number, first: number, last = first): Step {
  const who = { producerId, producerEpoch, isTransactionsV2: true };
  return sent((h) => appendInTransaction(h, first, last, who));
}

function end(producerId: number, producerEpoch: number, commit: boolean): Step {
  return sent((h) =>
    appendMarker(h, { producerId, producerEpoch, commit, isTransactionsV2: true })
  );
}

const tick: Step = (h) => h.log.tick(h.nowMs);
const restart: Step = async (h) => {
  await h.log.close();
  await h.open();
};

const STEPS: readonly Step[] = [
  (h) => h.open(),
  data(1, 0, 0, 1),
  data(2, 0, 0),
  end(1, 1, false),
  data(1, 1, 0),
  tick,
  end(2, 1, true),
  end(1, 2, false),
  restart,
  data(2, 1, 0),
  data(1, 2, 0),
  end(2, 2, false),
  tick,
  data(1, 2, 1),
  restart,
  end(1, 3, false),
  sent((h) => h.log.append(h.sequenced(0, 0, { producerId: 3, producerEpoch: 0 }))),
  restart,
];

async function life(h: Harness): Promise<void> {
  for (const step of STEPS) {
    for (;;) {
      try {
        await step(h);
        break;
      } catch (error) {
        assert.ok(error instanceof FaultError, String(error));
        h.streams.fail = null;
        await h.crash();
      }
    }
  }
}

/** What readers of committed records get, from each offset, in small reads and large ones. */
async function readings(h: Harness): Promise<unknown> {
  const { logEndOffset, lastStableOffset } = h.log;
  const found: unknown[] = [logEndOffset, lastStableOffset];
  for (let at = 0; at < logEndOffset; at++) {
    for (const bytesMax of [1, 2 ** 30]) {
      const { batches, aborted } = await readCommitted(h.log, at, bytesMax);
      found.push([at, batches.length, aborted]);
    }
  }
  return found;
}

const config = { segmentBytes: 300 };

async function faultless(): Promise<{ calls: number; expected: unknown }> {
  const h = unopened(config);
  await life(h);
  const { calls } = h.streams;
  return { calls, expected: await readings(h) };
}

async function expectSame(h: Harness, expected: unknown, n: number): Promise<void> {
  assert.deepEqual(await readings(h), expected, `call ${n}`);
  await h.crash();
  assert.deepEqual(await readings(h), expected, `call ${n}, from its own account`);
}

test("what is compared: four aborted transactions and what they overlap", async () => {
  const h = unopened(config);
  await life(h);
  const { aborted } = await readCommitted(h.log, 0);
  assert.deepEqual(aborted, [
    { producerId: 1, firstOffset: 0 },
    { producerId: 1, firstOffset: 4 },
    { producerId: 2, firstOffset: 7 },
    { producerId: 1, firstOffset: 8 },
  ]);
  assert.deepEqual([h.log.lastStableOffset, h.log.logEndOffset], [13, 13]);
});

test("the n-th call fails, whichever it is: the log ends up the same", async () => {
  const { calls, expected } = await faultless();
  assert.ok(calls > 50, `only ${calls} calls`);
  for (let n = 0; n < calls; n++) {
    const h = unopened(config);
    h.streams.fail = (op, call) => {
      const code: FaultCode = op === "append" ? "overloaded" : "store-unavailable";
      return call === n ? new FaultError(code, `injected into ${op}`, { retriable: true }) : null;
    };
    await life(h);
    h.streams.fail = null;
    await expectSame(h, expected, n);
  }
});

/** Streams with records that LOG does not name: nobody would ever find them. */
async function unnamed(h: Harness): Promise<readonly StreamId[]> {
  await h.crash();
  await h.log.close();
  const meta = await h.streams.open(h.metaStream!, streamEpoch(1_000));
  const { streams } = decodeLogMeta((await storedValues(meta)).get("LOG")!);
  const named = new Set([h.metaStream, ...streams.values()]);
  return h.streams.ids.filter((id) => !named.has(id) && h.streams.records(id).length > 0);
}

test("the process ends at the n-th call, whichever it is: no stream is written before it has a name", async () => {
  const { calls } = await faultless();
  for (let n = 0; n < calls; n++) {
    const h = unopened(config);
    h.streams.fail = (_, call) =>
      call >= n ? new FaultError("closed", "gone", { retriable: false }) : null;
    await life(h);
    assert.deepEqual(await unnamed(h), [], `call ${n}`);
  }
});

test("the process ends at the n-th call, whichever it is: the log ends up the same", async () => {
  const { calls, expected } = await faultless();
  for (let n = 0; n < calls; n++) {
    const h = unopened(config);
    h.streams.fail = (_, call) =>
      call >= n ? new FaultError("closed", "gone", { retriable: false }) : null;
    await life(h);
    await expectSame(h, expected, n);
  }
});
