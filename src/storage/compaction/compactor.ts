/**
 * Decides when compaction works: after metadata changed, stream set objects one rewrite after the other, then
 * single streams in batches. An idle node does nothing at all, for every trigger is an amount of work. A
 * failure ends the look; the next one plans anew.
 */
import { type Cancel, sleep } from "../../env/clock.ts";
import type { Env } from "../../env/env.ts";
import type { NodeId, ObjectId, Offset, Position } from "../../lib/brand.ts";
import { isFault, messageOf } from "../../lib/errors.ts";
import {
  COMPACTION_CLOSE_MS,
  COMPACTION_ID_BLOCK,
  COMPACTION_PAUSE_MS,
  COMPACTION_READS_MAX,
  COMPACTION_RUNS_MAX,
} from "../../lib/limits.ts";
import type { ObjectStore } from "../../object/object_store.ts";
import type { CompactionManager, ObjectManager, StreamManager, StreamSetRef } from "../ports.ts";
import type { UploadLoad } from "../storage.ts";
import { IdPool } from "../upload/id_pool.ts";
import type { Learned } from "../written_index.ts";
import { blocksOf, deadShare } from "./blocks.ts";
import { CompactionBudget } from "./budget.ts";
import { DataAge } from "./data_age.ts";
import { type CompactionOptions, DEFAULT_COMPACTION_OPTIONS } from "./options.ts";
import { bytesIn, type Input, keyOf, Refusals } from "./refusals.ts";
import {
  runJoin,
  type RunOutcome,
  type RunParts,
  runSets,
  type SetJobKind,
  type Wait,
  type WithoutEffect,
} from "./run.ts";
import { countRun, showRun } from "./run_metrics.ts";
import { planSets } from "./set_plan.ts";
import { SourceReader } from "./source_reader.ts";
import { fitsBatch, type StreamWork } from "./stream_batch.ts";
import { StreamPlanner } from "./stream_planner.ts";
import { runStreams } from "./stream_run.ts";
import { TidyRound } from "./tidy_round.ts";
import { Unreadable } from "./unreadable.ts";

export interface CompactorOptions {
  readonly env: Env;
  readonly store: ObjectStore;
  readonly clusterId: string;
  readonly nodeId: NodeId;
  readonly objects: ObjectManager;
  readonly streams: Pick<StreamManager, "viewStream">;
  readonly compaction: CompactionManager;
  readonly options?: Partial<CompactionOptions>;
  /** What was committed: readers need not ask what is in it. */
  readonly onCommitted?: (written: Learned) => void;
  /** Sets the pace; a fixed one when absent. */
  readonly uploadLoad?: () => UploadLoad;
}

export interface Compactor {
  /** From now on by itself. */
  start(): void;
  /** Objects that the node has just uploaded: before long they are joined, and their indexes need no read. */
  learn(written: Learned): void;
  /** One look at everything; resolves when it has ended, well or badly. */
  look(): Promise<void>;
  /** Cancels what runs; a store that does not answer is not waited for. No commit follows. */
  close(): Promise<void>;
}

/** Up to about an hour between looks that fail. */
const DOUBLINGS_MAX = 6;
/** A stream set object of which this share is dead is written anew. */
const DEAD_SHARE = 0.5;

export function createCompactor(options: CompactorOptions): Compactor {
  return new StoreCompactor(options);
}

class StoreCompactor implements Compactor {
  readonly #options: CompactorOptions;
  readonly #parts: RunParts;
  readonly #ages: DataAge;
  readonly #abort = new AbortController();
  readonly #refusals = new Refusals();
  readonly #unreadable: Unreadable;
  readonly #planner: StreamPlanner;
  /** What the next join of a node's list waits for. */
  readonly #bytesWanted = new Map<NodeId, number>();
  #seenAt: Position | null = null;
  #hasMore = false;
  /** Looks in a row that ended with a failure. */
  #failures = 0;
  #runsLeft = 0;
  #backlogBytes = 0;
  #backlogObjects = 0;
  readonly #tidyRound = new TidyRound();
  #cancel: Cancel = () => {};
  #running: Promise<void> | null = null;

