/**
 * What a client sees of a broker that dies and comes back: one partition log after the other on a store that
 * stays, and the questions of the scenarios as Kafka requests. Producer 7 has epoch 3 unless a call says otherwise.
 */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDirStore } from "../../src/adapters/dir_store.ts";
import { PARTITION_TICK_MS } from "../../src/lib/limits.ts";
import { createMemoryStore } from "../../src/object/memory.ts";
import type { ObjectStore } from "../../src/object/object_store.ts";
import { type ErrorName, errorName } from "../../src/protocol/error_code.ts";
import type { Api } from "../../src/protocol/api.ts";
import { listOffsetsApi } from "../../src/protocol/message/02_list_offsets.ts";
import { deleteRecordsApi } from "../../src/protocol/message/21_delete_records.ts";
import { initProducerIdApi } from "../../src/protocol/message/22_init_producer_id.ts";
import { writeTxnMarkersApi } from "../../src/protocol/message/27_write_txn_markers.ts";
import { describeProducersApi } from "../../src/protocol/message/61_describe_producers.ts";
import { SEQUENCES } from "../../src/log/sequence.ts";
import { drive, FaultWorld } from "../faults/world.ts";
import type { RawClient } from "../quirks/quirk_node.ts";
import { batch, batchesOf, Quirks, textOf } from "../quirks/quirks.ts";
import { createFakeClock, type FakeClock } from "../support/fake_clock.ts";
import { committedValues } from "../support/read_committed.ts";
import type { FaultPlan } from "../support/faulty_store.ts";

/** Idle time after which a producer is forgotten; 24 hours where nothing is set. */
export const X = 600_000;

export type Store = "memory" | "directory";
/** How a node ends: with a checkpoint of every log, or without a word. */
export type End = "close" | "kill";

export interface SkewedClock extends FakeClock {
  /** What the wall clock is ahead of the time that passed. */
  skewMs: number;
}

export interface Over {
  readonly topic?: string;
  readonly partition?: number;
  readonly producerId?: number;
  readonly epoch?: number;
  readonly key?: string;
  /** One per record, instead of the sequences. */
  readonly keys?: readonly string[];
  /** Of all records; now when absent. */
  readonly timestamp?: number;
  readonly transactional?: boolean;
}

export type Kafka = Readonly<Record<string, string>>;

const QUIET: Kafka = { "connections.max.idle.ms": "999999999999" };

export function isWalKey(key: string): boolean {
  return key.includes("/wal/");
}

function skewed(clock: FakeClock): SkewedClock {
  const made: SkewedClock = {
    ...clock,
    skewMs: 0,
    nowMs: () => clock.nowMs() + made.skewMs,
    get timers() {
      return clock.timers;
    },
  };
  return made;
}

/** Tells what is under way with a store whose I/O is real. */
function watched(store: ObjectStore, underWay: Set<Promise<unknown>>): ObjectStore {
  const during = async <T>(work: () => Promise<T>): Promise<T> => {
    const working = work();
    underWay.add(working);
    try {
      return await working;
    } finally {
      underWay.delete(working);
    }
  };
  return {
    put: (key, body, options) => during(() => store.put(key, body, options)),
    putParts: (key, parts) => during(() => store.putParts(key, parts)),
    get: (key, options) => during(() => store.get(key, options)),
    head: (key) => during(() => store.head(key)),
    async *list(prefix, options) {
      // Whole at once: between two pages of a listing nobody would know that one is under way.
      yield* await during(() => Array.fromAsync(store.list(prefix, options)));
    },
    delete: (keys) => during(() => store.delete(keys)),
    close: () => store.close(),
  };
}

/** `b(first..last)`: a sequence for each record, its value tells it. */
export function sequenced(first: number, last: number, nowMs: number, over: Over = {}): Uint8Array {
  const { producerId = 7, epoch = 3, timestamp = nowMs, transactional = false } = over;
  const count = (last - first + SEQUENCES) % SEQUENCES + 1;
  const records = Array.from({ length: count }, (_, i) => ({
    key: over.keys?.[i] ?? over.key ?? null,
    value: String((first + i) % SEQUENCES),
    timestamp,
  }));
  return batch(records, { producer: [producerId, epoch, first], transactional });
}

export class RecoveryWorld {
  readonly clock: SkewedClock;
  readonly bucket: ObjectStore;
  readonly store: Store;
  readonly #kafka: Kafka;
  #lives = 0;
  #life: FaultWorld | null = null;
  clusterId = "";

  private constructor(clock: SkewedClock, bucket: ObjectStore, store: Store, kafka: Kafka) {
    this.clock = clock;
    this.bucket = bucket;
    this.store = store;
    this.#kafka = { "producer.id.expiration.ms": String(X), ...QUIET, ...kafka };
  }

