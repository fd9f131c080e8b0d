/**
 * The metadata log with deletion: a durable boundary (a snapshot) is advanced before entries below it are
 * deleted. A writer or reader whose view of the tail is old must look at the boundary first; by the time of a
 * deletion every older view has passed T_ACK. What must hold: a commit is reported, and an entry applied, only
 * if it was the first at its position.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { explore, type Model, stepsOf } from "./explore.ts";

type CheckBoundary = "always" | "when-stale" | "never";

type Writer = {
  phase: "idle" | "waiting" | "checking";
  known: number;
  at: number;
  token: string;
  budget: number;
  /** Its last look at the tail is older than T_ACK. */
  stale: boolean;
};

type State = {
  log: (string | null)[];
  first: (string | null)[];
  network: { at: number; token: string; writer: number }[];
  writers: Writer[];
  /** Entries up to here are in a snapshot, −1 for none. */
  boundary: number;
  broken: string | null;
};

function initial(positions: number, budget: number): State {
  const empty = () => Array.from({ length: positions }, () => null);
  const writer = (): Writer => ({
    phase: "idle",
    known: -1,
    at: -1,
    token: "",
    budget,
    stale: false,
  });
  return {
    log: empty(),
    first: empty(),
    network: [],
    writers: [writer(), writer()],
    boundary: -1,
    broken: null,
  };
}

type Add = (label: string, change: (next: State) => void) => void;

function mustCheck(mode: CheckBoundary, w: Writer): boolean {
  return mode === "always" || (mode === "when-stale" && w.stale);
}

function report(s: State, w: Writer): void {
  if (s.first[w.at] !== w.token) s.broken = `${w.token} reported at ${w.at}, not its first`;
  w.known = w.at;
  w.phase = "idle";
}

function idleSteps(mode: CheckBoundary, s: State, index: number, add: Add): void {
  const w = s.writers[index]!;
  const change = (label: string, work: (t: State, w: Writer) => void) =>
    add(`writer ${index} ${label}`, (t) => work(t, t.writers[index]!));
  if (mustCheck(mode, w) && w.known < s.boundary) {
    return change("loads the snapshot", (t, self) => {
      Object.assign(self, { known: t.boundary, stale: false });
    });
  }
  if (mustCheck(mode, w) && w.stale) {
    change("confirms the tail", (_, self) => void (self.stale = false));
  }
  const next = w.known + 1;
  if (next >= s.log.length) return;
  const entry = s.log[next];
  if (entry != null && !w.stale) {
    change(`reads ${next}`, (t, self) => {
      self.known = next;
      if (t.first[next] !== entry) t.broken = `writer ${index} applied the ghost ${entry}`;
    });
  }
  if (w.budget > 0 && (!w.stale || mode !== "when-stale")) {
    change(`creates ${next}`, (t, self) => {
      const token = `${index}.${w.budget}`;
      Object.assign(self, { phase: "waiting", at: next, token, budget: w.budget - 1 });
      t.network.push({ at: next, token, writer: index });
    });
  }
}

function checkSteps(s: State, index: number, add: Add): void {
  const { at } = s.writers[index]!;
  add(`writer ${index} checks the boundary`, (t) => {
    const self = t.writers[index]!;
    self.stale = false;
    if (at > t.boundary) return report(t, self);
    self.phase = "idle";
    self.known = Math.max(self.known, t.boundary);
  });
}

function execute(s: State, index: number): string {
  const [request] = s.network.splice(index, 1);
  const { at, token } = request!;
  s.log[at] ??= token;
  s.first[at] ??= token;
  return s.log[at];
}

function networkSteps(mode: CheckBoundary, s: State, add: Add): void {
  for (const [index, request] of s.network.entries()) {
    const { at, token, writer } = request;
    const { phase, token: awaited } = s.writers[writer]!;
    const isAwaited = phase === "waiting" && awaited === token;
    add(`store executes ${token} at ${at}`, (t) => {
      const mine = execute(t, index) === token;
      if (!isAwaited) return;
      const self = t.writers[writer]!;
      if (!mine) self.phase = "idle";
      else if (mustCheck(mode, self)) self.phase = "checking";
      else report(t, self);
    });
    const copies = s.network.filter((other) => other.token === token).length;
    if (!isAwaited || copies >= 2) continue;
    add(`answer of ${token} lost, put again`, (t) => {
      execute(t, index);
      t.network.push(request);
    });
    add(`${token} delayed, put again`, (t) => void t.network.push(request));
  }
}

function boundarySteps(s: State, add: Add): void {
  const last = s.first.findLastIndex((entry) => entry !== null);
  if (s.boundary < last - 1) {
    add(`boundary moves to ${last - 1}`, (t) => void (t.boundary = last - 1));
  }
  for (let at = 0; at <= s.boundary; at++) {
    if (s.log[at] === null) continue;
    add(`position ${at} is deleted`, (t) => {
      t.log[at] = null;
      for (const w of t.writers) {
        if (w.known < at || (w.phase === "waiting" && w.at <= at)) w.stale = true;
      }
    });
  }
}

function model(mode: CheckBoundary, positions: number, budget: number): Model<State> {
  return {
    initial: initial(positions, budget),
    next(s) {
      const { steps, add } = stepsOf(s);
      for (const [index, { phase }] of s.writers.entries()) {
        if (phase === "idle") idleSteps(mode, s, index, add);
        if (phase === "checking") checkSteps(s, index, add);
      }
      networkSteps(mode, s, add);
      boundarySteps(s, add);
      return steps;
    },
    violation: (s) => s.broken,
  };
}

// Three positions keep each run near a second; four give the same answers (about 290,000 states).
for (const mode of ["always", "when-stale"] as const) {
  test(`boundary checked ${mode} (${mode === "always" ? "L5" : "L6"}): every report is true`, () => {
    const result = explore(model(mode, 3, 2));
    assert.ok(result.ok, JSON.stringify(result));
    assert.ok(result.states > 1_000);
  });
}

test("boundary never checked (L7): the checker finds the lie", () => {
  assert.equal(explore(model("never", 3, 2)).ok, false);
});
