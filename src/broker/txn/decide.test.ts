/** The coordinator's decisions, cell by cell: tables of section 3.14 of the protocol notes. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { decideAdd, decideVerify, holds } from "./decide_add.ts";
import { abortFenced, afterEnd, completed, decideEnd } from "./decide_end.ts";
import { decideInit, type InitVerdict } from "./decide_init.ts";
import { readTransactionRecord, transactionRecord } from "./records.ts";
import {
  NO_PARTITIONS,
  partitionsOf,
  type Transaction,
  TXN_STATUSES,
  type TxnStatus,
} from "./transaction.ts";

const NOW = 1_700_000_000_000;
const ID = 1000;
const EPOCH = 5;
const NEW_ID = 2000;
const PARTITIONS = partitionsOf([{ topic: "t", partition: 0 }]);

function row(status: TxnStatus, over: Partial<Transaction> = {}): Transaction {
  const isOpen = status === "Ongoing" || status.startsWith("Prepare");
  return {
    transactionalId: "tx",
    producerId: ID,
    previousProducerId: -1,
    nextProducerId: -1,
    producerEpoch: EPOCH,
    lastProducerEpoch: -1,
    timeoutMs: 60_000,
    status,
    partitions: isOpen ? PARTITIONS : NO_PARTITIONS,
    startedAtMs: isOpen ? NOW - 1000 : -1,
    updatedAtMs: NOW - 1000,
    isV2: false,
    ...over,
  };
}

interface Verdict {
  readonly kind: string;
  readonly next?: Transaction;
  readonly error?: string;
  readonly who?: { readonly producerId: number; readonly producerEpoch: number };
}

/** `PrepareCommit 1000/5`, `answer 1000/5` or the error's name. */
function shown(verdict: Verdict): string {
  if (verdict.next !== undefined) {
    const { status, producerId, producerEpoch } = verdict.next;
    return `${status} ${producerId}/${producerEpoch}`;
  }
  if (verdict.who === undefined) return verdict.error ?? verdict.kind;
  return `answer ${verdict.who.producerId}/${verdict.who.producerEpoch}`;
}

function ended(known: Transaction | undefined, commit: boolean, isV2: boolean, over = {}) {
  const ask = { producerId: ID, producerEpoch: EPOCH, commit, isV2, ...over };
  return shown(decideEnd(known, ask, NOW, NEW_ID));
}

test("EndTxn by the old rules: every state, commit and abort", () => {
  const table: Readonly<Partial<Record<TxnStatus, readonly [commit: string, abort: string]>>> = {
    Ongoing: ["PrepareCommit 1000/5", "PrepareAbort 1000/5"],
    CompleteCommit: ["answer 1000/5", "INVALID_TXN_STATE"],
    CompleteAbort: ["INVALID_TXN_STATE", "answer 1000/5"],
    PrepareCommit: ["CONCURRENT_TRANSACTIONS", "INVALID_TXN_STATE"],
    PrepareAbort: ["INVALID_TXN_STATE", "CONCURRENT_TRANSACTIONS"],
    Empty: ["INVALID_TXN_STATE", "INVALID_TXN_STATE"],
  };
  for (const [status, [commit, abort]] of Object.entries(table)) {
    const known = row(status as TxnStatus);
    assert.equal(ended(known, true, false), commit, `${status} commit`);
    assert.equal(ended(known, false, false), abort, `${status} abort`);
    for (const producerEpoch of [EPOCH - 1, EPOCH + 1]) {
      assert.equal(ended(known, true, false, { producerEpoch }), "PRODUCER_FENCED", status);
    }
    assert.equal(ended(known, true, false, { producerId: 1 }), "INVALID_PRODUCER_ID_MAPPING");
  }
  assert.equal(ended(undefined, true, false), "INVALID_PRODUCER_ID_MAPPING");
});

test("EndTxn of transactions v2: every state, at its epoch and again after a lost answer", () => {
  const fenced = "PRODUCER_FENCED";
  const invalid = "INVALID_TXN_STATE";
  const busy = "CONCURRENT_TRANSACTIONS";
  // Commit and abort with the row's epoch, then commit and abort with the one below.
  const table: Readonly<Partial<Record<TxnStatus, readonly string[]>>> = {
    Ongoing: ["PrepareCommit 1000/6", "PrepareAbort 1000/6", fenced, fenced],
    Empty: [invalid, "PrepareAbort 1000/6", fenced, fenced],
    CompleteCommit: [invalid, "PrepareAbort 1000/6", "answer 1000/5", invalid],
    CompleteAbort: [invalid, "PrepareAbort 1000/6", invalid, "answer 1000/5"],
    PrepareCommit: [fenced, fenced, busy, invalid],
    PrepareAbort: [fenced, fenced, invalid, busy],
  };
  for (const [status, cells] of Object.entries(table)) {
    const known = row(status as TxnStatus, { isV2: true });
    const found = [EPOCH, EPOCH - 1].flatMap((producerEpoch) =>
      [true, false].map((commit) => ended(known, commit, true, { producerEpoch }))
    );
    assert.deepEqual(found, cells, status);
    for (const producerEpoch of [EPOCH - 2, EPOCH + 1]) {
      assert.equal(ended(known, true, true, { producerEpoch }), fenced, status);
    }
    assert.equal(ended(known, true, true, { producerId: 1 }), "INVALID_PRODUCER_ID_MAPPING");
  }
});