  static memory(kafka: Kafka = {}): RecoveryWorld {
    const clock = skewed(createFakeClock());
    return new RecoveryWorld(clock, createMemoryStore(clock), "memory", kafka);
  }

  static async directory(path: string, kafka: Kafka = {}): Promise<RecoveryWorld> {
    const underWay = new Set<Promise<unknown>>();
    const all = () => underWay.size === 0 ? null : Promise.allSettled(underWay);
    const clock = skewed(createFakeClock(undefined, all));
    const bucket = watched(await openDirStore(path, { clock }), underWay);
    return new RecoveryWorld(clock, bucket, "directory", kafka);
  }

  /** The same bytes for another future: both go on from here by themselves. */
  async fork(): Promise<RecoveryWorld> {
    const world = RecoveryWorld.memory(this.#kafka);
    await world.clock.advance(this.clock.monotonicMs());
    world.clock.skewMs = this.clock.skewMs;
    for await (const { key } of this.bucket.list("")) {
      await world.bucket.put(key, (await this.bucket.get(key))!.bytes);
    }
    world.#lives = this.#lives + 100;
    world.clusterId = this.clusterId;
    return world;
  }

  /** The process that lives, or the one that was there last. */
  get life(): FaultWorld {
    assert.ok(this.#life !== null, "never started");
    return this.#life;
  }
  get q(): Quirks {
    return this.life.q;
  }

  async start(kafka: Kafka = {}, { nodeId = 1 } = {}): Promise<void> {
    this.#lives += 1;
    this.#life = new FaultWorld({
      clock: this.clock,
      bucket: this.bucket,
      kafka: { ...this.#kafka, ...kafka },
      seed: this.#lives * 1000,
      nodeId,
    });
    this.clusterId = (await this.#life.start()).node.node.clusterId;
  }

  async close(): Promise<void> {
    await drive(this.clock, this.q.node.close(), "the close");
  }

  /** kill -9; what the store had in its hands comes to its end before anybody else starts. */
  async kill(): Promise<void> {
    this.life.kill();
    await this.clock.settle();
  }

  /** A close that dies at the write after so many, before or after its effect; true when it came to its end. */
  async dieInClose(writes: number, happens: boolean): Promise<boolean> {
    let seen = 0;
    this.setPlan(({ op }) => {
      if (seen > writes) return { kind: "hang", happens: false };
      if (op === "get" || op === "list") return undefined;
      return ++seen > writes ? { kind: "hang", happens } : undefined;
    });
    let isClosed = false;
    this.q.node.close().then(() => void (isClosed = seen <= writes), () => {});
    for (let i = 0; i < 20 && !isClosed && seen <= writes; i++) await this.clock.advance(100);
    await this.kill();
    return isClosed;
  }

  end(how: End): Promise<void> {
    return how === "close" ? this.close() : this.kill();
  }

  async restart(how: End, kafka: Kafka = {}): Promise<void> {
    await this.end(how);
    await this.start(kafka);
  }

  /** Time passes while the broker is up, and the partition looks for producers that are idle. */
  async idle(ms = X): Promise<void> {
    await this.clock.advance(ms + PARTITION_TICK_MS);
  }

  call<Q, S, QIn, SOut>(api: Api<Q, S, QIn, SOut>, version: number, request: QIn): Promise<SOut> {
    return drive(this.clock, this.q.call(api, version, request));
  }

  topic(name = "t", partitions = 1, configs: Kafka = {}): Promise<string> {
    return drive(this.clock, this.q.topic(name, partitions, configs));
  }

  /** `@` and the base offset of the answer, or the error's name. */
  async send(first: number, last: number, over: Over = {}): Promise<string> {
    const { error, baseOffset } = await this.produce(first, last, over);
    return error === "NONE" ? `@${baseOffset}` : error;
  }

  produce(first: number, last: number, over: Over = {}) {
    const { topic = "t", partition = 0 } = over;
    const records = sequenced(first, last, this.clock.nowMs(), over);
    return drive(this.clock, this.q.produce(topic, records, { partition }));
  }

  connect(): RawClient {
    return this.q.node.connect();
  }

  /** The log's end as clients see it, or the last stable offset. */
  async logEnd({ topic = "t", partition = 0, committed = false } = {}): Promise<number> {
    return await this.#offset(topic, partition, -1, committed ? 1 : 0);
  }

  async logStart({ topic = "t", partition = 0 } = {}): Promise<number> {
    return await this.#offset(topic, partition, -2, 0);
  }

  async #offset(name: string, partitionIndex: number, timestamp: number, isolationLevel: number) {
    const answer = await this.call(listOffsetsApi, 4, {
      replicaId: -1,
      isolationLevel,
      topics: [{ name, partitions: [{ partitionIndex, timestamp }] }],
    });
    const found = answer.topics[0]!.partitions[0]!;
    assert.equal(errorName(found.errorCode), "NONE");
    return found.offset!;
  }

  /** `offset:value` of all data records, from the log's start. */
  async contents({ topic = "t", partition = 0 } = {}): Promise<string[]> {
    const found: string[] = [];
    for (let at = await this.logStart({ topic, partition });;) {
      const answer = await drive(this.clock, this.q.fetch(topic, at, { partition }));
      assert.equal(answer.error, "NONE");
      const batches = batchesOf(answer.records);
      if (batches.length === 0) return found;
      for (const { baseOffset, lastOffsetDelta, attributes, records } of batches) {
        const isControl = (attributes & 0x20) !== 0;
        for (const { offset, value } of isControl ? [] : records) {
          if (offset >= at) found.push(`${offset}:${textOf(value)}`);
        }
        const next = baseOffset + lastOffsetDelta + 1;
        assert.ok(next > at, `a read from ${at} ends before ${next}`);
        at = next;
      }
    }
  }

  async committed({ topic = "t", partition = 0 } = {}): Promise<string[]> {
    const start = await this.logStart({ topic, partition });
    return await drive(this.clock, committedValues(this.q, topic, partition, start));
  }

  /** What readers of committed records are told to drop, for a fetch from an offset. */
  async aborted(fetchOffset: number, { topic = "t", partition = 0 } = {}) {
    const options = { partition, isolationLevel: 1 };
    const answer = await drive(this.clock, this.q.fetch(topic, fetchOffset, options));
    assert.equal(answer.error, "NONE");
    return answer.abortedTransactions ?? [];
  }

  /** `id e<epoch> s<last sequence>`, with `txn@<offset>` while a transaction is open; by id. */
  async producers({ topic = "t", partition = 0 } = {}): Promise<string[]> {
    const request = { topics: [{ name: topic, partitionIndexes: [partition] }] };
    const answer = await this.call(describeProducersApi, 0, request);
    const found = answer.topics[0]!.partitions[0]!;
    assert.equal(errorName(found.errorCode), "NONE");
    return found.activeProducers.toSorted((a, b) => a.producerId - b.producerId).map((one) => {
      const txn = one.currentTxnStartOffset === -1 ? "" : ` txn@${one.currentTxnStartOffset}`;
      return `${one.producerId} e${one.producerEpoch} s${one.lastSequence}${txn}`;
    });
  }

  async deleteRecords(offset: number, { topic = "t" } = {}): Promise<number> {
    const answer = await this.call(deleteRecordsApi, 2, {
      topics: [{ name: topic, partitions: [{ partitionIndex: 0, offset }] }],
      timeoutMs: 30_000,
    });
    const found = answer.topics[0]!.partitions[0]!;
    assert.equal(errorName(found.errorCode), "NONE");
    return found.lowWatermark;
  }

  /** A marker as a coordinator sends it; an abort of producer 7, epoch 3, by the old rules unless said. */
  async mark(over: {
    readonly producerId?: number;
    readonly epoch?: number;
    readonly coordinatorEpoch?: number;
    readonly commit?: boolean;
    readonly partition?: number;
    readonly version?: 1 | 2;
  } = {}): Promise<ErrorName> {
    const { producerId = 7, epoch = 3, coordinatorEpoch = 0, commit = false, version = 1 } = over;
    const answer = await this.call(writeTxnMarkersApi, version, {
      markers: [{
        producerId,
        producerEpoch: epoch,
        transactionResult: commit,
        coordinatorEpoch,
        topics: [{ name: "t", partitionIndexes: [over.partition ?? 0] }],
        ...(version === 2 ? { transactionVersion: 2 } : {}),
      }],
    });
    return errorName(answer.markers[0]!.topics[0]!.partitions[0]!.errorCode);
  }

  /** An idempotent producer's id, or the next of one that it had (KIP-360). */
  async initProducer(known = { producerId: -1, producerEpoch: -1 }) {
    const answer = await this.call(initProducerIdApi, 4, {
      transactionalId: null,
      transactionTimeoutMs: 60_000,
      ...known,
    });
    assert.equal(errorName(answer.errorCode), "NONE");
    return { producerId: answer.producerId, epoch: answer.producerEpoch };
  }

  setPlan(plan?: FaultPlan): void {
    this.life.store.setPlan(plan);
  }
}

/** A world on each kind of store, gone with the test; the directory is a new one. */
export async function inWorld(
  store: Store,
  kafka: Kafka,
  run: (world: RecoveryWorld) => Promise<void>,
): Promise<void> {
  const path = store === "directory" ? mkdtempSync(join(tmpdir(), "skerry-recovery-")) : null;
  try {
    const world = path === null
      ? RecoveryWorld.memory(kafka)
      : await RecoveryWorld.directory(path, kafka);
    await world.start();
    await run(world);
    await world.kill();
  } finally {
    if (path !== null) rmSync(path, { recursive: true, force: true });
  }
}
