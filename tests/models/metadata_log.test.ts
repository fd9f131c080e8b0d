/**
 * The metadata log on create-if-absent names: two writers whose creates get lost, delayed or repeated. What
 * must hold: an entry is reported committed only if it was the first at its position, at most once, and never
 * reported failed when it is in the log. Answers are resolved in three ways; only the token works.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { explore, type Model, stepsOf } from "./explore.ts";

interface Rules {
  /** How a create without an answer is judged: repeat and compare the token, call it failed, or look once. */
  readonly resolve: "token" | "assume-failed" | "head-once";
  /** Old entries are deleted, ascending. */
  readonly trim: boolean;
  /** Before a commit is reported: does the predecessor exist? */
  readonly checkPredecessor: boolean;
}

type Writer = {
  phase: "idle" | "waiting" | "looking" | "checking";
  /** Last position that it has applied, −1 for none. */
  known: number;
  at: number;
  token: string;
  /** Commands that it may still issue. */
  budget: number;
};

type State = {
  log: (string | null)[];
  /** First occupant of each position, also after its deletion. */
  first: (string | null)[];
  network: { at: number; token: string; writer: number }[];
  writers: Writer[];
  trimmedTo: number;
  committed: string[];
  failed: string[];
};

function initial(positions: number): State {
  const empty = () => Array.from({ length: positions }, () => null);
  const writer = (): Writer => ({ phase: "idle", known: -1, at: -1, token: "", budget: 2 });
  return {
    log: empty(),
    first: empty(),
    network: [],
    writers: [writer(), writer()],
    trimmedTo: 0,
    committed: [],
    failed: [],
  };
}

type Add = (label: string, change: (next: State) => void) => void;

function report(s: State, w: Writer): void {
  s.committed.push(`${w.token}@${w.at}`);
  w.known = w.at;
  w.phase = "idle";
}

function execute(s: State, index: number): string {
  const [request] = s.network.splice(index, 1);
  const { at, token } = request!;
  s.log[at] ??= token;
  s.first[at] ??= token;
  return s.log[at];
}

function writerSteps(s: State, index: number, add: Add): void {
  const w = s.writers[index]!;
  const change = (label: string, work: (t: State, w: Writer) => void) =>
    add(`writer ${index} ${label}`, (t) => work(t, t.writers[index]!));
  const next = w.known + 1;
  if (w.phase === "idle" && w.budget > 0 && next < s.log.length) {
    if (s.log[next] !== null) change(`reads ${next}`, (_, t) => void (t.known = next));
    else if (next < s.trimmedTo) {
      change("loads a snapshot", (t, self) => void (self.known = t.trimmedTo - 1));
    }
    change(`creates ${next}`, (t, self) => {
      const token = `${index}.${w.budget}`;
      Object.assign(self, { phase: "waiting", at: next, token, budget: w.budget - 1 });
      t.network.push({ at: next, token, writer: index });
    });
  }
  if (w.phase === "looking") {
    change(`looks at ${w.at}`, (t, self) => {
      if (t.log[w.at] === w.token) return report(t, self);
      t.failed.push(w.token);
      self.phase = "idle";
    });
  }
  if (w.phase === "checking") {
    change(`checks the predecessor of ${w.at}`, (t, self) => {
      const good = w.at === 0 ? t.trimmedTo === 0 : w.at > t.trimmedTo || t.log[w.at - 1] !== null;
      if (good) report(t, self);
      else self.phase = "idle";
    });
  }
}

/** The request's writer got no answer and decides by the rule. */
function silenceSteps(rules: Rules, s: State, index: number, add: Add): void {
  const request = s.network[index]!;
  const { token, writer } = request;
  if (rules.resolve === "token") {
    add(`answer of ${token} lost, put again`, (t) => {
      execute(t, index);
      t.network.push(request);
    });
    if (s.network.filter((other) => other.token === token).length < 2) {
      add(`${token} delayed, put again`, (t) => void t.network.push(request));
    }
  } else if (rules.resolve === "assume-failed") {
    add(`${token} timed out, called failed`, (t) => {
      t.writers[writer]!.phase = "idle";
      t.failed.push(token);
    });
  } else {
    const look = (t: State) => void (t.writers[writer]!.phase = "looking");
    add(`${token} timed out`, look);
    add(`${token} executed, answer lost`, (t) => {
      execute(t, index);
      look(t);
    });
  }
}

function networkSteps(rules: Rules, s: State, add: Add): void {
  for (const [index, { at, token, writer }] of s.network.entries()) {
    const { phase, token: awaited } = s.writers[writer]!;
    const isAwaited = phase === "waiting" && awaited === token;
    add(`store executes ${token} at ${at}`, (t) => {
      const mine = execute(t, index) === token;
      if (!isAwaited) return;
      const self = t.writers[writer]!;
      if (!mine) self.phase = "idle";
      else if (rules.checkPredecessor) self.phase = "checking";
      else report(t, self);
    });
    if (isAwaited) silenceSteps(rules, s, index, add);
  }
}

function violation(s: State): string | null {
  for (const commit of s.committed) {
    const [token, at] = commit.split("@");
    const owner = s.first[Number(at)];
    if (owner !== token) return `${token} reported committed at ${at}, which ${owner} owns`;
  }
  if (new Set(s.committed).size < s.committed.length) return "reported committed twice";
  const wrong = s.failed.find((token) => s.first.includes(token));
  return wrong === undefined ? null : `${wrong} reported failed, but is in the log`;
}

function model(rules: Rules, positions: number): Model<State> {
  return {
    initial: initial(positions),
    next(s) {
      const { steps, add } = stepsOf(s);
      for (const index of s.writers.keys()) writerSteps(s, index, add);
      networkSteps(rules, s, add);
      const last = s.log.findLastIndex((entry) => entry !== null);
      if (rules.trim && s.trimmedTo < last && s.log[s.trimmedTo] !== null) {
        add(`position ${s.trimmedTo} is deleted`, (t) => {
          t.log[t.trimmedTo] = null;
          t.trimmedTo += 1;
        });
      }
      return steps;
    },
    violation,
  };
}

test("L1 repeat until the name is taken, compare the token: every report is true", () => {
  const rules: Rules = { resolve: "token", trim: false, checkPredecessor: false };
  const result = explore(model(rules, 5));
  assert.ok(result.ok, JSON.stringify(result));
  assert.ok(result.states > 1_000);
});

const UNSAFE: Record<string, Rules> = {
  "L2 a timeout is called a failure": {
    resolve: "assume-failed",
    trim: false,
    checkPredecessor: false,
  },
  "L2b after a timeout one look decides": {
    resolve: "head-once",
    trim: false,
    checkPredecessor: false,
  },
  "L3 entries are deleted without a boundary": {
    resolve: "token",
    trim: true,
    checkPredecessor: false,
  },
  "L4 the predecessor's existence as a boundary (a ghost re-creates it)": {
    resolve: "token",
    trim: true,
    checkPredecessor: true,
  },
};
for (const [name, rules] of Object.entries(UNSAFE)) {
  test(`${name}: the checker finds the lie`, () => {
    assert.equal(explore(model(rules, 5)).ok, false);
  });
}
