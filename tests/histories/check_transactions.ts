/** Rules about transactions: all or nothing, never too early, fenced producers, and copies made exactly once. */
import { type Done, type Facts, fateOf, type ReadSeen, type Tell, type Txn } from "./facts.ts";
import type { Init } from "./history.ts";

function txnOf(facts: Facts, value: string): Txn | undefined {
  const name = facts.byValue.get(value)?.call.txn;
  return name === undefined || name === null ? undefined : facts.txns.get(name);
}

/** Readers of committed records never see one of a transaction that is not to be committed. */
export function abortedShown(facts: Facts, tell: Tell): void {
  const fates = new Map([...facts.txns].map(([name, txn]) => [name, fateOf(txn)]));
  const look = (who: string, value: string) => {
    const txn = txnOf(facts, value);
    if (txn !== undefined && fates.get(txn.name) === "aborted") {
      tell(`${who}: ${value} of ${txn.name}`);
    }
  };
  for (const { call, result } of facts.reads) {
    if (call.isolation === "committed") {
      result.rows.forEach(([, value]) => look(call.reader, value));
    }
  }
  for (const { committed } of facts.finals.values()) {
    committed.forEach(([, value]) => look("final", value));
  }
}

/** Nor one that nobody has asked to commit yet. */
export function shownEarly(facts: Facts, tell: Tell): void {
  for (const { call, result, doneAt } of facts.reads) {
    if (call.isolation !== "committed") continue;
    for (const [offset, value] of result.rows) {
      const txn = txnOf(facts, value);
      const commits = txn?.ends.filter(({ call: end }) => end.commit) ?? [];
      if (commits.length > 0 && commits.every(({ invokedAt }) => invokedAt > doneAt)) {
        tell(`${call.reader}: ${call.partition}@${offset}: ${value} before its commit`);
      }
    }
  }
}

function whereShown(facts: Facts): Set<string> {
  const shown = new Set<string>();
  for (const { committed } of facts.finals.values()) {
    for (const [, value] of committed) shown.add(value);
  }
  return shown;
}

/** In the end all of a transaction is committed or nothing, over all of its partitions. */
export function transactionTorn(facts: Facts, tell: Tell): void {
  const shown = whereShown(facts);
  const written = new Map<string, string[]>();
  for (const { uncommitted } of facts.finals.values()) {
    for (const [, value] of uncommitted) {
      const txn = txnOf(facts, value);
      if (txn !== undefined) written.set(txn.name, [...written.get(txn.name) ?? [], value]);
    }
  }
  for (const [name, values] of written) {
    const hidden = values.filter((value) => !shown.has(value));
    const fate = fateOf(facts.txns.get(name)!);
    if (hidden.length > 0 && hidden.length < values.length) {
      tell(`${name} (${fate}): ${hidden.length} of ${values.length} are hidden, as ${hidden[0]}`);
    }
  }
}

/** A commit that was acknowledged shows everything that was acknowledged in it. */
export function commitLost(facts: Facts, tell: Tell): void {
  const shown = whereShown(facts);
  for (const txn of facts.txns.values()) {
    if (fateOf(txn) !== "committed") continue;
    for (const { call } of txn.produced.filter(({ outcome }) => outcome === "ok")) {
      const lost = call.values.find((value) => !shown.has(value));
      if (lost !== undefined) tell(`${txn.name}: ${lost} in ${call.partition} is not shown`);
    }
  }
}

/** The first moment at which anybody may have ended it: its client, a successor, its time-out. */
function openUntil({ startedAt, timeoutMs, ends, id }: Txn, inits: readonly Done<Init>[]): number {
  const successors = inits.filter(({ call, invokedAt }) => call.id === id && invokedAt > startedAt);
  return Math.min(
    startedAt + timeoutMs,
    ...ends.map(({ invokedAt }) => invokedAt),
    ...successors.map(({ invokedAt }) => invokedAt),
  );
}

/** The last stable offset stays at or below the first record of a transaction that is open. */
export function stablePassesOpen(facts: Facts, tell: Tell): void {
  const reads = new Map<string, ReadSeen[]>();
  for (const read of facts.reads) {
    if (read.result.lastStableOffset === undefined) continue;
    const list = reads.get(read.call.partition) ?? [];
    list.push(read);
    reads.set(read.call.partition, list);
  }
  for (const txn of facts.txns.values()) {
    const until = openUntil(txn, facts.inits);
    for (const { call, offset, outcome, doneAt } of txn.produced) {
      if (outcome !== "ok" || offset < 0) continue;
      for (const read of reads.get(call.partition) ?? []) {
        const isOpen = read.invokedAt > doneAt && read.doneAt < until;
        if (isOpen && read.result.lastStableOffset! > offset) {
          tell(
            `${call.partition}: ${read.result.lastStableOffset} while ${txn.name} is open at ${offset}`,
          );
        }
      }
    }
  }
}

/** Every transaction ends in time, also those that nobody ended. */
export function neverEnded(facts: Facts, tell: Tell): void {
  for (const { partition, highWatermark, lastStableOffset } of facts.finals.values()) {
    if (lastStableOffset !== highWatermark) {
      tell(`${partition}: stable up to ${lastStableOffset} of ${highWatermark}`);
    }
  }
}

/** Once a successor is there, nothing that its predecessor begins to do succeeds. */
export function zombieAcknowledged(facts: Facts, tell: Tell): void {
  const done = facts.inits.filter(({ outcome }) => outcome === "ok");
  for (const { name, id, producer, produced, ends } of facts.txns.values()) {
    const own = done.find(({ call }) => call.producer === producer);
    if (own === undefined) continue;
    const fencedAt = Math.min(
      ...done.filter(({ call, invokedAt }) =>
        call.id === id && call.producer !== producer && invokedAt > own.doneAt
      ).map(({ doneAt }) => doneAt),
    );
    for (const one of [...produced, ...ends]) {
      if (one.outcome === "ok" && one.invokedAt > fencedAt) {
        tell(`${one.call.f} of ${producer} in ${name}, after its successor was there`);
      }
    }
  }
}

/** The committed outputs are the committed inputs, each once; the group's offsets are behind the last. */
export function copiedOnce(facts: Facts, tell: Tell): void {
  for (const { group, outputs, positions } of facts.copied) {
    const copies = new Map<string, string[]>();
    for (const output of outputs) {
      for (const [, value] of facts.finals.get(output)?.committed ?? []) {
        const one = facts.byValue.get(value)?.call;
        const source = one?.sources?.[one.values.indexOf(value)] ?? "nothing";
        copies.set(source, [...copies.get(source) ?? [], value]);
      }
    }
    for (const [input, position] of Object.entries(positions)) {
      const rows = facts.finals.get(input)?.committed ?? [];
      for (const [offset] of rows) {
        const source = `${input}@${offset}`;
        const made = copies.get(source) ?? [];
        if (made.length === 0) tell(`${group}: ${source} was never copied`);
        if (made.length > 1) tell(`${group}: ${source} was copied as ${made.join(" and ")}`);
        copies.delete(source);
      }
      const last = rows.at(-1)?.[0] ?? -1;
      if (position <= last) tell(`${group}: is at ${position} of ${input}, which has ${last}`);
    }
    for (const [source, made] of copies) tell(`${group}: ${made[0]} is a copy of ${source}`);
  }
}
