/**
 * The fencing protocol of the WAL: one writer with a window of PUTs whose answers get lost, two recoverers
 * that bump the epoch and seal the first empty slot, trims, and garbage collection. What must hold: a slot
 * that was acknowledged lies below the sealed end, for ever. Each rule of the protocol is switched off once
 * and must then be missed.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { explore, type Model, stepsOf } from "./explore.ts";

interface Rules {
  readonly window: number;
  /** Acknowledge a slot only after all lower ones. */
  readonly inOrder: boolean;
  /** Bump the epoch in the metadata log before the trim point is read. */
  readonly bumpFirst: boolean;
  /** Create-if-absent; false overwrites. */
  readonly conditional: boolean;
  /** Repeats of a PUT whose answer did not come. */
  readonly retries: number;
  /** Garbage collection deletes the seal too. */
  readonly sealDeleted: boolean;
  /** The writer acknowledges nothing on proof older than the seal's life. */
  readonly ageRule: boolean;
}

const SLOTS = 4;
const RECOMMENDED: Rules = {
  window: 2,
  inOrder: true,
  bumpFirst: true,
  conditional: true,
  retries: 1,
  sealDeleted: false,
  ageRule: false,
};

type PutState = "unsent" | "sent" | "stored";
type Recoverer = {
  phase: "idle" | "scan" | "seal" | "sealed" | "ended";
  slot: number;
};

type State = {
  /** Who fills each slot: "data", "seal" or nobody. */
  slots: ("data" | "seal" | null)[];
  epoch: number;
  walTrim: number;
  /** The end in metadata once a recovery is finished, −1 before. */
  sealedEnd: number;
  /** The writer's PUTs that the store may execute at any time. */
  network: number[];
  puts: PutState[];
  nextSlot: number;
  acknowledgedTo: number;
  acknowledged: number[];
  fenced: boolean;
  deletedTo: number;
  retries: number;
  recoverers: Recoverer[];
  collected: boolean;
};

function initial(rules: Rules): State {
  return {
    slots: Array.from({ length: SLOTS }, () => null),
    epoch: 1,
    walTrim: 0,
    sealedEnd: -1,
    network: [],
    puts: Array.from({ length: SLOTS }, () => "unsent"),
    nextSlot: 0,
    acknowledgedTo: 0,
    acknowledged: [],
    fenced: false,
    deletedTo: 0,
    retries: rules.retries,
    recoverers: [{ phase: "idle", slot: 0 }, { phase: "idle", slot: 0 }],
    collected: false,
  };
}

function acknowledge(rules: Rules, s: State): void {
  while (s.puts[s.acknowledgedTo] === "stored") s.acknowledgedTo += 1;
  s.acknowledged = [...s.puts.keys()].filter((slot) =>
    rules.inOrder ? slot < s.acknowledgedTo : s.puts[slot] === "stored"
  );
}

/** The store executes a request; true when the slot holds the writer's data afterwards. */
function execute(rules: Rules, s: State, slot: number): boolean {
  s.network.splice(s.network.indexOf(slot), 1);
  if (!rules.conditional || s.slots[slot] === null) s.slots[slot] = "data";
  return s.slots[slot] === "data";
}

function hearAnswer(rules: Rules, s: State, slot: number, mine: boolean): void {
  if (s.fenced) return;
  if (!mine || (rules.ageRule && s.collected)) {
    s.fenced = true;
    return;
  }
  s.puts[slot] = "stored";
  acknowledge(rules, s);
}

type Add = (label: string, change: (next: State) => void) => void;

function writerSteps(rules: Rules, s: State, add: Add): void {
  if (!s.fenced && s.nextSlot < SLOTS && s.nextSlot - s.acknowledgedTo < rules.window) {
    add(`writer puts ${s.nextSlot}`, (t) => {
      t.network.push(t.nextSlot);
      t.puts[t.nextSlot] = "sent";
      t.nextSlot += 1;
    });
  }
  for (const slot of new Set(s.network)) {
    add(`store executes ${slot}, writer hears`, (t) => {
      hearAnswer(rules, t, slot, execute(rules, t, slot));
    });
    if (s.retries === 0 || s.puts[slot] !== "sent") continue;
    add(`store executes ${slot}, answer lost, put again`, (t) => {
      execute(rules, t, slot);
      t.retries -= 1;
      t.network.push(slot);
    });
    add(`put of ${slot} delayed, put again`, (t) => {
      t.retries -= 1;
      t.network.push(slot);
    });
  }
  if (s.acknowledgedTo > s.walTrim && s.epoch === 1 && !s.fenced) {
    add(`writer commits trim ${s.acknowledgedTo}`, (t) => {
      t.walTrim = t.acknowledgedTo;
    });
  }
  if (s.deletedTo < s.walTrim) {
    add(`writer deletes ${s.deletedTo}`, (t) => {
      t.slots[t.deletedTo] = null;
      t.deletedTo += 1;
    });
  }
}

