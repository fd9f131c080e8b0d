/**
 * Decides when compaction works: after metadata changed, one rewrite after the other. An idle node does
 * nothing at all, for every trigger is an amount of work. A failure ends the look; the next one plans anew.
 */
import { type Cancel, sleep } from "../../env/clock.ts";
import type { Env } from "../../env/env.ts";
import type { NodeId, ObjectId, Offset, Position, StreamId } from "../../lib/brand.ts";
import { isFault, messageOf } from "../../lib/errors.ts";
import {
  COMPACTION_CLOSE_MS,
  COMPACTION_ID_BLOCK,
  COMPACTION_PAUSE_MS,
  COMPACTION_RUNS_MAX,
  COMPACTION_TIDY_MS,
} from "../../lib/limits.ts";
import { Lru } from "../../lib/lru.ts";
import type { ObjectStore } from "../../object/object_store.ts";
import { MissingObject } from "../missing_object.ts";
import type { CompactionManager, ObjectManager, StreamManager, StreamSetRef } from "../ports.ts";
import { IdPool } from "../upload/id_pool.ts";
import { blocksOf, bytesOf, liveBlocks } from "./blocks.ts";
import { CompactionBudget } from "./budget.ts";
import { DataAge } from "./data_age.ts";
import { type CompactionOptions, DEFAULT_COMPACTION_OPTIONS } from "./options.ts";
import { type RunOutcome, type RunParts, runSets, runStream, type SetJobKind } from "./run.ts";
import { planSets } from "./set_plan.ts";
import { SourceReader } from "./source_reader.ts";
import { planStream, type StreamJob } from "./stream_plan.ts";

export interface CompactorOptions {
  readonly env: Env;
  readonly store: ObjectStore;
  readonly clusterId: string;
  readonly nodeId: NodeId;
  readonly objects: ObjectManager;
  readonly streams: Pick<StreamManager, "viewStream">;
  readonly compaction: CompactionManager;
  readonly options?: Partial<CompactionOptions>;
}

export interface Compactor {
  /** From now on by itself. */
  start(): void;
  /** One look at everything; resolves when it has ended, well or badly. */
  look(): Promise<void>;
  /** Cancels what runs; a store that does not answer is not waited for. No commit follows. */
  close(): Promise<void>;
}

