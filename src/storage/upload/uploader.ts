/**
 * Brings log cache blocks into data objects. Three steps per block: ids are reserved (one block after the
 * other), objects are written (several blocks at once), the commit follows strictly in block order. Every
 * step is repeated until it succeeds or the uploader stops; a refusal stops it for good.
 */
import type { Env } from "../../env/env.ts";
import type { ObjectId } from "../../lib/brand.ts";
import { type FaultError, messageOf } from "../../lib/errors.ts";
import { UPLOADS_IN_FLIGHT_MAX } from "../../lib/limits.ts";
import { Semaphore } from "../../lib/semaphore.ts";
import type { LogCacheBlock } from "../cache/log_cache_block.ts";
import { refused } from "../engine_refusal.ts";
import type { ObjectManager, StreamManager, UploadCommit } from "../ports.ts";
import type { UploadLoad } from "../storage.ts";
import { DEFAULT_PUT_SIZES, type PutSizes } from "../put_sizes.ts";
import type { WrittenIndex } from "../written_index.ts";
import { IdPool } from "./id_pool.ts";
import { uploadPlan, type UploadTarget, type WrittenObjects } from "./object_upload.ts";
import { objectCount, planUpload, type UploadPlan } from "./plan.ts";
import { retry } from "./retry.ts";
import { UploadMemory } from "./upload_memory.ts";
import { UploadPace } from "./upload_pace.ts";

export interface UploaderOptions extends Pick<UploadTarget, "store" | "clusterId"> {
  readonly env: Env;
  readonly objects: ObjectManager;
  readonly streams: Pick<StreamManager, "viewStream">;
  readonly splitBytes: number;
  readonly idBlock: number;
  readonly puts?: PutSizes;
  /** Instead of a rate that follows the producers. */
  readonly bytesPerSecond: number | null;
  /** First WAL slot that is needed once the block and all before it are committed. */
  readonly walTrimAfter: (block: LogCacheBlock) => number;
  readonly onCommitted: (
    block: LogCacheBlock,
    commit: UploadCommit,
    indexes: readonly WrittenIndex[],
  ) => void;
  /** Null when uploads work (again). */
  readonly onHealth: (problem: string | null) => void;
}

interface Task {
  readonly block: LogCacheBlock;
  readonly committed: Promise<void>;
}

export class Uploader {
  readonly #options: UploaderOptions;
  readonly #ids: IdPool;
  readonly #memory: UploadMemory;
  readonly #puts: PutSizes;
  readonly #pace: UploadPace;
  readonly #slots = new Semaphore(UPLOADS_IN_FLIGHT_MAX);
  readonly #stop = new AbortController();
  readonly #tasks: Task[] = [];
  #reserved: Promise<unknown> = Promise.resolve();
  /** Steps that fail at the moment; uploads work when there is none. */
  #failing = 0;
  #committedBytes = 0;

  constructor(options: UploaderOptions) {
    this.#options = options;
    this.#ids = new IdPool(options.objects, options.idBlock);
    this.#puts = options.puts ?? DEFAULT_PUT_SIZES;
    this.#memory = new UploadMemory(this.#puts.singleBytesMax);
    this.#pace = new UploadPace(options.env.clock, options.bytesPerSecond);
  }

  /** Blocks that are archived and not committed. */
  get pending(): number {
    return this.#tasks.length;
  }

