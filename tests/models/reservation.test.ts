/**
 * The other way to fence a WAL, which Skerry does not take: a reservation object that a successor overwrites and
 * the writer reads again before it acknowledges. It is safe in one order of its steps and in no other; a seal by
 * create-if-absent (`wal.test.ts`) needs no read per acknowledgement. Kept so that nobody tries the other orders.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { explore, type Model, stepsOf } from "./explore.ts";

interface Rules {
  /** When the writer reads the reservation. */
  readonly verifies: "after-put" | "before-put" | "never";
  /** What a successor does first. */
  readonly successorFirst: "reserve" | "list";
}

const SLOTS = 3;

type Put = "unsent" | "sent" | "stored" | "verified";

interface Successor {
  phase: "idle" | "reserved" | "listed" | "over";
  listed: number[];
}

interface State {
  /** Slots that hold an object. */
  stored: number[];
  /** Epoch in the reservation object; the writer's is 1. */
  reservedBy: number;
  network: number[];
  puts: Put[];
  next: number;
  acknowledged: number;
  isFenced: boolean;
  successors: Successor[];
  /** What the first successor to finish has found; null before. */
  recovered: number[] | null;
}

const successor = (): Successor => ({ phase: "idle", listed: [] });

const INITIAL: State = {
  stored: [],
  reservedBy: 1,
  network: [],
  puts: Array.from({ length: SLOTS }, () => "unsent"),
  next: 0,
  acknowledged: 0,
  isFenced: false,
  successors: [successor(), successor()],
  recovered: null,
};

type Add = (label: string, change: (next: State) => void) => void;

function writerSteps({ verifies }: Rules, s: State, add: Add): void {
  const maySend = verifies !== "before-put" || s.reservedBy === 1;
  if (!s.isFenced && s.next < SLOTS && maySend) {
    add(`writer puts ${s.next}`, (t) => {
      t.puts[t.next] = "sent";
      t.network.push(t.next++);
    });
  }
  for (const slot of s.network) {
    add(`store executes ${slot}`, (t) => {
      t.network.splice(t.network.indexOf(slot), 1);
      t.stored = [...t.stored, slot].toSorted((a, b) => a - b);
      t.puts[slot] = verifies === "after-put" ? "stored" : "verified";
    });
  }
  for (const [slot, put] of s.puts.entries()) {
    if (put !== "stored" || s.isFenced) continue;
    add(`writer verifies ${slot}`, (t) => {
      if (t.reservedBy === 1) t.puts[slot] = "verified";
      else t.isFenced = true;
    });
  }
  if (!s.isFenced && s.puts[s.acknowledged] === "verified") {
    add(`writer acknowledges ${s.acknowledged}`, (t) => void (t.acknowledged += 1));
  }
}

function successorSteps({ successorFirst }: Rules, s: State, index: number, add: Add): void {
  const epoch = index + 2;
  const { phase } = s.successors[index]!;
  const change = (label: string, work: (t: State, self: Successor) => void) =>
    add(`successor ${epoch} ${label}`, (t) => work(t, t.successors[index]!));
  const reserve = (to: Successor["phase"]) =>
    change("reserves", (t, self) => {
      t.reservedBy = epoch;
      self.phase = to;
    });
  const list = (to: Successor["phase"]) =>
    change("lists", (t, self) => {
      self.listed = [...t.stored];
      self.phase = to;
    });
  const finish = () =>
    change("finishes", (t, self) => {
      t.recovered ??= self.listed;
      self.phase = "over";
    });
  if (successorFirst === "reserve") {
    if (phase === "idle") reserve("reserved");
    if (phase === "reserved") list("listed");
    if (phase === "listed") finish();
  } else {
    if (phase === "idle") list("listed");
    if (phase === "listed") reserve("reserved");
    if (phase === "reserved") finish();
  }
}

function model(rules: Rules): Model<State> {
  return {
    initial: INITIAL,
    next(s) {
      const { steps, add } = stepsOf(s);
      writerSteps(rules, s, add);
      for (const index of s.successors.keys()) successorSteps(rules, s, index, add);
      return steps;
    },
    violation({ recovered, acknowledged }) {
      if (recovered === null) return null;
      const end = Array.from({ length: SLOTS }, (_, slot) => slot)
        .findIndex((slot) => !recovered.includes(slot));
      const found = end < 0 ? SLOTS : end;
      return acknowledged <= found ? null : `${acknowledged} acknowledged, ${found} recovered`;
    },
  };
}

test("A1 put, read the reservation, acknowledge: nothing is lost", () => {
  const result = explore(model({ verifies: "after-put", successorFirst: "reserve" }));
  assert.ok(result.ok, JSON.stringify(result));
  assert.ok(result.states > 1_000, `${result.states} states`);
});

const UNSAFE: Record<string, Rules> = {
  "A2 the reservation is never read again": { verifies: "never", successorFirst: "reserve" },
  "A3 it is read before the put": { verifies: "before-put", successorFirst: "reserve" },
  "A4 the successor lists before it reserves": { verifies: "after-put", successorFirst: "list" },
};
for (const [name, rules] of Object.entries(UNSAFE)) {
  test(`${name}: the checker finds the loss`, () => {
    assert.equal(explore(model(rules)).ok, false);
  });
}