test("transactions v2: an end at the last epoch goes on with a new producer id, and its retry finds it", () => {
  const last = { producerEpoch: 32_766, isV2: true };
  const ask = { producerId: ID, producerEpoch: 32_766, commit: true, isV2: true };
  assert.equal(decideEnd(row("Ongoing", last), ask, NOW, null).kind, "needs-id");
  const verdict = decideEnd(row("Ongoing", last), ask, NOW, NEW_ID);
  assert.ok(verdict.kind === "store");
  assert.equal(shown(verdict), "PrepareCommit 1000/32767", "markers go out with the id before");
  assert.deepEqual(afterEnd(verdict.next), { producerId: NEW_ID, producerEpoch: 0 });
  assert.equal(shown(decideEnd(verdict.next, ask, NOW, null)), "CONCURRENT_TRANSACTIONS");
  const begin = { producerId: NEW_ID, producerEpoch: 0 };
  assert.equal(
    shown(decideEnd(verdict.next, { ...ask, ...begin }, NOW, null)),
    "CONCURRENT_TRANSACTIONS",
  );
  const partitions = [...PARTITIONS.values()];
  assert.equal(
    shown(decideAdd(verdict.next, begin, partitions, true, NOW)),
    "CONCURRENT_TRANSACTIONS",
    "the client has the new id before the row has it",
  );
  const done = completed(verdict.next, NOW);
  assert.equal(shown({ kind: "store", next: done }), "CompleteCommit 2000/0");
  assert.equal(done.previousProducerId, ID);
  assert.equal(shown(decideEnd(done, ask, NOW, null)), "answer 2000/0");
  assert.equal(shown(decideEnd(done, { ...ask, commit: false }, NOW, null)), "INVALID_TXN_STATE");
  assert.equal(shown(decideAdd(done, begin, partitions, true, NOW)), "Ongoing 2000/0");
});

function init(
  known: Transaction | undefined,
  expected: readonly [id: number, epoch: number] | null = null,
  newId: number | null = NEW_ID,
): InitVerdict {
  const who = expected === null ? null : { producerId: expected[0], producerEpoch: expected[1] };
  const ask = { transactionalId: "tx", timeoutMs: 1234, expected: who };
  return decideInit(known, ask, NOW, newId);
}

test("InitProducerId: every state without an expected producer", () => {
  assert.equal(init(undefined, null, null).kind, "needs-id");
  assert.equal(shown(init(undefined)), "Empty 2000/0");
  for (const status of ["Empty", "CompleteCommit", "CompleteAbort"] as const) {
    const verdict = init(row(status));
    assert.equal(shown(verdict), "Empty 1000/6", status);
    assert.ok(verdict.kind === "store");
    assert.equal(verdict.next.timeoutMs, 1234);
  }
  for (const status of ["PrepareCommit", "PrepareAbort"] as const) {
    assert.equal(shown(init(row(status))), "CONCURRENT_TRANSACTIONS");
  }
  const fence = init(row("Ongoing"));
  assert.equal(fence.kind, "fence");
  assert.equal(shown(fence), "PrepareAbort 1000/6", "the epoch rises by exactly one");
});

test("InitProducerId: a producer that says who it was (KIP-360)", () => {
  assert.equal(shown(init(row("Empty"), [ID, EPOCH])), "Empty 1000/6");
  const again = row("Empty", { producerEpoch: 6, lastProducerEpoch: EPOCH });
  assert.equal(shown(init(again, [ID, EPOCH])), "Empty 1000/6", "the answer was lost");
  assert.equal(shown(init(row("Empty"), [ID, EPOCH - 1])), "PRODUCER_FENCED");
  assert.equal(shown(init(row("Empty"), [1, EPOCH])), "PRODUCER_FENCED");
  assert.equal(shown(init(row("Ongoing"), [1, EPOCH])), "PRODUCER_FENCED");
  assert.equal(shown(init(row("Ongoing"), [ID, EPOCH])), "PrepareAbort 1000/6");
});

test("InitProducerId: used up epochs bring a new producer id", () => {
  assert.equal(shown(init(row("Empty", { producerEpoch: 32_765 }))), "Empty 1000/32766");
  const last = row("CompleteCommit", { producerEpoch: 32_766 });
  assert.equal(init(last, null, null).kind, "needs-id");
  const verdict = init(last, [ID, 32_766]);
  assert.equal(shown(verdict), "Empty 2000/0");
  assert.ok(verdict.kind === "store");
  assert.equal(verdict.next.previousProducerId, ID);
  assert.equal(shown(init(verdict.next, [ID, 32_766])), "Empty 2000/0", "its answer was lost");
  const fenced = row("CompleteAbort", { producerEpoch: 32_767 });
  assert.equal(shown(init(fenced)), "Empty 2000/0");
  assert.equal(shown(init(fenced, [ID, 32_766])), "PRODUCER_FENCED");
});

