/**
 * The metadata store of a node: one loop takes the waiting commands, decides them as a batch, creates
 * the entry at the next position, applies it and answers. Whoever loses the race applies the winner and
 * decides again. A position whose outcome is unknown is never skipped: the next batch tries it too.
 */
import type { Env } from "../env/env.ts";
import { sleep } from "../env/clock.ts";
import { randomUuid } from "../env/random.ts";
import { assert } from "../lib/assert.ts";
import type { NodeId } from "../lib/brand.ts";
import { corrupt } from "../lib/corrupt.ts";
import { FaultError, messageOf } from "../lib/errors.ts";
import {
  METADATA_APPEND_TIMEOUT_MS,
  METADATA_BATCH_COMMANDS_MAX,
  METADATA_POLL_MS,
  METADATA_QUEUE_MAX,
  METADATA_READS_IN_FLIGHT,
  METADATA_SNAPSHOT_ENTRIES,
  METADATA_SNAPSHOT_LOG_BYTES,
  METADATA_TRIM_AGE_MS_MIN,
  ROLL_CALL_LOOKS,
  ROLL_CALL_MS,
} from "../lib/limits.ts";
import { type Uuid, uuidOf } from "../lib/uuid.ts";
import { backoffMs } from "../object/backoff.ts";
import type { ObjectStore } from "../object/object_store.ts";
import { type Batch, decideBatch, type Identity, type Numbered, type Settled } from "./batch.ts";
import type { Command, Decided } from "./command.ts";
import type { Image } from "./image.ts";
import type { Change, MetadataStore } from "./metadata_store.ts";
import { ObjectLog } from "./object_log.ts";
import { type FeatureLevels, Replica } from "./replica.ts";
import { SnapshotKeeper } from "./snapshot_keeper.ts";

export interface MetadataOptions {
  readonly store: ObjectStore;
  readonly env: Env;
  readonly clusterId: string;
  readonly nodeId: NodeId;
  /** Random per process start; the same as in this node's `register-node`. */
  readonly incarnation?: Uuid;
  /** How often to look for entries of others; null: only when asked. */
  readonly pollMs?: number | null;
  /** Told of every poll: null when it read the end of the log, else why not; and why an entry is refused. */
  readonly onPoll?: (problem: string | null) => void;
  readonly featureLevels?: FeatureLevels;
  /** Entries since the last snapshot that call for a new one. */
  readonly snapshotEntries?: number;
  /** T_TRIM: how long a snapshot stands before what is below it goes. */
  readonly trimAgeMs?: number;
}

interface Pending extends Numbered {
  readonly resolve: (decided: Decided<Command["type"]>) => void;
  readonly reject: (error: unknown) => void;
}

interface Waiter {
  readonly resolve: (image: Image) => void;
  readonly reject: (error: unknown) => void;
}

/** Attempts to load a log that others trim meanwhile; each loss needs a snapshot made just then. */
const LOADS_MAX = 5;

function closedFault(): FaultError {
  return new FaultError("closed", "The metadata store is closed", { retriable: false });
}

/** Opens the log and reads it to its end. Throws FaultError. */
export async function openMetadata(options: MetadataOptions): Promise<MetadataStore> {
  const controller = new Controller(options);
  await controller.load();
  controller.schedulePoll();
  return controller;
}

class Controller implements MetadataStore {
  readonly #env: Env;
  readonly #identity: Identity;
  readonly #pollMs: number | null;
  readonly #onPoll: (problem: string | null) => void;
  readonly #replica: Replica;
  readonly #log: ObjectLog;
  readonly #keeper: SnapshotKeeper;
  readonly #snapshotEntries: number;
  readonly #abort = new AbortController();
  readonly #listeners = new Set<(change: Change) => void>();
  #queue: Pending[] = [];
  #waiters: Waiter[] = [];
  #nextSequence = 1;
  /** Falls in the same step that finds nothing left to do, or a command of that moment would sleep on. */
  #active = false;
  #running: Promise<void> = Promise.resolve();
  #cancelPoll: () => void = () => {};
  #entriesSinceSnapshot = 0;
  #bytesSinceSnapshot = 0;

