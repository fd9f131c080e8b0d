/**
 * Data objects of one node under real metadata, without a WAL: tests upload what they like, compact it,
 * and read it back. What was uploaded is remembered and compared byte for byte.
 */
import assert from "node:assert/strict";
import { type MetadataOptions, openMetadata } from "../../src/controller/controller.ts";
import { objectsCover, rangesHold } from "../../src/controller/invariants.ts";
import { createManagers, type Managers } from "../../src/controller/managers.ts";
import type { Requester } from "../../src/controller/command.ts";
import type { MetadataStore } from "../../src/controller/metadata_store.ts";
import type { StateImage } from "../../src/controller/state.ts";
import { type CapturedLine, capturingLogger } from "../../src/env/logger.ts";
import type { Env } from "../../src/env/env.ts";
import { seededRandom } from "../../src/env/random.ts";
import {
  nodeEpoch,
  nodeId,
  type ObjectId,
  objectId,
  streamEpoch,
  type StreamId,
  streamId,
} from "../../src/lib/brand.ts";
import { crc32c } from "../../src/lib/crc32c.ts";
import { createMemoryStore } from "../../src/object/memory.ts";
import { dataKey } from "../../src/object/object_key.ts";
import type { ObjectStore } from "../../src/object/object_store.ts";
import { BlockCache } from "../../src/storage/block_cache/block_cache.ts";
import { LogCacheBlock } from "../../src/storage/cache/log_cache_block.ts";
import { createCompactor } from "../../src/storage/compaction/compactor.ts";
import type { Compactor } from "../../src/storage/compaction/compactor.ts";
import { CompactionBudget } from "../../src/storage/compaction/budget.ts";
import {
  type CompactionOptions,
  DEFAULT_COMPACTION_OPTIONS,
} from "../../src/storage/compaction/options.ts";
import type { RunParts } from "../../src/storage/compaction/run.ts";
import { SourceReader } from "../../src/storage/compaction/source_reader.ts";
import { readIndex } from "../../src/storage/format/object_reader.ts";
import { ObjectWriter } from "../../src/storage/format/object_writer.ts";
import type { StreamRange } from "../../src/storage/ports.ts";
import type { Learned } from "../../src/storage/written_index.ts";
import { endOffset, type StreamRecord } from "../../src/storage/stream_record.ts";
import { IdPool } from "../../src/storage/upload/id_pool.ts";
import { uploadPlan } from "../../src/storage/upload/object_upload.ts";
import { objectCount, planUpload } from "../../src/storage/upload/plan.ts";
import { UploadMemory } from "../../src/storage/upload/upload_memory.ts";
import { createFakeClock, type FakeClock } from "./fake_clock.ts";
import { type FaultPlan, type FaultyStore, faultyStore } from "./faulty_store.ts";
import { testEnv } from "./test_env.ts";

export const COMPACTION_CLUSTER = "test";
export const COMPACTION_NODE = nodeId(1);
const EPOCH = streamEpoch(1);

/** Every record has bytes of its own. */
export function payloadOf(stream: number, offset: number, bytes: number): Uint8Array {
  return seededRandom(stream * 1_000_003 + offset).bytes(bytes);
}

export function piece(stream: number, start: number, end: number, bytes: number): StreamRecord {
  const payload = payloadOf(stream, start, bytes);
  return {
    streamId: streamId(stream),
    epoch: EPOCH,
    baseOffset: start,
    count: end - start,
    payload,
  };
}

/** One incarnation of the node. */
export interface Incarnation {
  readonly metadata: MetadataStore;
  readonly store: FaultyStore;
  readonly managers: Managers;
  readonly requester: Requester;
  readonly env: Env;
  readonly lines: readonly CapturedLine[];
}

export class CompactionWorld {
  readonly clock: FakeClock = createFakeClock();
  readonly base: ObjectStore = createMemoryStore(this.clock);
  readonly #uploaded = new Map<StreamId, StreamRecord[]>();
  #incarnations = 0;

  /** Moves time until the promise settles. */
  async drive<T>(promise: Promise<T>, stepMs = 50): Promise<T> {
    let settled = false;
    const done = promise.finally(() => {
      settled = true;
    });
    done.catch(() => {});
    for (let i = 0; i < 5_000 && !settled; i++) {
      await this.clock.settle();
      if (!settled) await this.clock.advance(stepMs);
    }
    assert.ok(settled, "the promise does not settle");
    return await done;
  }