function recovererSteps(rules: Rules, s: State, index: number, add: Add): void {
  const { phase, slot } = s.recoverers[index]!;
  const epoch = index + 2;
  const change = (label: string, work: (t: State, r: Recoverer) => void) =>
    add(`recoverer ${epoch} ${label}`, (t) => work(t, t.recoverers[index]!));
  const canBegin = s.epoch < epoch && s.sealedEnd < 0;
  if (phase === "idle" && (canBegin || !rules.bumpFirst)) {
    change("begins", (t, r) => {
      if (rules.bumpFirst) t.epoch = epoch;
      Object.assign(r, { phase: "scan", slot: t.walTrim });
    });
  } else if (phase === "scan" && (slot >= SLOTS || s.slots[slot] === "seal")) {
    change(`finds the end ${slot}`, (_, r) => void (r.phase = "sealed"));
  } else if (phase === "scan") {
    if (s.slots[slot] === "data") change(`reads ${slot}`, (_, r) => void (r.slot += 1));
    else change(`sees ${slot} empty`, (_, r) => void (r.phase = "seal"));
  } else if (phase === "seal") {
    change(`seals ${slot}`, (t, r) => {
      r.phase = t.slots[slot] === null ? "sealed" : "scan";
      t.slots[slot] ??= "seal";
    });
  } else if (phase === "sealed") {
    change("finishes", (t, r) => {
      r.phase = "ended";
      const allowed = rules.bumpFirst ? t.epoch === epoch : t.epoch < epoch;
      if (!allowed || t.sealedEnd >= 0) return;
      t.epoch = epoch;
      t.sealedEnd = slot;
    });
  }
}

function model(rules: Rules): Model<State> {
  return {
    initial: initial(rules),
    next(s) {
      const { steps, add } = stepsOf(s);
      writerSteps(rules, s, add);
      for (const index of s.recoverers.keys()) recovererSteps(rules, s, index, add);
      if (s.sealedEnd >= 0 && !s.collected) {
        add("garbage is collected", (t) => {
          t.collected = true;
          t.slots = t.slots.map((held) => held === "seal" && !rules.sealDeleted ? held : null);
        });
      }
      return steps;
    },
    violation(s) {
      if (s.sealedEnd < 0) return null;
      const bad = s.acknowledged.find((slot) => slot >= s.sealedEnd);
      return bad === undefined ? null : `slot ${bad} acknowledged, but the end is ${s.sealedEnd}`;
    },
  };
}

const SAFE: Record<string, Rules> = {
  "W1 as designed, window of two": RECOMMENDED,
  "W2 as designed, window of three": { ...RECOMMENDED, window: 3 },
  "W4 seal deleted after T_SEAL, writer obeys the age rule": {
    ...RECOMMENDED,
    sealDeleted: true,
    ageRule: true,
  },
};

const UNSAFE: Record<string, Rules> = {
  "W3 seal deleted, no age rule": { ...RECOMMENDED, sealDeleted: true },
  "W5 acknowledged out of order": { ...RECOMMENDED, inOrder: false },
  "W6 trim point read before the epoch is bumped": { ...RECOMMENDED, bumpFirst: false },
  "W7 PUT without a condition": { ...RECOMMENDED, conditional: false, retries: 0 },
};

for (const [name, rules] of Object.entries(SAFE)) {
  test(`${name}: no acknowledged slot is lost`, () => {
    const result = explore(model(rules));
    assert.ok(result.ok, JSON.stringify(result));
    assert.ok(result.states > 1_000);
  });
}
for (const [name, rules] of Object.entries(UNSAFE)) {
  test(`${name}: the checker finds the loss`, () => {
    const result = explore(model(rules));
    assert.equal(result.ok, false);
  });
}
