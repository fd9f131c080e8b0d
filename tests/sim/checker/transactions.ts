/**
 * What transactional clients did and were told, and the promises that follow from it: a transaction whose commit
 * was answered is seen whole, one that was not to be committed never, one whose end had no answer is one or the
 * other for ever; the last stable offset waits for what is open; epochs grow, and who was followed writes nothing.
 */
import type { Cluster } from "../cluster.ts";
import type { World } from "../world.ts";
import { name, type PartitionHistory, watermarkSeen } from "./history.ts";
import type { SeenRecord } from "./log_view.ts";

/** `unknown`: its commit was asked, and no answer says what became of it. */
export type Outcome = "open" | "unknown" | "committed" | "aborted";

export interface TxnRecord {
  readonly txn: Txn;
  readonly history: PartitionHistory;
  readonly id: string;
  readonly key: string;
  readonly isDeletion: boolean;
  readonly isCompacted: boolean;
  /** Its producer had been followed before it was sent. */
  readonly isLate: boolean;
  offset: number | null;
  ackedMs: number;
}

export interface Txn {
  readonly name: string;
  readonly transactionalId: string;
  readonly instance: string;
  readonly epoch: number;
  /** Of its transactional id, by the order in which epochs were given and transactions begun. */
  readonly order: number;
  readonly timeoutMs: number;
  readonly records: TxnRecord[];
  /** Offset that it commits for the group of its id; null when none was accepted. */
  offset: number | null;
  /** When it may have begun on the broker at the earliest. */
  beganMs: number;
  outcome: Outcome;
  committedMs: number;
  /** Somebody may have ended it: an end or an initialisation of its id was sent. */
  mayBeEnded: boolean;
}

export interface Given {
  readonly producerId: number;
  readonly epoch: number;
}

/** A request for an identity, on its way from one moment to another at which it was answered. */
export interface Initialising {
  readonly instance: string;
  readonly sentMs: number;
  /** What its answer has to exceed. */
  readonly before: Given | null;
  /** Where it may still wait for its turn. */
  readonly processes: ReturnType<Cluster["processes"]>;
  answeredMs: number;
}

interface Id {
  readonly attempts: Initialising[];
  /** The newest identity that an answer told of. */
  newest: (Given & { readonly instance: string }) | null;
  readonly txns: Txn[];
  /** Largest offset of its group that was read, by the process that showed it. */
  readonly offsets: Map<number, number>;
}

export class TransactionLedger {
  readonly #world: World;
  readonly #cluster: Cluster;
  readonly #ids = new Map<string, Id>();
  readonly #records = new Map<string, TxnRecord>();
  /** Who was given a producer id and epoch. */
  readonly #owners = new Map<string, string>();
  readonly #stable = new Map<PartitionHistory, Map<number, number>>();
  /** Where a record was seen: it stands in one place only. */
  readonly #places = new Map<string, string>();

  constructor(world: World, cluster: Cluster) {
    this.#world = world;
    this.#cluster = cluster;
  }