test("AddPartitionsToTxn: who may add, and what needs no write", () => {
  const known = [{ topic: "t", partition: 0 }];
  const more = [...known, { topic: "u", partition: 3 }];
  const who = { producerId: ID, producerEpoch: EPOCH };
  const add = (at: Transaction | undefined, partitions = more, by = who) =>
    shown(decideAdd(at, by, partitions, false, NOW));
  assert.equal(add(undefined), "INVALID_PRODUCER_ID_MAPPING");
  for (const status of ["Empty", "CompleteCommit", "CompleteAbort", "Ongoing"] as const) {
    const verdict = decideAdd(row(status), who, more, false, NOW);
    assert.ok(verdict.kind === "store");
    assert.deepEqual([...verdict.next.partitions.keys()], ["t-0", "u-3"]);
    assert.equal(verdict.next.startedAtMs, status === "Ongoing" ? NOW - 1000 : NOW);
    const stranger = { producerId: 1, producerEpoch: EPOCH };
    assert.equal(add(row(status), more, stranger), "INVALID_PRODUCER_ID_MAPPING");
    const older = { producerId: ID, producerEpoch: EPOCH - 1 };
    assert.equal(add(row(status), more, older), "PRODUCER_FENCED");
  }
  assert.equal(add(row("Ongoing"), known), "nothing");
  assert.equal(add(row("PrepareCommit")), "CONCURRENT_TRANSACTIONS");
  assert.equal(add(row("PrepareAbort")), "CONCURRENT_TRANSACTIONS");
});

test("verification: what a transaction holds while it is open", () => {
  const who = { producerId: ID, producerEpoch: EPOCH };
  assert.equal(decideVerify(undefined, who), "INVALID_PRODUCER_ID_MAPPING");
  assert.equal(
    decideVerify(row("Ongoing"), { ...who, producerId: 1 }),
    "INVALID_PRODUCER_ID_MAPPING",
  );
  assert.equal(decideVerify(row("Ongoing"), { ...who, producerEpoch: 1 }), "PRODUCER_FENCED");
  assert.equal(decideVerify(row("PrepareCommit"), who), "CONCURRENT_TRANSACTIONS");
  assert.equal(decideVerify(row("Ongoing"), who), "NONE");
  assert.ok(holds(row("Ongoing"), { topic: "t", partition: 0 }));
  assert.ok(!holds(row("Ongoing"), { topic: "t", partition: 1 }));
  assert.ok(!holds(row("CompleteCommit"), { topic: "t", partition: 0 }));
});

test("the coordinator's own abort fences by one epoch, also where the epochs end", () => {
  for (const isV2 of [false, true]) {
    const next = abortFenced(row("Ongoing", { producerEpoch: 32_766, isV2 }), NOW);
    assert.equal(shown({ kind: "store", next }), "PrepareAbort 1000/32767");
    assert.equal(next.nextProducerId, -1);
    assert.equal(shown({ kind: "store", next: completed(next, NOW) }), "CompleteAbort 1000/32767");
  }
});

test("the epoch behind the last one is for fences only: whoever shows it is fenced", () => {
  const who = { producerId: ID, producerEpoch: 32_767 };
  for (const status of ["CompleteAbort", "Ongoing"] as const) {
    const known = row(status, { producerEpoch: 32_767 });
    const partitions = [{ topic: "u", partition: 0 }];
    assert.equal(shown(decideAdd(known, who, partitions, true, NOW)), "PRODUCER_FENCED");
    assert.equal(decideVerify(known, who), "PRODUCER_FENCED");
    for (const commit of [true, false]) {
      for (const isV2 of [true, false]) {
        assert.equal(ended(known, commit, isV2, who), "PRODUCER_FENCED");
      }
    }
  }
});

test("rows survive their records, but for the epoch before, which Kafka does not store either", () => {
  for (const status of TXN_STATUSES.slice(0, 6)) {
    const known = row(status, { previousProducerId: 7, nextProducerId: 8, isV2: true });
    const { key, value } = transactionRecord(known);
    assert.deepEqual(readTransactionRecord(key, value), { transactionalId: "tx", row: known });
  }
  const { key, value } = transactionRecord(row("Empty"));
  // Kafka's layout: key i16 version 0, string; value i16 version 1, flexible, partitions null when empty.
  assert.equal(key.toHex(), "000000027478");
  assert.equal(
    value?.toHex(),
    "0001" + "00000000000003e8" + "0005" + "0000ea60" + "00" + "00" + "0000018bcfe56418" +
      "ffffffffffffffff" + "00",
  );
  assert.deepEqual(readTransactionRecord(key, null), { transactionalId: "tx", row: null });
});
