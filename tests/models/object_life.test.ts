/**
 * The life of an object id: reserved, put, committed, destroyed, deleted, purged, with puts that land late, a
 * successor that raises the epoch, and a sweep of ids that were never committed. What must hold: what metadata
 * calls committed is in the store (I9). What may stay behind is garbage of late puts, which an audit by name
 * finds: nothing committed, nothing that a commit can still refer to.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { explore, type Model, stepsOf } from "./explore.ts";

/** How ids that nobody committed are found. */
type Sweep =
  /** All of an epoch that a later one has replaced; metadata first. */
  | "dead-epoch"
  /** By time, whoever holds them; metadata first. */
  | "expired"
  /** By the age of the object in the store; the store alone. */
  | "object-age";

type Stage = "reserved" | "committed" | "destroyed" | "purged";

interface Id {
  stage: Stage;
  isStored: boolean;
  /** What its writer has done so far. */
  writer: "nothing" | "put" | "committed";
  isDeleted: boolean;
}

interface State {
  epoch: 1 | 2;
  isWriterAlive: boolean;
  /** Id 0 is an upload, id 1 the output of a compaction that replaces it. */
  ids: Id[];
  /** Copies of puts that are still under way, by id. */
  network: number[];
}

const UPLOAD = 0;
const COMPACTION = 1;

function reserved(): Id {
  return { stage: "reserved", isStored: false, writer: "nothing", isDeleted: false };
}

const INITIAL: State = {
  epoch: 1,
  isWriterAlive: true,
  ids: [reserved(), reserved()],
  network: [],
};

type Add = (label: string, change: (next: State) => void) => void;

function writerSteps(s: State, add: Add): void {
  if (!s.isWriterAlive) return;
  add("the writer dies", (t) => void (t.isWriterAlive = false));
  for (const [index, id] of s.ids.entries()) {
    const hasInput = index === UPLOAD || s.ids[UPLOAD]!.stage === "committed";
    if (id.writer === "nothing" && hasInput) {
      add(`the writer puts ${index}, a copy stays under way`, (t) => {
        Object.assign(t.ids[index]!, { isStored: true, writer: "put" });
        t.network.push(index);
      });
    }
    if (id.writer === "put") add(`the writer commits ${index}`, (t) => commit(t, index));
  }
}

/** Refused for a superseded epoch, and for an id that is not reserved any more. */
function commit(s: State, index: number): void {
  const id = s.ids[index]!;
  id.writer = "committed";
  if (s.epoch !== 1 || id.stage !== "reserved") return;
  const input = s.ids[UPLOAD]!;
  if (index === COMPACTION && input.stage !== "committed") return;
  id.stage = "committed";
  if (index === COMPACTION) input.stage = "destroyed";
}

function collectorSteps(sweep: Sweep, s: State, add: Add): void {
  for (const [index, { stage, isStored, isDeleted }] of s.ids.entries()) {
    const change = (label: string, work: (id: Id) => void) =>
      add(`${label} ${index}`, (t) => work(t.ids[index]!));
    if (stage === "destroyed") {
      change("the collector deletes", (id) => {
        id.isStored = false;
        id.isDeleted = true;
      });
      if (isDeleted) change("the collector purges", (id) => void (id.stage = "purged"));
    }
    if (stage !== "reserved") continue;
    if (sweep === "expired" || (sweep === "dead-epoch" && s.epoch === 2)) {
      change("the sweep destroys", (id) => void (id.stage = "destroyed"));
    }
    if (sweep === "object-age" && isStored) {
      change("the sweep deletes", (id) => void (id.isStored = false));
    }
  }
}

function model(sweep: Sweep): Model<State> {
  return {
    initial: INITIAL,
    next(s) {
      const { steps, add } = stepsOf(s);
      writerSteps(s, add);
      collectorSteps(sweep, s, add);
      for (const [at, index] of s.network.entries()) {
        add(`a late put of ${index} lands`, (t) => {
          t.network.splice(at, 1);
          t.ids[index]!.isStored = true;
        });
      }
      if (s.epoch === 1) add("a successor registers", (t) => void (t.epoch = 2));
      return steps;
    },
    violation(s) {
      const lost = s.ids.findIndex(({ stage, isStored }) => stage === "committed" && !isStored);
      return lost < 0 ? null : `object ${lost} is committed and not in the store`;
    },
  };
}

/** The same with "an object that nothing refers to stays for good" as the broken rule. */
function withLeaks(sweep: Sweep): Model<State> {
  const base = model(sweep);
  return {
    ...base,
    violation(s) {
      const isOver = s.network.length === 0 && base.next(s).every(({ state }) => same(state, s));
      const leaked = s.ids.findIndex(({ stage, isStored }) => isStored && stage !== "committed");
      return isOver && leaked >= 0 ? `object ${leaked} stays for good` : null;
    },
  };
}

function same(a: State, b: State): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

const SAFE: Record<string, Sweep> = {
  "O1 sweep of dead epochs, metadata first": "dead-epoch",
  "O2 sweep by the id's age, metadata first": "expired",
};
for (const [name, sweep] of Object.entries(SAFE)) {
  test(`${name}: what is committed is there`, () => {
    const result = explore(model(sweep));
    assert.ok(result.ok, JSON.stringify(result));
    assert.ok(result.states > 400, `${result.states} states`);
  });
  test(`${name}: a put that lands after the purge is what an audit is for`, () => {
    const result = explore(withLeaks(sweep));
    assert.equal(result.ok, false);
    if (!result.ok) assert.ok(result.trace.some((label) => label.startsWith("a late put")));
  });
}

test("O3 sweep by the object's age alone: the checker finds the loss", () => {
  const result = explore(model("object-age"));
  assert.equal(result.ok, false);
});