  load(): UploadLoad {
    return { bytes: this.#committedBytes, isHurried: this.#pace.isHurried };
  }

  /**
   * Resolves when the block and all before it are committed; rejects when the uploader stops. The time it
   * took to fill sets the pace.
   */
  submit(block: LogCacheBlock, filledInMs: number): Promise<void> {
    this.#pace.add(block.bytes, filledInMs);
    const before = this.#tasks.at(-1)?.committed ?? Promise.resolve();
    const committed = this.#run(block, before);
    const task = { block, committed };
    this.#tasks.push(task);
    const done = () => {
      this.#tasks.splice(this.#tasks.indexOf(task), 1);
      if (this.#tasks.length === 0) this.#pace.reset();
    };
    committed.then(done, (error: unknown) => {
      done();
      this.stop(error);
    });
    return committed;
  }

  /** Resolves when every submitted block is committed. */
  drain(): Promise<void> {
    return this.#tasks.at(-1)?.committed ?? Promise.resolve();
  }

  /** The last task whose block holds something that matters to the caller. */
  committedOf(isWanted: (block: LogCacheBlock) => boolean): Promise<void> {
    return this.#tasks.findLast(({ block }) => isWanted(block))?.committed ?? Promise.resolve();
  }

  /** Somebody waits for what is submitted, or room gets short: no pace until it is committed. */
  hurry(): void {
    if (this.#tasks.length > 0) this.#pace.hurry();
  }

  /** Ends all retries; submitted blocks reject with the reason. */
  stop(reason: unknown): void {
    if (this.#stop.signal.aborted) return;
    this.#options.onHealth(messageOf(reason));
    this.#stop.abort(reason);
    this.#pace.hurry();
  }

  async #run(block: LogCacheBlock, before: Promise<void>): Promise<void> {
    const { splitBytes, env, onCommitted } = this.#options;
    // A failure of an earlier block is reported by that block; here it means the same: no commit.
    before.catch(() => {});
    const started = env.clock.monotonicMs();
    const plan = planUpload(block.runs(), splitBytes);
    const ids = await this.#reserve(objectCount(plan));
    const { indexes, ...objects } = await this.#slots.run(() => this.#upload(plan, ids));
    await before;
    const commit = { ...objects, walTrim: this.#options.walTrimAfter(block) };
    await this.#commit(commit);
    const bytes = bytesOf(commit);
    this.#committedBytes += bytes;
    env.metrics.count("skerry_upload_bytes_total", {}, bytes);
    env.metrics.observe("skerry_upload_seconds", (env.clock.monotonicMs() - started) / 1000);
    onCommitted(block, commit, indexes);
  }

  #reserve(count: number): Promise<ObjectId[]> {
    const reserved = this.#reserved.then(() => this.#retry("reserve", () => this.#ids.take(count)));
    this.#reserved = reserved.catch(() => {});
    return reserved;
  }

  #upload(plan: UploadPlan, ids: readonly ObjectId[]) {
    const { store, clusterId, env } = this.#options;
    const puts = this.#puts;
    const pace = (bytes: number) => this.#pace.wait(bytes);
    const isUrgent = () => this.#pace.isHurried;
    const { clock } = env;
    const target = { store, clusterId, clock, memory: this.#memory, puts, pace, isUrgent };
    const written: WrittenObjects = new Map();
    return this.#retry("upload", () => uploadPlan(target, plan, ids, written));
  }

  /** After an attempt whose outcome was not known, a refusal may be the echo of our own success. */
  #commit(commit: UploadCommit): Promise<void> {
    return this.#retry("commit", async (attempt) => {
      const answer = await this.#options.objects.commitUpload(commit);
      if (answer.ok) return;
      const isFenced = answer.reason === "fenced";
      if (attempt > 0 && !isFenced && await this.#isCommitted(commit)) return;
      throw refused("Commit of an upload", answer);
    });
  }

  /** Only we move the ends of our streams, so ends at or past ours mean that it was applied. */
  async #isCommitted({ streamSetObject, streamObjects }: UploadCommit): Promise<boolean> {
    await this.#options.objects.refresh();
    const ranges = [...streamSetObject?.ranges ?? [], ...streamObjects.map(({ range }) => range)];
    return ranges.every(({ streamId, end }) => {
      const view = this.#options.streams.viewStream(streamId);
      return view === null || Math.max(view.start, view.end) >= end;
    });
  }

  async #retry<T>(step: string, work: (attempt: number) => Promise<T>): Promise<T> {
    const { env, onHealth } = this.#options;
    let isFailing = false;
    const onFailure = ({ message }: FaultError) => {
      env.metrics.count("skerry_upload_failures_total", { step });
      if (!isFailing) {
        isFailing = true;
        this.#failing += 1;
        env.log.log("warn", "upload-failed", { step, error: message });
      }
      onHealth(`${step} fails: ${message}`);
    };
    const result = await retry(env, work, { signal: this.#stop.signal, onFailure });
    if (isFailing) {
      this.#failing -= 1;
      if (this.#failing === 0) onHealth(null);
    }
    return result;
  }
}

function bytesOf({ streamSetObject, streamObjects }: UploadCommit): number {
  return streamObjects.reduce((sum, { size }) => sum + size, streamSetObject?.size ?? 0);
}