  /** Registers the node anew; earlier incarnations are fenced. Their WAL is empty. */
  async start(plan?: FaultPlan, options: Partial<MetadataOptions> = {}): Promise<Incarnation> {
    const store = faultyStore(this.base, this.clock);
    const log = capturingLogger();
    const random = seededRandom(++this.#incarnations);
    const env = testEnv({ clock: this.clock, random, log });
    const incarnation = this.#incarnations.toString(16).padStart(32, "0");
    const metadata = await this.drive(openMetadata({
      store,
      env,
      clusterId: COMPACTION_CLUSTER,
      nodeId: COMPACTION_NODE,
      incarnation,
      pollMs: null,
      ...options,
    }));
    const registered = await this.drive(metadata.submit({
      type: "register-node",
      nodeId: COMPACTION_NODE,
      incarnation,
      host: "h",
      port: 1,
    }));
    assert.ok(registered.ok);
    const requester = { nodeId: COMPACTION_NODE, epoch: nodeEpoch(registered.epoch) };
    const managers = createManagers(metadata, () => requester);
    await this.#recoverEmptyWals(managers);
    for (const stream of this.#uploaded.keys()) {
      const opened = await this.drive(managers.streams.openStream(stream, EPOCH));
      assert.ok(opened.ok, JSON.stringify(opened));
    }
    store.setPlan(plan);
    return { metadata, store, managers, requester, env, lines: log.lines };
  }

  async #recoverEmptyWals({ recovery }: Managers): Promise<void> {
    for (const { nodeId: node, epoch } of recovery.pendingRecoveries()) {
      const begun = await this.drive(recovery.beginRecovery(node, epoch));
      assert.ok(begun.ok);
      const ends = begun.wal.streams.map(({ streamId: id, start, end }) => ({
        streamId: id,
        end: Math.max(start, end),
      }));
      const finished = await this.drive(recovery.finishRecovery({
        wal: begun.wal,
        streamSetObject: null,
        streamObjects: [],
        ends,
        sealedSlot: 0,
      }));
      assert.ok(finished.ok, JSON.stringify(finished));
    }
  }

  async createStreams({ managers }: Incarnation, count: number): Promise<void> {
    for (let i = 0; i < count; i++) {
      const created = await this.drive(managers.streams.createStream(EPOCH));
      assert.ok(created.ok);
      this.#uploaded.set(created.streamId, []);
    }
  }

  /** The next records of a stream: their counts and sizes. */
  next(stream: number, ...sizes: readonly (readonly [count: number, bytes: number])[]) {
    const before = this.#uploaded.get(streamId(stream)) ?? [];
    let at = before.at(-1) === undefined ? 0 : endOffset(before.at(-1)!);
    return sizes.map(([count, bytes]): StreamRecord => {
      const baseOffset = at;
      at += count;
      return {
        streamId: streamId(stream),
        epoch: EPOCH,
        baseOffset,
        count,
        payload: payloadOf(stream, baseOffset, bytes),
      };
    });
  }

  /** As the uploader does it: one object for all streams, and one for each large one. */
  async upload(
    { managers, store }: Incarnation,
    records: readonly StreamRecord[],
    splitBytes = 1e9,
  ): Promise<Learned> {
    const block = new LogCacheBlock(0);
    for (const record of records) block.put(record, 0);
    const plan = planUpload(block.runs(), splitBytes);
    const ids = await this.drive(new IdPool(managers.objects, 64).take(objectCount(plan)));
    const memory = new UploadMemory();
    const target = { store, clusterId: COMPACTION_CLUSTER, memory, clock: this.clock };
    const { indexes, ...written } = await this.drive(uploadPlan(target, plan, ids));
    const done = await this.drive(managers.objects.commitUpload({ ...written, walTrim: 0 }));
    assert.ok(done.ok, JSON.stringify(done));
    for (const record of records) this.#uploaded.get(record.streamId)!.push(record);
    return { ...written, indexes };
  }

  /** Objects as a test draws them: each record is a block of its own. Returns the ids. */
  async commit(
    { managers, store }: Incarnation,
    set: readonly StreamRecord[],
    own: readonly (readonly StreamRecord[])[] = [],
  ): Promise<ObjectId[]> {
    const runs = set.length === 0 ? own : [set, ...own];
    const ids = await this.drive(new IdPool(managers.objects, 64).take(runs.length));
    const objects = [];
    for (const [i, records] of runs.entries()) {
      const writer = new ObjectWriter(1);
      for (const record of records) writer.add(record);
      const { size, ranges, index, encode } = writer.finish();
      const bytes = encode();
      await this.drive(store.put(dataKey(COMPACTION_CLUSTER, ids[i]!), bytes));
      const checksums = { bytesCrc: crc32c(bytes), indexCrc: crc32c(index) };
      objects.push({ objectId: ids[i]!, size, ranges, ...checksums });
    }
    const [first, ...others] = objects;
    const streamObjects = (set.length === 0 ? objects : others)
      .map(({ ranges, ...object }) => ({ ...object, range: ranges[0]!, attributes: 0 }));
    const streamSetObject = set.length === 0 ? null : first!;
    const upload = { streamSetObject, streamObjects, walTrim: 0 };
    const done = await this.drive(managers.objects.commitUpload(upload));
    assert.ok(done.ok, JSON.stringify(done));
    for (const record of runs.flat()) this.#uploaded.get(record.streamId)!.push(record);
    return ids;
  }

