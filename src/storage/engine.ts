/**
 * The storage engine: joins WAL, log cache, uploader and block cache. A record is visible to readers
 * once it is durable; it stays in the log cache at least until its object is committed, and only then is
 * its WAL slot given up.
 */
import { assert } from "../lib/assert.ts";
import type { Cancel } from "../env/clock.ts";
import type { Offset, StreamId } from "../lib/brand.ts";
import { FaultError, isFault, messageOf } from "../lib/errors.ts";
import { LOG_CACHE_BLOCK_STREAMS_MAX, STREAM_RECORD_HEADER_BYTES } from "../lib/limits.ts";
import { BlockCache } from "./block_cache/block_cache.ts";
import { LogCache } from "./cache/log_cache.ts";
import type { LogCacheBlock } from "./cache/log_cache_block.ts";
import { Collector } from "./cache/record_run.ts";
import { ViewedMemory } from "./cache/viewed_memory.ts";
import { AppendQueue } from "./engine_appends.ts";
import { DEFAULT_ENGINE_OPTIONS, type EngineOptions, type EngineParts } from "./engine_options.ts";
import type { UploadCommit } from "./ports.ts";
import { RecordMemory } from "./record_list.ts";
import type { Append, NotUploaded, ReadOptions, Storage, UploadLoad } from "./storage.ts";
import type { StreamRecord } from "./stream_record.ts";
import { Uploader } from "./upload/uploader.ts";
import { walPlaces } from "./wal/wal_object.ts";
import type { Learned } from "./written_index.ts";

/** So that two more blocks fit while one is being uploaded. */
const BLOCKS_PER_CACHE = 3;
/** A block is uploaded when it spans this share of the slots: the next one still has room. */
const BLOCKS_PER_SLOT_CAP = 2;
/** Share of a cap from which on uploads go as fast as they can: long before producers are refused. */
const HURRY_ABOVE = 0.5;

/** When a block that is not committed got its first record. */
interface OpenedAt {
  readonly monotonicMs: number;
  readonly wallMs: number;
}

export function createStorage(parts: EngineParts): Storage {
  return new Engine(parts);
}

class Engine implements Storage {
  readonly #parts: EngineParts;
  readonly #options: EngineOptions;
  readonly #cache: LogCache;
  readonly #blockCache: BlockCache;
  readonly #uploader: Uploader;
  readonly #viewed = new ViewedMemory();
  readonly #appends = new AppendQueue((body, slot) => this.#onDurable(body, slot));
  #lastSlot: number;
  #trimmedTo: number;
  #cancelTimer: Cancel | null = null;
  /** Of blocks that are not committed, in their order. */
  readonly #openedAt: OpenedAt[] = [];
  #fault: FaultError | null = null;
  #closing: Promise<void> | null = null;