/** Inputs from which nothing could be made, remembered until they change. */
const BARREN_MAX = 1_000;
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
  readonly #barren = new Lru<string, true>(BARREN_MAX, () => 1);
  readonly #refused = new Lru<string, true>(BARREN_MAX, () => 1);
  readonly #damaged = new Lru<ObjectId, true>(BARREN_MAX, () => 1);
  readonly #missing = new Lru<ObjectId, true>(BARREN_MAX, () => 1);
  /** Start of the stream from which on a composite has a dead link. */
  readonly #cleanFrom = new Lru<ObjectId, Offset>(BARREN_MAX, () => 1);
  #seenAt: Position | null = null;
  #hasMore = false;
  /** Looks in a row that ended with a failure. */
  #failures = 0;
  #runsLeft = 0;
  #backlogBytes = 0;
  #tidied: { readonly at: Position; readonly atMs: number } | null = null;
  #cancel: Cancel = () => {};
  #running: Promise<void> | null = null;

  constructor(options: CompactorOptions) {
    this.#options = options;
    const { env, store, clusterId, objects } = options;
    const settings = { ...DEFAULT_COMPACTION_OPTIONS, ...options.options };
    const budget = new CompactionBudget(env.clock, settings.bytesPerSecond);
    const { signal } = this.#abort;
    const reader = new SourceReader({
      store,
      clusterId,
      budget,
      signal,
      onRead: (bytes) => env.metrics.count("skerry_compaction_read_bytes_total", {}, bytes),
      onDamaged: (id) => this.#damaged.set(id, true),
    });
    const ids = new IdPool(objects, COMPACTION_ID_BLOCK);
    const onNothingDead = (id: ObjectId, until: Offset) => this.#cleanFrom.set(id, until);
    this.#parts = { ...options, options: settings, budget, reader, ids, signal, onNothingDead };
    this.#ages = new DataAge(store, clusterId, env.clock);
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
    this.#runsLeft = COMPACTION_RUNS_MAX;
    this.#backlogBytes = 0;
    try {
      await this.#lookAtSets();
      await this.#lookAtStreams();
      this.#seenAt = at;
      this.#failures = 0;
    } catch (error) {
      this.#onFailure(error);
    }
    env.metrics.gauge("skerry_compaction_backlog_bytes", this.#backlogBytes);
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

  #sets(): StreamSetRef[] {
    const { objects, nodeId } = this.#options;
    return objects.streamSetObjects(nodeId).filter(({ objectId }) => !this.#isDamaged(objectId));
  }

  async #lookAtSets(): Promise<void> {
    await this.#tidy();
    while (await this.#runSets("split", await this.#tooOld()));
    while (await this.#runSets("join", planSets(this.#sets(), this.#parts.options)));
  }

  /** In order of age, so only the first one has to be asked. */
  async #tooOld(): Promise<readonly StreamSetRef[] | null> {
    const [oldest] = this.#sets();
    if (oldest === undefined) return null;
    const ageMs = await this.#ages.ageMs(oldest.order);
    return ageMs >= this.#parts.options.forceSplitMs ? [oldest] : null;
  }

  async #runSets(kind: SetJobKind, objects: readonly StreamSetRef[] | null): Promise<boolean> {
    if (objects === null) return false;
    return await this.#run(kind, objects, () => runSets(this.#parts, kind, objects));
  }

  /** Trims and deletions leave dead blocks in stream set objects; only their indexes tell. */
  async #tidy(): Promise<void> {
    const { compaction, env } = this.#options;
    const atMs = env.clock.monotonicMs();
    const at = compaction.position();
    const last = this.#tidied;
    if (last !== null && (last.at === at || atMs - last.atMs < COMPACTION_TIDY_MS)) return;
    const dead: StreamSetRef[] = [];
    for (const object of this.#sets()) {
      const share = await this.#attempt([object], () => this.#deadShare(object));
      if (share === 1) dead.push(object);
      else if (share !== null && share >= DEAD_SHARE) await this.#runSets("tidy", [object]);
    }
    if (dead.length > 0) await this.#runSets("drop", dead);
    this.#tidied = { at, atMs };
  }

  async #deadShare(object: StreamSetRef): Promise<number> {
    const { streams } = this.#options;
    const blocks = blocksOf(object.objectId, await this.#parts.reader.index(object));
    const live = liveBlocks(blocks, (stream) => streams.viewStream(stream)?.start ?? null);
    return 1 - bytesOf(live) / bytesOf(blocks);
  }

  // --- stream objects -------------------------------------------------------------------------

  async #lookAtStreams(): Promise<void> {
    const held = [...this.#options.compaction.heldStreams()];
    for (const { streamId, objects } of held) {
      if (objects === 0) continue;
      const job = this.#planStream(streamId);
      // One rewrite per stream and look: the next one is planned with what this one made.
      if (job !== null) {
        const done = await this.#run(
          job.kind,
          job.objects,
          () => runStream(this.#parts, streamId, job),
        );
        if (done) this.#hasMore = true;
      }
    }
  }

  #planStream(streamId: StreamId): StreamJob | null {
    const { streams, objects } = this.#options;
    const start: Offset | undefined = streams.viewStream(streamId)?.start;
    const view = objects.viewObjects(streamId);
    if (start === undefined || view === null) return null;
    const sound = view.streamObjects.filter(({ objectId }) => !this.#isDamaged(objectId));
    const first = sound[0]?.objectId;
    const cleanFrom = first === undefined ? 0 : this.#cleanFrom.get(first) ?? 0;
    const isPressing = this.#isPressing();
    return planStream({ start, objects: sound, cleanFrom, isPressing }, this.#parts.options);
  }

  // --- one rewrite ----------------------------------------------------------------------------

  #isDamaged(id: ObjectId): boolean {
    return this.#damaged.get(id) === true;
  }

  #isPressing(): boolean {
    return this.#options.compaction.objectCount() >= this.#parts.options.clusterObjectsMax;
  }

  /** True when it was done, and there may be more to do. */
  async #run(
    kind: string,
    inputs: readonly Input[],
    work: () => Promise<RunOutcome>,
  ): Promise<boolean> {
    const { env } = this.#options;
    const key = keyOf(kind, inputs);
    if (this.#barren.get(key) === true) return false;
    if (this.#runsLeft === 0) {
      this.#hasMore = true;
      this.#backlogBytes += inputs.reduce((sum, { size }) => sum + size, 0);
      return false;
    }
    this.#runsLeft -= 1;
    const startedMs = env.clock.monotonicMs();
    const outcome = await this.#attempt(inputs, work, () => this.#count(kind, "failed"));
    if (outcome === null) return false;
    this.#count(kind, outcome.kind);
    if (outcome.kind === "done") {
      this.#show(kind, outcome, env.clock.monotonicMs() - startedMs);
      return true;
    }
    env.log.log("debug", "compaction-without-effect", {
      kind,
      outcome: outcome.kind,
      detail: outcome.detail,
    });
    this.#remember(kind, key, outcome);
    return false;
  }

  /** A second refusal of the same inputs is no race any more: metadata will never take it. */
  #remember(kind: string, key: string, { kind: outcome, detail }: WithoutEffect): void {
    if (outcome === "conflict" && this.#refused.get(key) === undefined) {
      this.#refused.set(key, true);
      this.#hasMore = true;
      return;
    }
    if (outcome === "conflict") {
      this.#options.env.log.log("error", "compaction-refused", { inputs: key, detail });
    }
    if (outcome === "conflict" || kind !== "cleanup") this.#barren.set(key, true);
  }

  #count(kind: string, outcome: string): void {
    this.#options.env.metrics.count("skerry_compaction_runs_total", { kind, outcome });
  }

  #show(kind: string, done: Extract<RunOutcome, { kind: "done" }>, tookMs: number): void {
    const { metrics, log } = this.#options.env;
    const { inputs, outputs, bytes } = done;
    metrics.count("skerry_compaction_written_bytes_total", {}, bytes);
    metrics.observe("skerry_compaction_seconds", tookMs / 1_000);
    log.log("debug", "compacted", { kind, inputs, outputs, bytes, tookMs: Math.round(tookMs) });
  }

  /** Null when it failed for a reason that lies in its inputs; these are left alone then. */
  async #attempt<T>(
    inputs: readonly Input[],
    work: () => Promise<T>,
    onFailure: () => void = () => {},
  ): Promise<T | null> {
    const { env, objects } = this.#options;
    try {
      return await work();
    } catch (error) {
      if (this.#abort.signal.aborted) throw error;
      onFailure();
      const isMissing = error instanceof MissingObject;
      if (!isMissing && !isFault(error, "corrupt")) throw error;
      if (isMissing && this.#missing.get(error.objectId) === undefined) {
        // Gone by somebody's compaction or trim: fresh metadata does not name it any more.
        this.#missing.set(error.objectId, true);
        this.#hasMore = true;
        await objects.refresh();
        return null;
      }
      if (isMissing) this.#damaged.set(error.objectId, true);
      const fields = { inputs: keyOf("of", inputs), error: messageOf(error) };
      env.log.log("error", "compaction-input-unreadable", fields);
      return null;
    }
  }
}

type WithoutEffect = Exclude<RunOutcome, { kind: "done" }>;

interface Input {
  readonly objectId: ObjectId;
  readonly size: number;
}

function keyOf(kind: string, inputs: readonly Input[]): string {
  return `${kind} ${inputs.map(({ objectId }) => objectId).join(" ")}`;
}