  #id(transactionalId: string): Id {
    let id = this.#ids.get(transactionalId);
    if (id === undefined) {
      id = { attempts: [], newest: null, txns: [], offsets: new Map() };
      this.#ids.set(transactionalId, id);
    }
    return id;
  }

  all(): readonly Txn[] {
    return [...this.#ids.values()].flatMap(({ txns }) => txns);
  }

  count(outcome: Outcome): number {
    return this.all().filter((txn) => txn.outcome === outcome).length;
  }

  ids(): readonly string[] {
    return [...this.#ids.keys()];
  }

  record(id: string): TxnRecord | undefined {
    return this.#records.get(id);
  }

  // --- what clients do --------------------------------------------------------------------------

  /** An InitProducerId leaves: from now on whatever is open may be ended. */
  initialising(transactionalId: string, instance: string): Initialising {
    const { txns, newest, attempts } = this.#id(transactionalId);
    for (const txn of txns) if (txn.outcome === "open") txn.mayBeEnded = true;
    const attempt = {
      instance,
      sentMs: this.#world.nowMs,
      before: newest,
      processes: this.#cluster.processes(),
      answeredMs: Infinity,
    };
    attempts.push(attempt);
    return attempt;
  }

  /** Of those that are not answered nobody knows when they end what is open: one that its own client gave up, too. */
  #mayEndWhatBegins(transactionalId: string, instance: string): boolean {
    const { attempts } = this.#id(transactionalId);
    const own = attempts.findLast((one) => one.instance === instance);
    return attempts.some(({ answeredMs, processes }, i) =>
      attempts[i] !== own && answeredMs > (own?.sentMs ?? -Infinity) &&
      (answeredMs < Infinity || processes.some(({ alive }) => alive))
    );
  }

  /** `before` is what was known when the question was asked; null for an epoch that an end gives. */
  given(
    transactionalId: string,
    instance: string,
    { producerId, epoch }: Given,
    before: Given | null,
  ): void {
    const id = this.#id(transactionalId);
    const who = `${transactionalId}: producer ${producerId} epoch ${epoch}`;
    if (before?.producerId === producerId && epoch <= before.epoch) {
      this.#world.violated(`${who} is given to ${instance} after epoch ${before.epoch} was`);
    }
    const key = `${producerId}/${epoch}`;
    const owner = this.#owners.get(key) ?? instance;
    if (owner !== instance) this.#world.violated(`${who} is given to ${owner} and ${instance}`);
    this.#owners.set(key, owner);
    const { newest } = id;
    const isNewer = newest === null || newest.producerId < producerId ||
      newest.producerId === producerId && newest.epoch < epoch;
    if (isNewer) id.newest = { producerId, epoch, instance };
  }

  /** True when an answer told somebody else of a higher epoch. */
  isFollowed({ transactionalId, instance, epoch }: Txn): boolean {
    const { newest } = this.#id(transactionalId);
    return newest !== null && newest.instance !== instance && newest.epoch > epoch;
  }

  /** True when nothing explains that its producer is refused. */
  mustWork(txn: Txn): boolean {
    return !txn.mayBeEnded && !this.#mayHaveTimedOut(txn);
  }

  #mayHaveTimedOut({ beganMs, timeoutMs }: Txn): boolean {
    // A node whose wall clock was set may find a transaction too old at once.
    return this.#cluster.hasWrongClocks || this.#world.nowMs - beganMs >= timeoutMs;
  }

  begin(
    transactionalId: string,
    instance: string,
    epoch: number,
    timeoutMs: number,
  ): Txn {
    const { txns } = this.#id(transactionalId);
    const order = txns.length;
    const txn: Txn = {
      name: `${transactionalId}.${order}`,
      transactionalId,
      instance,
      epoch,
      order,
      timeoutMs,
      records: [],
      offset: null,
      beganMs: this.#world.nowMs,
      outcome: "open",
      committedMs: Infinity,
      mayBeEnded: this.#mayEndWhatBegins(transactionalId, instance),
    };
    txns.push(txn);
    return txn;
  }

  sending(
    txn: Txn,
    history: PartitionHistory,
    what: { readonly key: string; readonly isDeletion: boolean; readonly isCompacted: boolean },
  ): TxnRecord {
    const id = `${txn.name}.${txn.records.length}`;
    const isLate = this.isFollowed(txn);
    const record = { ...what, txn, history, id, isLate, offset: null, ackedMs: Infinity };
    txn.records.push(record);
    this.#records.set(id, record);
    return record;
  }

  acknowledged(record: TxnRecord, offset: number): void {
    record.offset = offset;
    record.ackedMs = this.#world.nowMs;
    if (!record.isLate) return;
    this.#world.violated(`${record.id} of a producer that was followed is acknowledged`);
  }

  asksEnd(txn: Txn, commit: boolean): void {
    txn.mayBeEnded = true;
    if (commit) txn.outcome = "unknown";
  }

  ended(txn: Txn, commit: boolean): void {
    this.#conclude(txn, commit ? "committed" : "aborted", "its end was answered");
  }

  /** Its client will not ask for a commit any more, or never had an attempt that may have come through. */
  givenUp(txn: Txn): void {
    txn.mayBeEnded = true;
    if (txn.outcome === "open") this.#conclude(txn, "aborted", "no commit was asked");
  }

  /** The first attempt at its commit was refused: no attempt came through. */
  refused(txn: Txn): void {
    this.#conclude(txn, "aborted", "its commit was refused");
  }

  #conclude(txn: Txn, outcome: "committed" | "aborted", why: string): void {
    const isOther = txn.outcome === "committed" || txn.outcome === "aborted"
      ? txn.outcome !== outcome
      : false;
    if (isOther) this.#world.violated(`${txn.name} was ${txn.outcome}, now ${outcome}: ${why}`);
    txn.outcome = outcome;
    if (outcome === "committed") {
      txn.committedMs = Math.min(txn.committedMs, this.#world.nowMs);
    }
  }

  // --- what is shown ----------------------------------------------------------------------------

  stableSeen(history: PartitionHistory): Map<number, number> {
    return new Map(this.#stable.get(history));
  }

  /** The last stable offset of an answer to a question of `askedMs`. */
  stable(
    history: PartitionHistory,
    { stable, watermark, by, askedMs, seen }: {
      readonly stable: number;
      readonly watermark: number;
      readonly by: number;
      readonly askedMs: number;
      /** `stableSeen` when the question was asked. */
      readonly seen: ReadonlyMap<number, number>;
    },
  ): void {
    const where = `${name(history)}: last stable offset ${stable} of epoch ${by}`;
    if (stable > watermark) {
      this.#world.violated(`${where} is above high watermark ${watermark}`);
    }
    const before = watermarkSeen({ ...history, watermarks: new Map(seen) }, by);
    if (stable < before) this.#world.violated(`${where} comes after ${before} was seen`);
    const marks = this.#stable.get(history) ?? new Map<number, number>();
    this.#stable.set(history, marks);
    marks.set(by, Math.max(marks.get(by) ?? 0, stable));
    for (const txn of this.all()) {
      if (txn.outcome !== "open" || !this.mustWork(txn)) continue;
      for (const { offset, ackedMs, history: at, id } of txn.records) {
        const isOpenThere = at === history && offset !== null && ackedMs < askedMs;
        if (isOpenThere && stable > offset) {
          return this.#world.violated(`${where} passes ${id} at ${offset}, which is open`);
        }
      }
    }
  }

  /** A record in either view of a partition. */
  seen(history: PartitionHistory, { id, offset }: SeenRecord): void {
    if (id === null) return;
    const here = `${name(history)}/${offset}`;
    const place = this.#places.get(id) ?? here;
    if (place !== here) this.#world.violated(`${id} stands at ${place} and at ${here}`);
    this.#places.set(id, here);
    const record = this.#records.get(id);
    if (record !== undefined && record.offset !== null && record.offset !== offset) {
      this.#world.violated(`${id} was acknowledged at ${record.offset}, and is at ${offset}`);
    }
  }

  /** A record that a reader of committed records gets. */
  seenCommitted(history: PartitionHistory, seen: SeenRecord): void {
    this.seen(history, seen);
    const record = seen.id === null ? undefined : this.#records.get(seen.id);
    if (record === undefined) return;
    const { txn } = record;
    if (record.isLate) {
      return this.#world.violated(`${record.id} of a producer that was followed is seen`);
    }
    if (txn.outcome === "open" || txn.outcome === "aborted") {
      return this.#world.violated(
        `${name(history)}: ${record.id} is shown as committed, its transaction is ${txn.outcome}`,
      );
    }
    this.#conclude(txn, "committed", "it was shown");
  }

  /** The group offset of an id, as an answer shows it: that of a transaction that may be committed, and it does not go back. */
  offsetShown(transactionalId: string, offset: number, by: number): void {
    const { txns, offsets } = this.#id(transactionalId);
    const where = `offset ${offset} of the group of ${transactionalId}`;
    const before = watermarkSeenIn(offsets, by);
    if (offset < before) this.#world.violated(`${where} comes after ${before} was seen`);
    offsets.set(by, Math.max(offsets.get(by) ?? -1, offset));
    if (offset < 0) return;
    const txn = txns.find(({ order }) => order === offset);
    if (txn === undefined || txn.outcome === "open" || txn.outcome === "aborted") {
      this.#world.violated(`${where} is of a transaction that is ${txn?.outcome ?? "not there"}`);
    }
  }

  // --- at rest ----------------------------------------------------------------------------------

  /** Nothing is under way any more: `committed` are the ids that a reader of committed records finds. */
  checkAtRest(committed: ReadonlySet<string>): void {
    for (const txn of this.all()) {
      const plain = txn.records.filter(({ isCompacted }) => !isCompacted);
      const shownCount = plain.filter(({ id }) => committed.has(id)).length;
      if (txn.outcome === "unknown" && plain.length > 0) {
        this.#conclude(txn, shownCount > 0 ? "committed" : "aborted", "at rest");
      }
      const wanted = txn.outcome === "committed" ? plain.length : 0;
      if (txn.outcome !== "unknown" && shownCount !== wanted) {
        const missing = plain.filter(({ id }) => !committed.has(id)).map(({ id }) => id);
        return this.#world.violated(
          `${txn.name} is ${txn.outcome}: ${shownCount} of ${plain.length} records are seen, ` +
            `not ${missing.join(" ")}`,
        );
      }
    }
  }

  /** The newest offset that a committed transaction of the id left; null when it cannot be told. */
  offsetAtRest(transactionalId: string): number | null {
    const { txns } = this.#id(transactionalId);
    const withOffset = txns.filter(({ offset }) => offset !== null);
    if (withOffset.some(({ outcome }) => outcome === "unknown")) return null;
    const committed = withOffset.filter(({ outcome }) => outcome === "committed");
    return Math.max(-1, ...committed.map(({ offset }) => offset!));
  }
}

/** What a process of this number may not fall behind. */
function watermarkSeenIn(marks: ReadonlyMap<number, number>, by: number): number {
  let seen = -1;
  for (const [index, mark] of marks) if (index <= by) seen = Math.max(seen, mark);
  return seen;
}
