/** A history by operation, partition and transaction, for the checker. Knows nothing of the broker. */
import type {
  Call,
  End,
  Event,
  Init,
  Produce,
  ProduceResult,
  Read,
  ReadResult,
} from "./history.ts";

export interface Done<C extends Call> {
  readonly call: C;
  readonly invokedAt: number;
  /** Infinity: no end was seen, or one that says nothing. */
  readonly doneAt: number;
  readonly outcome: "ok" | "fail" | "info";
}

export type Produced = Done<Produce> & { readonly offset: number };
export type ReadSeen = Done<Read> & { readonly result: ReadResult };
export type Final = Extract<Event, { kind: "final" }>;
export type Copied = Extract<Event, { kind: "copied" }>;
export type Tell = (what: string) => void;
export type Fate = "committed" | "aborted" | "unknown";

export interface Txn {
  readonly name: string;
  readonly id: string;
  readonly producer: string;
  readonly startedAt: number;
  readonly timeoutMs: number;
  readonly produced: Produced[];
  readonly ends: Done<End>[];
}

export interface Facts {
  readonly produced: readonly Produced[];
  /** By value: no two operations have a value in common. */
  readonly byValue: ReadonlyMap<string, Produced>;
  readonly inits: readonly Done<Init>[];
  /** Those that were answered. */
  readonly reads: readonly ReadSeen[];
  readonly txns: ReadonlyMap<string, Txn>;
  readonly finals: ReadonlyMap<string, Final>;
  readonly copied: readonly Copied[];
}

/** Only what nobody asked to commit is certainly aborted: a commit without an answer may have happened. */
export function fateOf({ ends }: Txn): Fate {
  const commits = ends.filter(({ call }) => call.commit);
  if (commits.some(({ outcome }) => outcome === "ok")) return "committed";
  return commits.some(({ outcome }) => outcome === "info") ? "unknown" : "aborted";
}

export function partitionsOf({ produced, finals }: Facts): string[] {
  return [...new Set([...finals.keys(), ...produced.map(({ call }) => call.partition)])];
}

type Ending = Exclude<Extract<Event, { op: number }>, { kind: "invoke" }>;

function isCall<C extends Call>(call: Call, f: C["f"]): call is C {
  return call.f === f;
}

export function factsOf(events: readonly Event[]): Facts {
  const endings = new Map<number, Ending>();
  const txns = new Map<string, Txn>();
  const finals = new Map<string, Final>();
  const copied: Copied[] = [];
  for (const event of events) {
    if (event.kind === "txn") {
      const { txn: name, id, producer, timeoutMs, at: startedAt } = event;
      txns.set(name, { name, id, producer, timeoutMs, startedAt, produced: [], ends: [] });
    } else if (event.kind === "final") finals.set(event.partition, event);
    else if (event.kind === "copied") copied.push(event);
    else if (event.kind !== "invoke") endings.set(event.op, event);
  }
  const produced: Produced[] = [];
  const byValue = new Map<string, Produced>();
  const inits: Done<Init>[] = [];
  const reads: ReadSeen[] = [];
  for (const event of events) {
    if (event.kind !== "invoke") continue;
    const { call, at: invokedAt } = event;
    const end = endings.get(event.op);
    const outcome = end?.kind ?? "info";
    const base = { invokedAt, outcome, doneAt: outcome === "info" ? Infinity : end!.at };
    const result = end?.kind === "ok" ? end.result : null;
    if (isCall<Produce>(call, "produce")) {
      const one = { ...base, call, offset: (result as ProduceResult | null)?.offset ?? -1 };
      produced.push(one);
      for (const value of call.values) byValue.set(value, one);
      if (call.txn !== null) txns.get(call.txn)?.produced.push(one);
    } else if (isCall<End>(call, "end")) txns.get(call.txn)?.ends.push({ ...base, call });
    else if (isCall<Init>(call, "init")) inits.push({ ...base, call });
    else if (result !== null) reads.push({ ...base, call, result: result as ReadResult });
  }
  return { produced, byValue, inits, reads, txns, finals, copied };
}

/** For each of `later`, all of `earlier` that were over before it was invoked; in order of the invocations. */
export function inRealTime<A extends Done<Call>, B extends Done<Call>>(
  earlier: readonly A[],
  later: readonly B[],
  { over, starts }: { over(one: A): void; starts(one: B): void },
): void {
  const ended = earlier.toSorted((a, b) => a.doneAt - b.doneAt);
  let at = 0;
  for (const one of later.toSorted((a, b) => a.invokedAt - b.invokedAt)) {
    while (at < ended.length && ended[at]!.doneAt < one.invokedAt) over(ended[at++]!);
    starts(one);
  }
}