  constructor(options: MetadataOptions) {
    const { store, env, clusterId, nodeId, incarnation, pollMs, onPoll = () => {} } = options;
    this.#onPoll = onPoll;
    this.#env = env;
    this.#identity = { nodeId, incarnation: incarnation ?? uuidOf(randomUuid(env.random)) };
    this.#pollMs = pollMs === undefined ? METADATA_POLL_MS : pollMs;
    // Who looks more seldom hears of a roll call too late, and is taken for dead while it works.
    assert(
      this.#pollMs === null || this.#pollMs * ROLL_CALL_LOOKS <= ROLL_CALL_MS,
      `A poll every ${this.#pollMs} ms misses roll calls of ${ROLL_CALL_MS} ms`,
    );
    this.#replica = new Replica(clusterId, options.featureLevels);
    const { signal } = this.#abort;
    const onRefused = (why: string | null) =>
      onPoll(why === null ? null : `metadata cannot be written: ${why}`);
    this.#log = new ObjectLog({ store, env, clusterId, signal, onRefused });
    this.#snapshotEntries = options.snapshotEntries ?? METADATA_SNAPSHOT_ENTRIES;
    this.#keeper = new SnapshotKeeper({
      store,
      env,
      clusterId,
      signal,
      log: this.#log,
      known: options.featureLevels?.known,
      trimAgeMs: options.trimAgeMs ?? METADATA_TRIM_AGE_MS_MIN,
    });
  }

  submit<C extends Command>(command: C): Promise<Decided<C["type"]>> {
    if (this.#abort.signal.aborted) return Promise.reject(closedFault());
    if (this.#queue.length >= METADATA_QUEUE_MAX) {
      const full = `${METADATA_QUEUE_MAX} metadata commands are waiting`;
      return Promise.reject(new FaultError("overloaded", full, { retriable: true }));
    }
    return new Promise((resolve, reject) => {
      this.#queue.push({
        sequence: this.#nextSequence++,
        command,
        resolve,
        reject,
      });
      this.#kick();
    });
  }

  view(): Image {
    return this.#replica.state;
  }

  fresh(inDoubt = false): Promise<Image> {
    if (this.#abort.signal.aborted) return Promise.reject(closedFault());
    if (inDoubt) this.#log.doubt();
    return new Promise((resolve, reject) => {
      this.#waiters.push({ resolve, reject });
      this.#kick();
    });
  }

  onChange(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  /** What waits is refused; an entry on its way may still be committed. */
  async close(): Promise<void> {
    this.#abort.abort();
    this.#cancelPoll();
    this.#failAll(closedFault());
    await this.#running;
    await this.#keeper.settled();
  }

  // --- the loop -------------------------------------------------------------------------------

  #kick(): void {
    if (this.#active) return;
    this.#active = true;
    this.#running = this.#run();
  }

  async #run(): Promise<void> {
    // A turn of the event loop lets callers of the same moment share an entry.
    await Promise.resolve();
    while (this.#queue.length + this.#waiters.length > 0) {
      const pending = this.#queue.splice(0, METADATA_BATCH_COMMANDS_MAX);
      const waiters = this.#waiters.splice(0);
      try {
        if (pending.length === 0) await this.#catchUp();
        else await this.#commit(pending);
        for (const { resolve } of waiters) resolve(this.#replica.state);
      } catch (error) {
        for (const { reject } of [...pending, ...waiters]) reject(error);
        if (this.#abort.signal.aborted) this.#failAll(closedFault());
      }
    }
    this.#active = false;
  }

  #failAll(error: FaultError): void {
    for (const { reject } of [...this.#queue.splice(0), ...this.#waiters.splice(0)]) reject(error);
  }

  /** Gets the front of `pending` into the log; what did not fit goes back to the front of the queue. */
  async #commit(pending: readonly Pending[]): Promise<void> {
    const { clock, random } = this.#env;
    const startedMs = clock.monotonicMs();
    for (let attempt = 1;; attempt++) {
      const batch = decideBatch(this.#replica, pending, this.#identity);
      const done = batch.bytes === null
        ? await this.#confirm()
        : await this.#append(batch, batch.bytes);
      if (done) {
        const at = this.#replica.state.at;
        this.#queue.unshift(...pending.slice(batch.settled.length));
        for (const [i, one] of batch.settled.entries()) answer(pending[i]!, one, at);
        this.#env.metrics.observe(
          "skerry_metadata_commit_seconds",
          (clock.monotonicMs() - startedMs) / 1_000,
        );
        return;
      }
      this.#env.metrics.count("skerry_metadata_races_lost_total");
      await sleep(clock, backoffMs(attempt, random), this.#abort.signal);
      if (this.#abort.signal.aborted) throw closedFault();
      if (clock.monotonicMs() - startedMs > METADATA_APPEND_TIMEOUT_MS) {
        throw new FaultError("timeout", "Others were faster at every attempt", { retriable: true });
      }
      await this.#catchUp();
    }
  }

  /** A batch that writes nothing is only true at the end of the log. */
  async #confirm(): Promise<boolean> {
    const before = this.#replica.state.at;
    await this.#catchUp();
    return this.#replica.state.at === before;
  }

  async #append(batch: Batch, bytes: Uint8Array): Promise<boolean> {
    const outcome = await this.#log.append(batch.at, bytes);
    if (outcome.kind === "behind") await this.load();
    else if (outcome.kind === "taken") this.#take(outcome.winner);
    else {
      this.#env.metrics.count("skerry_metadata_entries_total");
      this.#applied(this.#replica.fold(batch.draft, batch.writer, bytes), bytes.length);
    }
    return outcome.kind === "committed";
  }

  // --- following ------------------------------------------------------------------------------

  async #catchUp(): Promise<void> {
    for (let window = 1;; window = METADATA_READS_IN_FLIGHT) {
      const read = await this.#log.read(this.#replica.state.at, window);
      if (read.kind === "behind") return await this.load();
      for (const bytes of read.entries) this.#take(bytes);
      if (read.atEnd) return;
    }
  }

  #take(bytes: Uint8Array): void {
    this.#applied(this.#replica.take(bytes).change, bytes.length);
  }

  /** From the newest readable snapshot to the end of the log. */
  async load(): Promise<void> {
    for (let attempt = 0; attempt < LOADS_MAX; attempt++) {
      const { snapshot, mustReach } = await this.#keeper.load();
      if (snapshot !== null && snapshot.state.at > this.#replica.state.at) {
        const change = this.#replica.adopt(snapshot);
        this.#entriesSinceSnapshot = 0;
        this.#bytesSinceSnapshot = 0;
        this.#notify(change);
      }
      if (!await this.#readTail()) continue;
      if (this.#replica.state.at >= mustReach) return;
      throw corrupt(
        `Cannot read metadata: the log ends at ${this.#replica.state.at}, a snapshot says ${mustReach}`,
      );
    }
    throw new FaultError("timeout", "The metadata log is trimmed faster than it can be read", {
      retriable: true,
    });
  }

  async #readTail(): Promise<boolean> {
    for (;;) {
      const read = await this.#log.read(this.#replica.state.at, METADATA_READS_IN_FLIGHT);
      if (read.kind === "behind") return false;
      for (const bytes of read.entries) this.#take(bytes);
      if (read.atEnd) return true;
    }
  }

  #applied(change: Change, bytes: number): void {
    this.#entriesSinceSnapshot++;
    this.#bytesSinceSnapshot += bytes;
    this.#notify(change);
    if (
      this.#entriesSinceSnapshot < this.#snapshotEntries &&
      this.#bytesSinceSnapshot < METADATA_SNAPSHOT_LOG_BYTES
    ) return;
    this.#entriesSinceSnapshot = 0;
    this.#bytesSinceSnapshot = 0;
    this.#keeper.start({ state: this.#replica.state, lastHash: this.#replica.lastHash });
  }

  #notify(change: Change): void {
    for (const listener of this.#listeners) {
      try {
        listener(change);
      } catch (error) {
        this.#env.log.log("error", "metadata-listener-failed", { reason: messageOf(error) });
      }
    }
  }

  /** Only reads; a store that does not answer is found out by whoever writes next. */
  schedulePoll(): void {
    if (this.#pollMs === null || this.#abort.signal.aborted) return;
    this.#cancelPoll = this.#env.clock.after(this.#pollMs, () => {
      this.fresh().then(() => this.#onPoll(null), (error: unknown) => {
        if (this.#abort.signal.aborted) return;
        this.#env.log.log("debug", "metadata-poll-failed", { reason: messageOf(error) });
        this.#onPoll(`metadata cannot be read: ${messageOf(error)}`);
      }).finally(() => this.schedulePoll());
    });
  }
}

function answer(pending: Pending, settled: Settled, at: Image["at"]): void {
  if (settled.kind === "failed") return pending.reject(settled.error);
  const { verdict } = settled;
  // The result belongs to the command that was decided.
  pending.resolve(
    verdict.ok ? { ok: true, at, ...verdict.result } : verdict,
  );
}
