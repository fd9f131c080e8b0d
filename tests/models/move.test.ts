/**
 * A partition moves from one node to another: by agreement, or because the old one died or seemed to. Offsets
 * are single records, one per WAL slot of the old leader. What must hold: no offset is acknowledged by both,
 * and what the old leader acknowledged lies below the end at which the stream was closed.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { explore, type Model, stepsOf } from "./explore.ts";

interface Rules {
  /** Where the old leader closes its stream. */
  readonly closesAt: "drained-end" | "acknowledged-end";
  /** What the new leader waits for. */
  readonly opens: "after-close" | "after-a-while";
  /** Whether a recovery seals the first empty slot. */
  readonly seals: boolean;
}

const SLOTS = 3;
const WINDOW = 2;
const DESIGNED: Rules = { closesAt: "drained-end", opens: "after-close", seals: true };

interface Old {
  isUp: boolean;
  /** It has seen that it leads no more, and takes no more records. */
  isStopped: boolean;
  isFenced: boolean;
  next: number;
  network: number[];
  stored: number[];
  acknowledged: number;
}

interface State {
  slots: ("data" | "seal" | null)[];
  leader: "old" | "new";
  /** Who has the stream open. */
  open: "old" | "new" | null;
  /** Its end in metadata while nobody, or only the new leader, has it open. */
  end: number;
  oldEpoch: 1 | 2;
  old: Old;
  recovery: { phase: "none" | "scan" | "close" | "over"; slot: number };
  /** First offset that the new leader gives away next, −1 before it has opened. */
  newNext: number;
  byNew: number[];
}

const INITIAL: State = {
  slots: Array.from({ length: SLOTS }, () => null),
  leader: "old",
  open: "old",
  end: 0,
  oldEpoch: 1,
  old: {
    isUp: true,
    isStopped: false,
    isFenced: false,
    next: 0,
    network: [],
    stored: [],
    acknowledged: 0,
  },
  recovery: { phase: "none", slot: 0 },
  newNext: -1,
  byNew: [],
};

type Add = (label: string, change: (next: State) => void) => void;

function produceSteps({ old }: State, add: Add): void {
  const takes = old.isUp && !old.isFenced && !old.isStopped;
  if (takes && old.next < SLOTS && old.network.length < WINDOW) {
    add(`old leader puts ${old.next}`, (t) => void t.old.network.push(t.old.next++));
  }
  for (const slot of old.network) {
    add(`store executes ${slot}`, (t) => {
      t.old.network.splice(t.old.network.indexOf(slot), 1);
      const isMine = t.slots[slot] === null;
      t.slots[slot] ??= "data";
      if (!t.old.isUp) return;
      if (isMine) t.old.stored.push(slot);
      else t.old.isFenced = true;
    });
  }
  if (old.isUp && old.stored.includes(old.acknowledged)) {
    add(`old leader acknowledges ${old.acknowledged}`, (t) => void (t.old.acknowledged += 1));
  }
}

function leaveSteps({ closesAt }: Rules, s: State, add: Add): void {
  const { old } = s;
  if (s.leader === "old") add("leadership moves", (t) => void (t.leader = "new"));
  if (!old.isUp) return;
  add("old leader dies", (t) => void (t.old.isUp = false));
  if (s.leader === "new" && !old.isStopped) {
    add("old leader stops taking records", (t) => void (t.old.isStopped = true));
  }
  const mayClose = old.isStopped && !old.isFenced && s.open === "old" && s.oldEpoch === 1;
  const isDrained = old.network.length === 0 && old.acknowledged === old.next;
  if (!mayClose || (closesAt === "drained-end" && !isDrained)) return;
  add(`old leader closes at ${old.acknowledged}`, (t) => {
    t.open = null;
    t.end = t.old.acknowledged;
  });
}

/** May begin at any time: whoever begins it may be wrong about the old leader's death. */
function recoverySteps({ seals }: Rules, s: State, add: Add): void {
  const { phase, slot } = s.recovery;
  const change = (label: string, work: (t: State) => void) => add(`recovery ${label}`, work);
  const toClose = (t: State) => void (t.recovery.phase = "close");
  if (phase === "none") {
    change("begins", (t) => {
      t.oldEpoch = 2;
      t.leader = "new";
      t.recovery.phase = "scan";
    });
  } else if (phase === "scan" && slot < SLOTS && s.slots[slot] === "data") {
    change(`reads ${slot}`, (t) => void (t.recovery.slot += 1));
  } else if (phase === "scan" && slot < SLOTS && seals) {
    change(`seals ${slot}`, (t) => {
      t.slots[slot] = "seal";
      toClose(t);
    });
  } else if (phase === "scan") {
    change(`takes ${slot} for the end`, toClose);
  } else if (phase === "close") {
    change(`closes at ${slot}`, (t) => {
      t.recovery.phase = "over";
      if (t.open !== "old") return;
      t.open = null;
      t.end = slot;
    });
  }
}

function arriveSteps({ opens }: Rules, s: State, add: Add): void {
  const mayOpen = s.open === null || (opens === "after-a-while" && s.open === "old");
  if (s.leader === "new" && s.newNext < 0 && mayOpen) {
    add(`new leader opens at ${s.end}`, (t) => {
      t.open = "new";
      t.newNext = t.end;
    });
  }
  if (s.newNext >= 0 && s.byNew.length === 0) {
    add(`new leader acknowledges ${s.newNext}`, (t) => void t.byNew.push(t.newNext++));
  }
}

function violation({ old, open, end, byNew }: State): string | null {
  const both = byNew.find((offset) => offset < old.acknowledged);
  if (both !== undefined) return `offset ${both} is acknowledged by both`;
  if (open === "old" || old.acknowledged <= end) return null;
  return `${old.acknowledged - 1} is acknowledged, the stream ends at ${end}`;
}

function model(rules: Rules): Model<State> {
  return {
    initial: INITIAL,
    next(s) {
      const { steps, add } = stepsOf(s);
      produceSteps(s, add);
      leaveSteps(rules, s, add);
      recoverySteps(rules, s, add);
      arriveSteps(rules, s, add);
      return steps;
    },
    violation,
  };
}

test("P1 as designed: nothing acknowledged is lost or given away twice", () => {
  const result = explore(model(DESIGNED));
  assert.ok(result.ok, JSON.stringify(result));
  assert.ok(result.states > 1_000, `${result.states} states`);
});

const UNSAFE: Record<string, Rules> = {
  "P2 closed without waiting for puts under way": { ...DESIGNED, closesAt: "acknowledged-end" },
  "P3 opened after a while": { ...DESIGNED, opens: "after-a-while" },
  "P4 recovered without a seal": { ...DESIGNED, seals: false },
};
for (const [name, rules] of Object.entries(UNSAFE)) {
  test(`${name}: the checker finds it`, () => {
    assert.equal(explore(model(rules)).ok, false);
  });
}
