/** Every call to the stream layer fails once, at every place: nothing acknowledged is lost or doubled. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { type FaultCode, FaultError } from "../lib/errors.ts";
import type { StreamOp } from "../../tests/support/memory_streams.ts";
import { contents, type Harness, unopened } from "../../tests/support/partition_harness.ts";

const BATCHES = 8;

function faultOf(op: StreamOp): FaultError {
  const code: FaultCode = op === "append" ? "overloaded" : "store-unavailable";
  return new FaultError(code, `injected into ${op}`, { retriable: true });
}

/** Faults reach the caller as FaultError and as nothing else. */
async function attempt(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    assert.ok(error instanceof FaultError, String(error));
    return false;
  }
}

async function openAgain(h: Harness): Promise<void> {
  while (!await attempt(() => h.open())) { /* the one fault is spent by now */ }
}

/** As an idempotent producer: sends until it is in. */
async function send(h: Harness, sequence: number): Promise<void> {
  const result = h.log.append(h.sequenced(sequence, sequence));
  if (result.ok && await attempt(() => result.durable)) return;
  assert.ok(result.ok || result.error === "NOT_ENOUGH_REPLICAS");
  await send(h, sequence);
}

async function life(h: Harness): Promise<void> {
  await openAgain(h);
  for (let i = 0; i < BATCHES; i++) {
    await send(h, i);
    if (i === 3) await attempt(() => h.log.tick(h.nowMs));
    if (i === 4) await attempt(() => h.log.close());
    if (i === 4) await openAgain(h);
    if (i === 6) await attempt(() => h.log.deleteRecords(2));
  }
  await attempt(() => h.log.offsetForTimestamp(h.nowMs));
  await attempt(() => h.log.close());
}

async function expectAll(h: Harness): Promise<void> {
  const { logStartOffset } = h.log;
  assert.ok(logStartOffset === 0 || logStartOffset === 2, `start ${logStartOffset}`);
  const all = Array.from({ length: BATCHES }, (_, i) => `${i}:${i}+0`);
  assert.deepEqual(await contents(h), all.slice(logStartOffset));
  for (let i = BATCHES - 5; i < BATCHES; i++) {
    const again = h.log.append(h.sequenced(i, i));
    assert.ok(again.ok && again.duplicate && again.baseOffset === i);
  }
}

async function countCalls(): Promise<number> {
  const h = unopened({ segmentBytes: 200 });
  await life(h);
  return h.streams.calls;
}

test("the n-th call fails, whichever it is", async () => {
  const calls = await countCalls();
  assert.ok(calls > 30, `only ${calls} calls`);
  for (let n = 0; n < calls; n++) {
    const h = unopened({ segmentBytes: 200 });
    h.streams.fail = (op, call) => (call === n ? faultOf(op) : null);
    await life(h);
    h.streams.fail = null;
    await h.crash();
    await expectAll(h);
    await h.reopen();
    await expectAll(h);
  }
});

test("the process ends at the n-th call, whichever it is", async () => {
  const calls = await countCalls();
  for (let n = 0; n < calls; n++) {
    const h = unopened({ segmentBytes: 200 });
    h.streams.fail = (_, call) =>
      call >= n ? new FaultError("closed", "gone", { retriable: false }) : null;
    let acknowledged = 0;
    await attempt(async () => {
      await h.open();
      for (let i = 0; i < BATCHES; i++) {
        const result = h.log.append(h.sequenced(i, i));
        if (!result.ok) return;
        await result.durable;
        acknowledged++;
        if (i === 3) await h.log.tick(h.nowMs);
        if (i === 6) await h.log.deleteRecords(2);
      }
      await h.log.close();
    });
    h.streams.fail = null;
    await h.crash();
    const found = await contents(h);
    assert.ok(found.length + h.log.logStartOffset >= acknowledged);
    for (let i = 0; i < BATCHES; i++) h.log.append(h.sequenced(i, i));
    await Promise.resolve();
    assert.ok(h.log.logEndOffset === BATCHES, `end ${h.log.logEndOffset} after call ${n}`);
  }
});
