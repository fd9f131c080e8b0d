/** Isolation of Fetch and ListOffsets: sheet sections 3.4 and 3.5, and the isolation rows of 7. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { fetchApi } from "../../src/protocol/message/01_fetch.ts";
import { listOffsetsApi } from "../../src/protocol/message/02_list_offsets.ts";
import { TxnClient } from "../support/txn_client.ts";
import {
  batch,
  fetchRequest,
  named,
  type Quirks,
  restarted,
  startQuirks,
  TIME,
  valuesOf,
} from "./quirks.ts";

const COMMITTED = { isolationLevel: 1 };

async function begun(q: Quirks, id: string): Promise<TxnClient> {
  const client = new TxnClient(q, id, { isV2: true });
  assert.equal(await client.init(), "NONE");
  return client;
}

async function end(q: Quirks, client: TxnClient, commit: boolean): Promise<void> {
  assert.equal(await client.end(commit), "NONE");
  await q.node.clock.settle();
  await q.node.clock.settle();
}

async function offsetFor(q: Quirks, timestamp: number, isolationLevel: number) {
  const answer = await q.call(listOffsetsApi, 11, {
    replicaId: -1,
    isolationLevel,
    topics: [{ name: "t", partitions: [{ partitionIndex: 0, timestamp }] }],
  });
  const { error, offset } = named(answer.topics[0]!.partitions[0]!);
  assert.equal(error, "NONE");
  return offset;
}

/** 0 plain · 1 b and 2 c, open · 3 plain. */
async function withOpen(): Promise<{ q: Quirks; client: TxnClient }> {
  const q = await startQuirks();
  await q.topic("t");
  await q.produce("t", batch([{ value: "a", timestamp: TIME }]));
  const client = await begun(q, "tx");
  assert.equal(await client.produce("t", ["b", "c"]), "NONE");
  await q.produce("t", batch([{ value: "d", timestamp: TIME + 100 }]));
  return { q, client };
}

test("an open transaction ends what read_committed gets; the watermark is told to both", async () => {
  const { q, client } = await withOpen();
  const committed = await q.fetch("t", 0, COMMITTED);
  assert.deepEqual(valuesOf(committed.records), ["a"]);
  assert.deepEqual([committed.highWatermark, committed.lastStableOffset], [4, 1]);
  const within = await q.fetch("t", 3, COMMITTED);
  assert.deepEqual([within.error, valuesOf(within.records)], ["NONE", []]);
  const uncommitted = await q.fetch("t", 0);
  assert.deepEqual(valuesOf(uncommitted.records), ["a", "b", "c", "d"]);
  assert.deepEqual([uncommitted.highWatermark, uncommitted.lastStableOffset], [4, 1]);
  await end(q, client, true);
  assert.equal((await q.fetch("t", 0, COMMITTED)).lastStableOffset, 5);
  await q.node.close();
});

test("aborted transactions are listed from wherever a reader begins, also after a restart", async () => {
  let { q, client } = await withOpen();
  await end(q, client, false);
  const { producerId } = client;
  for (let run = 0; run < 3; run++) {
    for (const offset of [0, 1, 2, 4]) {
      const { abortedTransactions } = await q.fetch("t", offset, COMMITTED);
      assert.deepEqual(abortedTransactions, [{ producerId, firstOffset: 1 }], `from ${offset}`);
    }
    const first = await q.fetch("t", 0, { ...COMMITTED, partitionMaxBytes: 1 });
    assert.deepEqual(first.abortedTransactions, [], "it begins behind what is returned");
    assert.deepEqual((await q.fetch("t", 5, COMMITTED)).abortedTransactions, []);
    assert.equal((await q.fetch("t", 0)).abortedTransactions, null);
    q = await restarted(q, { clean: run > 0 });
  }
  await q.node.close();
});

test("a held fetch of read_committed is answered by the commit, not by data above the last stable offset", async () => {
  const { q, client } = await withOpen();
  const reader = q.node.connect();
  const request = fetchRequest("t", 1, { ...COMMITTED, maxWaitMs: 10_000 });
  const held = reader.call(fetchApi, 11, request);
  await q.produce("t", batch(["e"]));
  await q.node.clock.settle();
  assert.equal(reader.unread, 0);
  const state = { isDone: false };
  const answered = held.finally(() => (state.isDone = true));
  await q.node.clock.settle();
  assert.equal(state.isDone, false);
  await end(q, client, true);
  const { records } = (await answered).responses[0]!.partitions[0]!;
  assert.deepEqual(valuesOf(records).slice(0, 4), ["b", "c", "d", "e"]);
  await q.node.close();
});

test("ListOffsets answers nothing above the last stable offset to read_committed", async () => {
  const { q, client } = await withOpen();
  const LATEST = -1;
  const MAX_TIMESTAMP = -3;
  assert.deepEqual([await offsetFor(q, LATEST, 0), await offsetFor(q, LATEST, 1)], [4, 1]);
  assert.deepEqual([await offsetFor(q, TIME, 0), await offsetFor(q, TIME, 1)], [0, 0]);
  const later = TIME + 100;
  assert.deepEqual([await offsetFor(q, later, 0), await offsetFor(q, later, 1)], [3, -1]);
  assert.deepEqual(
    [await offsetFor(q, MAX_TIMESTAMP, 0), await offsetFor(q, MAX_TIMESTAMP, 1)],
    [3, -1],
  );
  const LATEST_TIERED = -5;
  assert.equal(
    await offsetFor(q, LATEST_TIERED, 1),
    3,
    "where it is stored is no matter of isolation",
  );
  await end(q, client, true);
  assert.deepEqual([await offsetFor(q, LATEST, 1), await offsetFor(q, later, 1)], [5, 3]);
  await q.node.close();
});