  async trim({ managers }: Incarnation, stream: number, start: number): Promise<void> {
    const done = await this.drive(managers.streams.trimStream(streamId(stream), EPOCH, start));
    assert.ok(done.ok, JSON.stringify(done));
  }

  async deleteStream({ managers }: Incarnation, stream: number): Promise<void> {
    const id = streamId(stream);
    const view = managers.streams.viewStream(id)!;
    const end = Math.max(view.start, view.end);
    assert.ok((await this.drive(managers.streams.closeStream(id, EPOCH, end))).ok);
    assert.ok((await this.drive(managers.streams.deleteStream(id))).ok);
    this.#uploaded.delete(id);
  }

  compactor(
    { managers, store, env }: Incarnation,
    options: Partial<CompactionOptions> = {},
    onCommitted: (written: Learned) => void = () => {},
  ): Compactor {
    return createCompactor({
      env,
      store,
      clusterId: COMPACTION_CLUSTER,
      nodeId: COMPACTION_NODE,
      objects: managers.objects,
      streams: managers.streams,
      compaction: managers.compaction,
      options,
      onCommitted,
    });
  }

  /** What single rewrites are made with. */
  runParts(
    { managers, store, env }: Incarnation,
    options: Partial<CompactionOptions> = {},
    signal: AbortSignal = new AbortController().signal,
  ): RunParts {
    const budget = new CompactionBudget(this.clock, 1e12);
    const ignore = () => {};
    const settings = { ...DEFAULT_COMPACTION_OPTIONS, ...options };
    return {
      env,
      store,
      clusterId: COMPACTION_CLUSTER,
      objects: managers.objects,
      streams: managers.streams,
      compaction: managers.compaction,
      ids: new IdPool(managers.objects, 64),
      reader: new SourceReader({
        store,
        clusterId: COMPACTION_CLUSTER,
        budget,
        limits: settings,
        signal,
        onRead: ignore,
        onDamaged: ignore,
      }),
      budget,
      options: settings,
      signal,
      onNothingDead: ignore,
      onCommitted: ignore,
    };
  }

  reader({ managers, store, env }: Incarnation): BlockCache {
    return new BlockCache({
      env,
      store,
      clusterId: COMPACTION_CLUSTER,
      nodeId: COMPACTION_NODE,
      objects: managers.objects,
      streams: managers.streams,
      blockBytesMax: 1e7,
      indexBytesMax: 1e6,
      rangeBytesMax: 1e6,
    });
  }

  streams(): StreamId[] {
    return [...this.#uploaded.keys()];
  }

  /** Every live record of every stream: there, once, in order, with its bytes; and I7, I8 hold. */
  async check(node: Incarnation, cache = this.reader(node)): Promise<void> {
    for (const stream of this.streams()) await this.checkStream(node, stream, cache);
    const image = node.metadata.view() as StateImage;
    assert.equal(rangesHold(image), null);
    assert.equal(objectsCover(image, await this.streamSetRanges(image)), null);
  }

  async checkStream(
    { managers }: Incarnation,
    stream: StreamId,
    cache: BlockCache,
  ): Promise<void> {
    const { start, end } = managers.streams.viewStream(stream)!;
    const expected = this.#uploaded.get(stream)!.filter((record) => endOffset(record) > start)
      .toSorted((a, b) => a.baseOffset - b.baseOffset);
    if (start >= end) return;
    const read = await this.drive(cache.read(stream, start, end, { bytesMax: 1e9 }));
    assert.deepEqual(
      read.map(({ baseOffset, count }) => [baseOffset, count]),
      expected.map(({ baseOffset, count }) => [baseOffset, count]),
      `stream ${stream}`,
    );
    for (const [i, { payload }] of read.entries()) {
      assert.deepEqual(payload, expected[i]!.payload, `stream ${stream}, record ${i}`);
    }
  }

  async streamSetRanges(image: StateImage): Promise<Map<ObjectId, readonly StreamRange[]>> {
    const ranges = new Map<ObjectId, readonly StreamRange[]>();
    for (const ids of image.streamSets.values()) {
      for (const id of ids) {
        const { size, bytesCrc, indexCrc } = image.objects.get(id)!;
        const checksums = { bytesCrc, indexCrc };
        const key = dataKey(COMPACTION_CLUSTER, id);
        const index = await readIndex(this.base, key, { size, checksums });
        ranges.set(id, index!.ranges());
      }
    }
    return ranges;
  }

  /** Data objects in the store. */
  async dataObjects(): Promise<ObjectId[]> {
    const ids: ObjectId[] = [];
    for await (const { key } of this.base.list("")) {
      if (/^[0-9a-f]{8}\//.test(key)) ids.push(objectId(Number(key.split("/").at(-1))));
    }
    return ids.toSorted((a, b) => a - b);
  }

  /** Data objects that metadata names and has not destroyed. */
  liveObjects({ metadata }: Incarnation): ObjectId[] {
    return [...metadata.view().objects.values()].filter(({ state }) => state === "committed")
      .map(({ objectId: id }) => id).toSorted((a, b) => a - b);
  }
}