  constructor(parts: EngineParts) {
    this.#parts = parts;
    this.#options = { ...DEFAULT_ENGINE_OPTIONS, ...parts.options };
    const { store, openStore = store, clusterId, nodeId, objects, streams, env, wal } = parts;
    const { splitBytes, idBlock, puts, uploadBytesPerSecond } = this.#options;
    this.#cache = new LogCache(this.#options.logCacheBytesMax);
    this.#blockCache = new BlockCache({
      env,
      store,
      openStore,
      clusterId,
      nodeId,
      objects,
      streams,
      blockBytesMax: this.#options.blockCacheBytesMax,
      indexBytesMax: this.#options.indexCacheBytesMax,
      rangeBytesMax: this.#options.rangeIndexBytesMax,
      sparseObjectsMin: this.#options.sparseObjectsMin,
    });
    this.#uploader = new Uploader({
      env,
      store,
      clusterId,
      objects,
      streams,
      splitBytes,
      idBlock,
      puts,
      bytesPerSecond: uploadBytesPerSecond,
      walTrimAfter: (block) => this.#walTrimAfter(block),
      onCommitted: (block, commit, indexes) => {
        const written = { ...commit, indexes };
        this.learn(written);
        parts.onUploaded?.(written);
        this.#onCommitted(block, commit);
      },
      onHealth: (problem) => parts.onHealth?.(problem),
    });
    const { trimmedTo, nextSlot } = wal.state();
    this.#trimmedTo = trimmedTo;
    this.#lastSlot = nextSlot - 1;
    this.#showSizes();
    wal.onFenced((reason) => {
      this.#fail(new FaultError("fenced", `WAL fenced: ${reason}`, { retriable: false }));
    });
  }

  append(record: StreamRecord): Append {
    if (this.#fault !== null) throw this.#fault;
    if (this.#closing !== null) {
      throw new FaultError("closed", "Storage is closed", { retriable: false });
    }
    this.#admit();
    try {
      const appended = this.#parts.wal.append(record);
      this.#lastSlot = appended.slot;
      return { record: appended.record, durable: this.#appends.add(appended) };
    } catch (error) {
      if (isFault(error, "overloaded")) this.#makeRoom();
      throw error;
    }
  }

  #admit(): void {
    const problem = this.#backPressure(1) ?? this.#ageProblem();
    if (problem === null) return;
    this.#makeRoom();
    throw new FaultError("overloaded", problem, { retriable: true });
  }

  /** What is above this share of a cap; null when nothing is. */
  #backPressure(share: number): string | null {
    const { logCacheBytesMax, slotsMax } = this.#options;
    const bytes = this.#cache.uncommittedBytes;
    const slots = this.#lastSlot + 1 - this.#trimmedTo;
    if (bytes < share * logCacheBytesMax && slots < share * slotsMax) return null;
    return `${bytes} bytes in ${slots} WAL slots wait for upload`;
  }

  /** Only while an upload is late: then the time is worth a look per append. */
  #ageProblem(): string | null {
    const oldest = this.#openedAt[0];
    if (oldest === undefined || this.#uploader.pending === 0) return null;
    const ageMs = this.#parts.env.clock.monotonicMs() - oldest.monotonicMs;
    if (ageMs < this.#options.ageMsMax) return null;
    return `Records wait for upload since ${Math.round(ageMs / 1_000)} s`;
  }

  /** Blocks under way make room by themselves; without any the open block must go. */
  #makeRoom(): void {
    if (this.#uploader.pending === 0) this.#archive();
    this.#uploader.hurry();
  }

  #onDurable(body: Uint8Array, slot: number): void {
    const memory = new RecordMemory(body);
    let bytes = 0;
    for (const at of walPlaces(body)) {
      if (this.#cache.open?.continuesWith(memory, at) === false) this.#archive();
      if (this.#cache.open === null) this.#noteOpened();
      this.#cache.putStored(memory, at, slot);
      bytes += STREAM_RECORD_HEADER_BYTES + memory.payloadBytesAt(at);
    }
    const { metrics, clock } = this.#parts.env;
    metrics.count("skerry_append_bytes_total", {}, bytes);
    this.#forgetFreed();
    if (this.#isOpenFull()) this.#archive();
    else if (this.#cancelTimer === null) {
      this.#cancelTimer = clock.after(this.#options.uploadIntervalMs, () => this.#archive());
    }
    if (this.#backPressure(HURRY_ABOVE) !== null) this.#makeRoom();
    this.#showSizes();
  }

  #noteOpened(): void {
    const { clock } = this.#parts.env;
    this.#openedAt.push({ monotonicMs: clock.monotonicMs(), wallMs: clock.nowMs() });
  }

  #isOpenFull(): boolean {
    const open = this.#cache.open;
    if (open === null) return false;
    const { uploadBytes, logCacheBytesMax, slotsMax } = this.#options;
    return open.bytes >= Math.min(uploadBytes, logCacheBytesMax / BLOCKS_PER_CACHE) ||
      open.lastSlot + 1 - open.firstSlot >= slotsMax / BLOCKS_PER_SLOT_CAP ||
      open.streams >= LOG_CACHE_BLOCK_STREAMS_MAX;
  }

  /** Hands the open block, if any, to the uploader. */
  #archive(): void {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    const block = this.#cache.archive();
    const openedAt = this.#openedAt.at(-1);
    if (block === null || openedAt === undefined) return;
    const filledInMs = this.#parts.env.clock.monotonicMs() - openedAt.monotonicMs;
    this.#uploader.submit(block, filledInMs).catch((error: unknown) => this.#fail(error));
  }

  /** Blocks commit in WAL order: all that is older is committed by then. */
  #walTrimAfter(block: LogCacheBlock): number {
    return this.#cache.firstSlotNeededAfter(block) ?? this.#appends.firstSlot ??
      this.#parts.wal.state().nextSlot;
  }

  learn(written: Learned): void {
    this.#blockCache.learn(written);
  }

  uploadLoad(): UploadLoad {
    return this.#uploader.load();
  }

  #onCommitted(block: LogCacheBlock, { walTrim }: UploadCommit): void {
    this.#cache.markCommitted(block);
    this.#openedAt.shift();
    this.#trimmedTo = walTrim;
    this.#parts.wal.trim(walTrim);
    this.#forgetFreed();
    this.#showSizes();
  }

  /** What the cache has freed is committed, so nobody uploads it any more: only readers may view it. */
  #forgetFreed(): void {
    const { wal } = this.#parts;
    const slot = this.#cache.firstSlot ?? this.#appends.firstSlot ?? wal.state().nextSlot;
    wal.forget(slot, (buffer) => this.#viewed.isViewed(buffer));
  }

  #showSizes(): void {
    const { metrics } = this.#parts.env;
    metrics.gauge("skerry_log_cache_bytes", this.#cache.bytes);
    metrics.gauge("skerry_log_cache_uncommitted_bytes", this.#cache.uncommittedBytes);
    metrics.gauge("skerry_wal_uncommitted_slots", this.#lastSlot + 1 - this.#trimmedTo);
    const sinceMs = this.#openedAt[0]?.wallMs ?? 0;
    metrics.gauge("skerry_log_cache_uncommitted_since_seconds", sinceMs / 1_000);
  }

  #fail(error: unknown): void {
    if (this.#fault !== null || this.#closing !== null && isFault(error, "closed")) return;
    this.#fault = isFault(error)
      ? error
      : new FaultError("closed", `Storage stopped: ${messageOf(error)}`, {
        retriable: false,
        cause: error,
      });
    this.#parts.env.log.log("error", "storage-stopped", { error: messageOf(error) });
    this.#stop(this.#fault);
    this.#parts.onFatal?.(error);
  }

  #stop(fault: FaultError): void {
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    this.#uploader.stop(fault);
    this.#blockCache.close();
  }

  abandon(fault: FaultError): NotUploaded {
    const { wal } = this.#parts;
    const left = {
      durableBytes: this.#cache.uncommittedBytes,
      slots: this.#lastSlot + 1 - this.#trimmedTo,
      unacknowledgedBytes: wal.state().unacknowledgedBytes,
    };
    this.#fault ??= fault;
    this.#stop(this.#fault);
    wal.abandon(fault);
    return left;
  }

  async read(
    stream: StreamId,
    start: Offset,
    end: Offset,
    options: ReadOptions,
  ): Promise<readonly StreamRecord[] | null> {
    if (start >= end) return [];
    const { bytesMax, cacheOnly = false, lease } = options;
    const hit = this.#cache.get(stream, start, end, bytesMax);
    // Before the first await: a block may be freed while the older part is read.
    if (hit !== null) this.#viewed.view(hit.records, lease);
    const { metrics } = this.#parts.env;
    const outcome = hit === null ? "miss" : hit.full ? "hit" : "part";
    // A look without the objects is asked again with them.
    if (hit?.full === true || !cacheOnly) {
      metrics.count("skerry_log_cache_reads_total", { outcome });
    }
    if (hit?.full === true) return this.#answer("log-cache", hit.records);
    if (cacheOnly) return null;
    const cold = await this.#blockCache.read(stream, start, hit?.from ?? end, options);
    const joined = new Collector(start, end, bytesMax);
    joined.addAll(cold);
    joined.addAll(hit?.records ?? []);
    assert(joined.records.length > 0, `Nothing read of stream ${stream} at ${start}`);
    return this.#answer("objects", joined.records);
  }

  #answer(source: string, records: readonly StreamRecord[]): readonly StreamRecord[] {
    const bytes = records.reduce((sum, record) => sum + record.payload.length, 0);
    const { metrics } = this.#parts.env;
    metrics.count("skerry_read_bytes_total", { source }, bytes);
    if (source !== "log-cache") metrics.gauge("skerry_block_cache_bytes", this.#blockCache.bytes);
    return records;
  }

  async forceUpload(stream: StreamId): Promise<void> {
    if (this.#fault !== null) throw this.#fault;
    if (this.#cache.open?.run(stream) !== undefined) this.#archive();
    this.#uploader.hurry();
    await this.#uploader.committedOf((block) => block.run(stream) !== undefined);
  }

  close(): Promise<void> {
    this.#closing ??= this.#shutDown();
    return this.#closing;
  }

  /** A fenced engine has nothing to save: what it acknowledged is the recoverer's. */
  async #shutDown(): Promise<void> {
    await this.#appends.settled();
    this.#archive();
    this.#uploader.hurry();
    try {
      await this.#uploader.drain();
    } catch (error) {
      if (this.#fault === null) throw error;
    } finally {
      this.#blockCache.close();
      await this.#parts.wal.close();
    }
  }
}
