/** The checker's own judgement: a sound history has no finding, and each rule, broken once by hand, is named. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { check, type RuleName, ruleNames } from "./checker.ts";
import { type Call, type Event, History, parseHistory, type Row } from "./history.ts";

/** Like History, with a time that is one more each time; an operation is invoked and ended at once. */
class Tape {
  readonly events: Event[] = [];
  #at = 0;
  #op = 0;

  invoke(call: Call): number {
    this.events.push({ at: ++this.#at, op: ++this.#op, kind: "invoke", call });
    return this.#op;
  }

  ok(op: number, result: Extract<Event, { kind: "ok" }>["result"] = null): void {
    this.events.push({ at: ++this.#at, op, kind: "ok", result });
  }

  end(op: number, kind: "fail" | "info"): void {
    this.events.push({ at: ++this.#at, op, kind, why: "as told" });
  }

  produce(
    partition: string,
    values: readonly string[],
    offset: number,
    { txn = null, producer = "a#1", sources }: {
      txn?: string | null;
      producer?: string;
      sources?: readonly string[];
    } = {},
  ): void {
    const call = { f: "produce", producer, partition, values, txn } as const;
    this.ok(this.invoke(sources === undefined ? call : { ...call, sources }), { offset });
  }

  txn(txn: string, id = "x", producer = "x#1", timeoutMs = 1_000): void {
    this.events.push({ at: ++this.#at, kind: "txn", txn, id, producer, timeoutMs });
  }

  init(producer: string, id = "x"): void {
    this.ok(this.invoke({ f: "init", producer, id }));
  }

  finish(txn: string, commit: boolean, producer = "x#1"): void {
    this.ok(this.invoke({ f: "end", producer, txn, commit }));
  }

  read(
    partition: string,
    isolation: "committed" | "uncommitted",
    rows: readonly Row[],
    [from, next, highWatermark, lastStableOffset]: readonly [number, number, number, number],
  ): void {
    const op = this.invoke({ f: "read", reader: "r", partition, isolation, from });
    this.ok(op, { rows, next, highWatermark, lastStableOffset });
  }

  final(partition: string, uncommitted: readonly Row[], committed: readonly Row[], end: number) {
    this.events.push({
      at: ++this.#at,
      kind: "final",
      partition,
      committed,
      uncommitted,
      highWatermark: end,
      lastStableOffset: end,
    });
  }

  copied(group: string, outputs: readonly string[], positions: Record<string, number>): void {
    this.events.push({ at: ++this.#at, kind: "copied", group, outputs, positions });
  }
}

const A: Row[] = [[0, "a1"], [1, "a2"]];
const COMMITTED: Row[] = [...A, [2, "b1"]];
const ALL: Row[] = [...COMMITTED, [4, "c1"]];

interface Sound {
  /** Called where a history may go wrong, and instead of what happens there. */
  readonly instead?: Readonly<Record<string, (tape: Tape) => void>>;
}

/** Two plain records, one committed transaction over two partitions, an aborted one, and a copy. */
function history({ instead = {} }: Sound = {}): Event[] {
  const tape = new Tape();
  const step = (name: string, usual: () => void) => {
    if (instead[name] === undefined) usual();
    else instead[name](tape);
  };
  tape.init("x#1");
  step("plain", () => tape.produce("t/0", ["a1", "a2"], 0));
  step("read plain", () => tape.read("t/0", "uncommitted", A, [0, 2, 2, 2]));
  tape.txn("x#1.1");
  tape.produce("t/0", ["b1"], 2, { txn: "x#1.1", producer: "x#1" });
  tape.produce("t/1", ["b2"], 0, { txn: "x#1.1", producer: "x#1" });
  step("read open", () => tape.read("t/0", "committed", [], [2, 2, 3, 2]));
  step("commit", () => tape.finish("x#1.1", true));
  step("read committed", () => tape.read("t/0", "committed", COMMITTED, [0, 4, 4, 4]));
  tape.txn("x#1.2");
  tape.produce("t/0", ["c1"], 4, { txn: "x#1.2", producer: "x#1" });
  tape.finish("x#1.2", false);
  step("read aborted", () => tape.read("t/0", "committed", [], [4, 6, 6, 6]));
  step("successor", () => tape.init("x#2"));
  tape.txn("y#1.1", "y", "y#1");
  step("copy", () => {
    tape.produce("o/0", ["k1"], 0, { txn: "y#1.1", producer: "y#1", sources: ["t/1@0"] });
  });
  tape.finish("y#1.1", true, "y#1");
  step("final t/0", () => tape.final("t/0", ALL, COMMITTED, 6));
  step("final t/1", () => tape.final("t/1", [[0, "b2"]], [[0, "b2"]], 2));
  step("final o/0", () => tape.final("o/0", [[0, "k1"]], [[0, "k1"]], 2));
  step("copied", () => tape.copied("g", ["o/0"], { "t/1": 1 }));
  return tape.events;
}

function rulesBroken(events: readonly Event[]): RuleName[] {
  return [...new Set(check(events).map(({ rule }) => rule))];
}

function refused(tape: Tape, call: Call): void {
  tape.end(tape.invoke(call), "fail");
}

const plain = { f: "produce", producer: "a#1", partition: "t/0", txn: null } as const;

/** What goes wrong, and the rules that say so: the one that it is about first. */
const BROKEN: readonly (readonly [
  name: string,
  rules: readonly RuleName[],
  instead: Readonly<Record<string, (tape: Tape) => void>>,
])[] = [
  ["two acknowledgements at one offset", [
    "offsetUnique",
    "acknowledgedLost",
    "realTimeOrder",
    "readChanged",
  ], {
    "read plain": (tape) => tape.produce("t/0", ["a3"], 1),
  }],
  ["an acknowledged record is gone", ["acknowledgedLost"], {
    "read plain": (tape) => tape.produce("t/0", ["a3"], -1),
  }],
  ["an acknowledged record is somewhere else", ["acknowledgedLost"], {
    "final t/1": (tape) => tape.final("t/1", [[1, "b2"]], [[1, "b2"]], 2),
    "copied": () => {},
  }],
  ["a record is there twice", ["recordTwice"], {
    "final t/0": (tape) => tape.final("t/0", [...ALL, [6, "a2"]], [...COMMITTED, [6, "a2"]], 7),
  }],
  ["a record that nobody wrote", ["neverWritten"], {
    "final t/0": (tape) => tape.final("t/0", [...ALL, [6, "z"]], [...COMMITTED, [6, "z"]], 7),
  }],
  ["a record with other bytes", ["neverWritten", "readChanged"], {
    "read plain": (tape) => tape.read("t/0", "uncommitted", [[0, "a1"], [1, "A2"]], [0, 2, 2, 2]),
  }],
  ["a record whose write was refused", ["neverWritten"], {
    "read plain": (tape) => refused(tape, { ...plain, values: ["a3"] }),
    "final t/0": (tape) => tape.final("t/0", [...ALL, [6, "a3"]], [...COMMITTED, [6, "a3"]], 7),
  }],
  ["records of a producer in another order", ["producerOrder"], {
    "plain": (tape) => {
      const first = tape.invoke({ ...plain, values: ["a1"] });
      const second = tape.invoke({ ...plain, values: ["a2"] });
      tape.ok(second, { offset: 0 });
      tape.ok(first, { offset: 1 });
    },
    "read plain": () => {},
    "read committed": () => {},
    "final t/0": (tape) => {
      const rows: Row[] = [[0, "a2"], [1, "a1"]];
      tape.final("t/0", [...rows, ...ALL.slice(2)], [...rows, [2, "b1"]], 6);
    },
  }],
  ["a later record before an earlier one", ["realTimeOrder"], {
    "plain": (tape) => {
      tape.produce("t/0", ["a2"], 1, { producer: "a#2" });
      tape.produce("t/0", ["a1"], 0);
    },
  }],
  ["another record than the one that was read", ["readChanged"], {
    "plain": (tape) => {
      tape.invoke({ ...plain, values: ["a1", "a2"] });
      tape.invoke({ ...plain, producer: "d#1", values: ["d1"] });
    },
    "read plain": (tape) => tape.read("t/0", "uncommitted", [[0, "a1"], [1, "d1"]], [0, 2, 2, 2]),
    "read committed": () => {},
  }],
  ["a record that was read is gone", ["readChanged"], {
    "plain": (tape) => {
      tape.produce("t/0", ["a1", "a2"], 0);
      tape.invoke({ ...plain, values: ["a3"] });
    },
    "read aborted": (tape) => tape.read("t/0", "uncommitted", [[5, "a3"]], [5, 6, 6, 6]),
  }],
  ["a read passes over a record", ["readGap"], {
    "read plain": (tape) => tape.read("t/0", "uncommitted", [[1, "a2"]], [0, 2, 2, 2]),
  }],
  ["a read goes back", ["readGap"], {
    "read plain": (tape) => tape.read("t/0", "uncommitted", [[1, "a2"], [0, "a1"]], [0, 2, 2, 2]),
  }],
  ["a read of committed records passes over a transaction", ["readGap"], {
    "read committed": (tape) => tape.read("t/0", "committed", A, [0, 4, 4, 4]),
  }],
  ["the high watermark goes back", ["marksBack"], {
    "read aborted": (tape) => {
      tape.read("t/0", "uncommitted", [], [5, 5, 7, 5]);
      tape.read("t/0", "uncommitted", [], [5, 5, 6, 5]);
    },
    "final t/0": (tape) => tape.final("t/0", ALL, COMMITTED, 7),
  }],
  ["the last stable offset goes back", ["marksBack"], {
    "read aborted": (tape) => {
      tape.read("t/0", "uncommitted", [], [5, 5, 6, 6]);
      tape.read("t/0", "uncommitted", [], [5, 5, 6, 5]);
    },
  }],
  ["the marks go back in the end", ["marksBack"], {
    "read aborted": (tape) => tape.read("t/0", "uncommitted", [], [5, 5, 7, 7]),
  }],
  ["the high watermark is below what was acknowledged", ["marksBack"], {
    "read plain": (tape) => tape.read("t/0", "uncommitted", [[0, "a1"]], [0, 1, 1, 1]),
  }],
  ["a record outside of transactions is hidden", ["finalDiffers"], {
    "final t/0": (tape) => tape.final("t/0", ALL, COMMITTED.slice(1), 6),
  }],
  ["only committed readers see a record", ["finalDiffers", "acknowledgedLost"], {
    "read plain": () => {},
    "read committed": () => {},
    "final t/0": (tape) => tape.final("t/0", ALL.slice(1), COMMITTED, 6),
  }],
  ["a reader sees an aborted record", ["abortedShown"], {
    "read aborted": (tape) => tape.read("t/0", "committed", [[4, "c1"]], [4, 6, 6, 6]),
  }],
  ["an aborted record is shown in the end", ["abortedShown"], {
    "read aborted": () => {},
    "final t/0": (tape) => tape.final("t/0", ALL, ALL, 6),
  }],
  ["a transaction that nobody ended is shown", ["abortedShown"], {
    "commit": (tape) => tape.init("x#1"),
  }],
  ["a transaction whose commit was refused is shown", ["abortedShown"], {
    "commit": (tape) => refused(tape, { f: "end", producer: "x#1", txn: "x#1.1", commit: true }),
  }],
  ["a record is shown before its commit", ["shownEarly"], {
    "read open": (tape) => tape.read("t/0", "committed", [[2, "b1"]], [2, 2, 3, 2]),
  }],
  ["one partition of a transaction is hidden", ["transactionTorn", "commitLost"], {
    "final t/1": (tape) => tape.final("t/1", [[0, "b2"]], [], 2),
    "copied": () => {},
  }],
  ["one partition of a transaction without an answer is hidden", ["transactionTorn"], {
    "commit": (tape) => void tape.invoke({ f: "end", producer: "x#1", txn: "x#1.1", commit: true }),
    "final t/1": (tape) => tape.final("t/1", [[0, "b2"]], [], 2),
    "copied": () => {},
  }],
  ["an acknowledged commit is hidden", ["commitLost"], {
    "read committed": () => {},
    "final t/0": (tape) => tape.final("t/0", ALL, A, 6),
    "final t/1": (tape) => tape.final("t/1", [[0, "b2"]], [], 2),
    "copied": () => {},
  }],
  ["the last stable offset passes an open transaction", ["stablePassesOpen"], {
    "read open": (tape) => tape.read("t/0", "committed", [], [3, 3, 3, 3]),
  }],
  ["a transaction never ends", ["neverEnded"], {
    "final t/1": (tape) => {
      tape.final("t/1", [[0, "b2"]], [[0, "b2"]], 2);
      tape.events.push({ ...tape.events.pop()!, lastStableOffset: 1 } as Event);
    },
  }],
  ["a fenced producer writes", ["zombieAcknowledged"], {
    "successor": (tape) => {
      tape.txn("x#1.3");
      tape.init("x#2");
      tape.produce("t/0", ["e1"], 6, { txn: "x#1.3", producer: "x#1" });
    },
    "final t/0": (tape) => tape.final("t/0", [...ALL, [6, "e1"]], COMMITTED, 8),
  }],
  ["a fenced producer commits", ["zombieAcknowledged"], {
    "successor": (tape) => {
      tape.txn("x#1.3");
      tape.produce("t/0", ["e1"], 6, { txn: "x#1.3", producer: "x#1" });
      tape.init("x#2");
      tape.finish("x#1.3", true);
    },
    "final t/0": (tape) => tape.final("t/0", [...ALL, [6, "e1"]], [...COMMITTED, [6, "e1"]], 8),
  }],
  ["a record is copied twice", ["copiedOnce"], {
    "copy": (tape) => {
      const to = { txn: "y#1.1", producer: "y#1" };
      tape.produce("o/0", ["k1", "k2"], 0, { ...to, sources: ["t/1@0", "t/1@0"] });
    },
    "final o/0": (tape) => {
      const rows: Row[] = [[0, "k1"], [1, "k2"]];
      tape.final("o/0", rows, rows, 3);
    },
  }],
  ["a record is never copied", ["copiedOnce"], {
    "copied": (tape) => tape.copied("g", ["o/1"], { "t/1": 1 }),
  }],
  ["a copy of what is not committed", ["copiedOnce"], {
    "copied": (tape) => tape.copied("g", ["o/0"], { "t/2": 0 }),
  }],
  ["the offset of a group is before what it has copied", ["copiedOnce"], {
    "copied": (tape) => tape.copied("g", ["o/0"], { "t/1": 0 }),
  }],
];

test("a sound history has no finding", () => {
  assert.deepEqual(check(history()), []);
});

test("what has no answer may have happened or not", () => {
  const unknown = { f: "end", producer: "x#1", txn: "x#1.1", commit: true } as const;
  const commit = (tape: Tape) => tape.end(tape.invoke(unknown), "info");
  assert.deepEqual(check(history({ instead: { commit } })), []);
  const hidden = {
    commit,
    "read committed": () => {},
    "final t/0": (tape: Tape) => tape.final("t/0", ALL, A, 6),
    "final t/1": (tape: Tape) => tape.final("t/1", [[0, "b2"]], [], 2),
    "copied": () => {},
  };
  assert.deepEqual(check(history({ instead: hidden })), []);
  const lost = { "read plain": (tape: Tape) => void tape.invoke({ ...plain, values: ["a3"] }) };
  assert.deepEqual(check(history({ instead: lost })), []);
});

for (const [name, rules, instead] of BROKEN) {
  test(`found: ${name}`, () => {
    const broken = rulesBroken(history({ instead }));
    assert.deepEqual(broken.toSorted(), rules.toSorted());
  });
}

test("every rule is broken above, once by itself or as the first", () => {
  assert.deepEqual(
    [...new Set(BROKEN.map(([, [rule]]) => rule!))].toSorted(),
    ruleNames.toSorted(),
  );
});

test("a time-out, an end or a successor may let the last stable offset go on", () => {
  const passing: Row[] = [];
  const marks = [3, 3, 3, 3] as const;
  const late = {
    "read open": (tape: Tape) => {
      const end = tape.invoke({ f: "end", producer: "x#1", txn: "x#1.1", commit: true });
      tape.read("t/0", "committed", passing, marks);
      tape.ok(end);
    },
    commit: () => {},
  };
  assert.deepEqual(check(history({ instead: late })), []);
});

test("a history is the same after it was written and read", () => {
  const kept = new History();
  const op = kept.invoke({ ...plain, values: ["a1"] });
  kept.ok(op, { offset: 7 });
  kept.failed(kept.invoke({ ...plain, values: ["a2"] }), "refused", true);
  kept.failed(kept.invoke({ ...plain, values: ["a3"] }), "no answer", false);
  assert.deepEqual(parseHistory(kept.ndjson()), kept.events);
  assert.deepEqual(kept.events.map(({ kind }) => kind), [
    "invoke",
    "ok",
    "invoke",
    "fail",
    "invoke",
    "info",
  ]);
});