  constructor(options: CompactorOptions) {
    this.#options = options;
    const { env, store, clusterId, objects } = options;
    const settings = { ...DEFAULT_COMPACTION_OPTIONS, ...options.options };
    const budget = new CompactionBudget(env.clock, settings.bytesPerSecond, options.uploadLoad);
    const { signal } = this.#abort;
    this.#unreadable = new Unreadable({ log: env.log, refresh: () => objects.refresh() });
    const reader = new SourceReader({
      store,
      clusterId,
      budget,
      limits: settings,
      signal,
      onRead: (bytes) => env.metrics.count("skerry_compaction_read_bytes_total", {}, bytes),
      onDamaged: (id) => this.#unreadable.add(id),
    });
    const ids = new IdPool(objects, COMPACTION_ID_BLOCK);
    this.#planner = new StreamPlanner({
      ...options,
      settings,
      isUnreadable: (id) => this.#unreadable.has(id),
    });
    const onNothingDead = (id: ObjectId, until: Offset) => this.#planner.onNothingDead(id, until);
    const onCommitted = (written: Learned) => {
      this.learn(written);
      options.onCommitted?.(written);
    };
    const rest = { budget, reader, ids, signal, onNothingDead, onCommitted };
    this.#parts = { ...options, options: settings, ...rest };
    this.#ages = new DataAge(store, clusterId, env.clock);
  }

  learn({ indexes }: Learned): void {
    this.#parts.reader.learn(indexes);
  }

  start(): void {
    const { env } = this.#options;
    // Nodes that start together do not look together.
    this.#schedule(this.#parts.options.intervalMs * env.random.derive("compaction").float());
  }

  #schedule(delayMs: number): void {
    if (this.#abort.signal.aborted) return;
    this.#cancel = this.#options.env.clock.after(delayMs, () => {
      void this.look().then(() => this.#schedule(this.#pauseMs()));
    });
  }

  /** A look that keeps failing would write the same objects again and again. */
  #pauseMs(): number {
    const { intervalMs } = this.#parts.options;
    if (this.#failures > 0) return intervalMs * 2 ** Math.min(this.#failures - 1, DOUBLINGS_MAX);
    return this.#hasMore ? Math.min(COMPACTION_PAUSE_MS, intervalMs) : intervalMs;
  }

  look(): Promise<void> {
    this.#running ??= this.#look().finally(() => {
      this.#running = null;
    });
    return this.#running;
  }

  async close(): Promise<void> {
    this.#abort.abort();
    this.#cancel();
    const running = this.#running;
    if (running === null) return;
    const ended = new AbortController();
    void running.then(() => ended.abort());
    await sleep(this.#options.env.clock, COMPACTION_CLOSE_MS, ended.signal);
  }

  async #look(): Promise<void> {
    const { compaction, env } = this.#options;
    const at = compaction.position();
    if (this.#abort.signal.aborted || (at === this.#seenAt && !this.#hasMore)) return;
    this.#hasMore = false;
    this.#backlogBytes = 0;
    this.#backlogObjects = 0;
    try {
      const kinds = [() => this.#lookAtSets(), () => this.#lookAtStreams(), () => this.#tidy()];
      for (const lookAtKind of kinds) {
        // However much is left of the others, which new uploads may keep so for ever.
        this.#runsLeft = COMPACTION_RUNS_MAX;
        await lookAtKind();
      }
      this.#seenAt = at;
      this.#failures = 0;
    } catch (error) {
      this.#onFailure(error);
    }
    this.#parts.reader.forget();
    env.metrics.gauge("skerry_compaction_backlog_bytes", this.#backlogBytes);
    env.metrics.gauge("skerry_compaction_backlog_objects", this.#backlogObjects);
  }

  /** Damage ends one rewrite; the store's trouble ends the look. */
  #onFailure(error: unknown): void {
    const { env } = this.#options;
    if (this.#abort.signal.aborted) return;
    this.#seenAt = null;
    this.#failures += 1;
    const isFenced = isFault(error, "fenced");
    env.log.log("warn", "compaction-failed", { error: messageOf(error) });
    // Somebody else compacts from now on.
    if (isFenced) this.#abort.abort();
  }

  // --- stream set objects ---------------------------------------------------------------------

  #sets(owner: NodeId): StreamSetRef[] {
    const { objects } = this.#options;
    return objects.streamSetObjects(owner).filter(({ objectId }) =>
      !this.#unreadable.has(objectId)
    );
  }

  async #lookAtSets(): Promise<void> {
    const { options } = this.#parts;
    for (const owner of this.#options.compaction.setOwners()) {
      while (await this.#runSets("split", await this.#ages.tooOld(this.#sets(owner), options)));
      while (await this.#join(owner));
    }
  }

  async #join(owner: NodeId): Promise<boolean> {
    const wanted = this.#bytesWanted.get(owner) ?? 0;
    const objects = planSets(this.#sets(owner), this.#parts.options, wanted);
    if (objects === null) return false;
    return await this.#run("join", objects, async () => {
      const { outcome, wanted: next } = await runJoin(this.#parts, objects);
      this.#bytesWanted.set(owner, next);
      return outcome;
    });
  }

  async #runSets(kind: SetJobKind, objects: readonly StreamSetRef[]): Promise<boolean> {
    if (objects.length === 0) return false;
    return await this.#run(kind, objects, () => runSets(this.#parts, kind, objects));
  }

  /** Trims and deletions leave dead blocks in stream set objects; only their indexes tell. */
  async #tidy(): Promise<void> {
    const { compaction, env } = this.#options;
    const owned = compaction.setOwners().map((owner) => this.#sets(owner));
    const nowMs = env.clock.monotonicMs();
    const chosen = this.#tidyRound.next(owned.flat(), compaction.position(), nowMs);
    for (const sets of owned) {
      await this.#tidySets(sets.filter(({ objectId }) => chosen.has(objectId)));
    }
    if (this.#tidyRound.hasMore) this.#hasMore = true;
  }

  async #tidySets(sets: readonly StreamSetRef[]): Promise<void> {
    const dead: StreamSetRef[] = [];
    for (let at = 0; at < sets.length; at += COMPACTION_READS_MAX) {
      const some = sets.slice(at, at + COMPACTION_READS_MAX);
      const shares = await Promise.all(
        some.map((object) => this.#attempt([object], () => this.#deadShare(object))),
      );
      for (const [i, share] of shares.entries()) {
        if (share === 1) dead.push(some[i]!);
        else if (share !== null && share >= DEAD_SHARE) await this.#runSets("tidy", [some[i]!]);
      }
    }
    await this.#runSets("drop", dead);
  }

  async #deadShare(object: StreamSetRef): Promise<number> {
    const { streams } = this.#options;
    const blocks = blocksOf(object.objectId, await this.#parts.reader.index(object));
    return deadShare(blocks, (stream) => streams.viewStream(stream)?.start ?? null);
  }

  // --- stream objects -------------------------------------------------------------------------

  async #lookAtStreams(): Promise<void> {
    let batch: StreamWork[] = [];
    for (const work of this.#planner.works()) {
      if (!this.#isDue(work.job.kind, work.job.objects)) continue;
      if (batch.length > 0 && !this.#fits(batch, work)) {
        await this.#runBatch(batch);
        batch = [];
      }
      batch.push(work);
    }
    await this.#runBatch(batch);
  }

  #fits(batch: readonly StreamWork[], work: StreamWork): boolean {
    const isAlone = this.#isAlone(work) || (batch.length === 1 && this.#isAlone(batch[0]!));
    return !isAlone && fitsBatch(batch, work, this.#parts.options);
  }

  async #runBatch(batch: readonly StreamWork[]): Promise<void> {
    if (batch.length === 0) return;
    const inputs = batch.flatMap(({ job }) => job.objects);
    if (!this.#hasTurn(inputs)) return;
    const { clock } = this.#options.env;
    const startedMs = clock.monotonicMs();
    const { prepared, committed } = await runStreams(
      this.#parts,
      batch,
      ({ job }, run) =>
        this.#attempt(job.objects, run, () => countRun(this.#options.env, job.kind, "failed")),
    );
    const tookMs = clock.monotonicMs() - startedMs;
    if (committed?.kind === "done") showRun(this.#options.env, "streams", committed, tookMs);
    const isShared = prepared.filter((one) => one?.kind === "written").length > 1;
    for (const [i, one] of prepared.entries()) {
      const { kind, objects } = batch[i]!.job;
      if (one === null) continue;
      const outcome = one.kind === "written" ? committed! : one;
      countRun(this.#options.env, kind, outcome.kind);
      const key = keyOf(kind, objects);
      const isAlone = one.kind !== "written" || !isShared;
      if (outcome.kind !== "done" && isAlone) this.#remember(kind, key, outcome);
      else this.#hasMore = true;
      if (outcome.kind !== "done" && !isAlone) this.#refusals.shared(key);
    }
  }

  #isAlone({ job: { kind, objects } }: StreamWork): boolean {
    return this.#refusals.isAlone(keyOf(kind, objects));
  }

  // --- one rewrite ----------------------------------------------------------------------------

  /** Nothing is tried again that nothing can be made of. */
  #isDue(kind: string, inputs: readonly Input[]): boolean {
    return !this.#refusals.isBarren(keyOf(kind, inputs));
  }

  #hasTurn(inputs: readonly Input[]): boolean {
    if (this.#runsLeft > 0) {
      this.#runsLeft -= 1;
      return true;
    }
    this.#hasMore = true;
    this.#backlogBytes += bytesIn(inputs);
    this.#backlogObjects += inputs.length;
    return false;
  }

  /** True when it was done, and there may be more to do. */
  async #run(
    kind: string,
    inputs: readonly Input[],
    work: () => Promise<RunOutcome | Wait>,
  ): Promise<boolean> {
    const { env } = this.#options;
    if (!this.#isDue(kind, inputs) || !this.#hasTurn(inputs)) return false;
    const startedMs = env.clock.monotonicMs();
    const outcome = await this.#attempt(
      inputs,
      work,
      () => countRun(this.#options.env, kind, "failed"),
    );
    if (outcome === null) return false;
    countRun(this.#options.env, kind, outcome.kind);
    if (outcome.kind === "wait") return false;
    if (outcome.kind === "done") {
      showRun(this.#options.env, kind, outcome, env.clock.monotonicMs() - startedMs);
      this.#hasMore = true;
      return true;
    }
    this.#remember(kind, keyOf(kind, inputs), outcome);
    return false;
  }

  #remember(kind: string, key: string, { kind: outcome, detail }: WithoutEffect): void {
    const { log } = this.#options.env;
    log.log("debug", "compaction-without-effect", { kind, outcome, detail });
    const next = this.#refusals.remember(kind, key, outcome);
    if (next === "again") this.#hasMore = true;
    if (next === "never") log.log("error", "compaction-refused", { inputs: key, detail });
  }

  /** Null when it failed for a reason that lies in its inputs; these are left alone then. */
  async #attempt<T>(
    inputs: readonly Input[],
    work: () => Promise<T>,
    onFailure: () => void = () => {},
  ): Promise<T | null> {
    try {
      return await work();
    } catch (error) {
      if (this.#abort.signal.aborted) throw error;
      onFailure();
      if (!await this.#unreadable.explains(error, inputs)) throw error;
      // What is left of these inputs, or of its stream, is planned anew.
      this.#hasMore = true;
      return null;
    }
  }
}
