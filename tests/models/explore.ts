/**
 * A small explicit-state model checker: breadth first over all interleavings, so a violation comes with a
 * shortest trace. States are plain data; two states are the same when their JSON is.
 */

export interface Step<S> {
  readonly label: string;
  readonly state: S;
}

export interface Model<S> {
  readonly initial: S;
  readonly next: (state: S) => readonly Step<S>[];
  /** The broken rule, or null. */
  readonly violation: (state: S) => string | null;
}

export type Exploration =
  | { readonly ok: true; readonly states: number }
  | { readonly ok: false; readonly broken: string; readonly trace: readonly string[] };

/** Far above the largest model: a model that grows past it is an error of the model. */
const STATES_MAX = 1_000_000;

interface Visited {
  readonly from: string | null;
  readonly label: string;
}

function traceTo(visited: ReadonlyMap<string, Visited>, key: string): string[] {
  const labels: string[] = [];
  for (let at: string | null = key; at !== null;) {
    const found: Visited = visited.get(at)!;
    labels.unshift(found.label);
    at = found.from;
  }
  return labels;
}

export function explore<S>(model: Model<S>): Exploration {
  const start = JSON.stringify(model.initial);
  const visited = new Map<string, Visited>([[start, { from: null, label: "start" }]]);
  // A key is the state: keeping keys alone in the queue keeps memory at one copy per state.
  let frontier: string[] = [start];
  while (frontier.length > 0) {
    const following: string[] = [];
    for (const key of frontier) {
      const state = JSON.parse(key) as S;
      const broken = model.violation(state);
      if (broken !== null) return { ok: false, broken, trace: traceTo(visited, key) };
      for (const step of model.next(state)) {
        const reached = JSON.stringify(step.state);
        if (visited.has(reached)) continue;
        visited.set(reached, { from: key, label: step.label });
        following.push(reached);
      }
      if (visited.size > STATES_MAX) throw new Error(`Model has more than ${STATES_MAX} states`);
    }
    frontier = following;
  }
  return { ok: true, states: visited.size };
}

/** Collects steps: each is a change of a copy of the state. */
export function stepsOf<S>(state: S) {
  const steps: Step<S>[] = [];
  const text = JSON.stringify(state);
  return {
    steps,
    add(label: string, change: (next: S) => void): void {
      const next = JSON.parse(text) as S;
      change(next);
      steps.push({ label, state: next });
    },
  };
}
