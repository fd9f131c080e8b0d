/**
 * One story of a crash, told step by step: the production node over a sound store, one transactional and one plain
 * producer, and crashes at the moment at which a chosen record is in the store.
 */
import assert from "node:assert/strict";
import { errorName } from "../../src/protocol/error_code.ts";
import { buildBatch } from "../../src/protocol/record_batch.ts";
import { History } from "./checker/history.ts";
import { identityHeader } from "./checker/log_view.ts";
import { MetadataChecker } from "./checker/metadata.ts";
import { checkStreams } from "./checker/streams.ts";
import { type Kind, WalWatch } from "./checker/wal_watch.ts";
import { Cluster, CLUSTER_ID } from "./cluster.ts";
import { KafkaClient, NoAnswer } from "./kafka_client.ts";
import { codecs } from "./process.ts";
import { NO_STORE_FAULTS, SimStore } from "./sim_store.ts";
import type { Context } from "./workload/context.ts";
import { earliestOf } from "./workload/fetch.ts";
import { LogReader } from "./workload/log_reader.ts";
import { produce } from "./workload/produce.ts";
import { SEMANTICS_PROPERTIES, SemanticsPlay } from "./workload/semantics.ts";
import type { Place } from "./workload/semantics_context.ts";
import { TxnClient } from "./workload/txn_client.ts";
import { World } from "./world.ts";

const TOPIC = "txn";
const MINUTE_MS = 60_000;
const PLAN = {
  instances: [],
  keyedWriters: 0,
  readers: 0,
  pauseMs: 1,
  timeoutMs: MINUTE_MS,
  deletionMs: MINUTE_MS,
  partitions: [1, 0],
} as const;

export interface Sequence {
  readonly producerId: number;
  readonly producerEpoch: number;
  readonly baseSequence: number;
}

export class RecoveryWorld {
  readonly world: World;
  readonly cluster: Cluster;
  readonly client: TxnClient;

  readonly #context: Context;
  readonly #wal: WalWatch;
  readonly #metadata: MetadataChecker;
  readonly #play: SemanticsPlay;
  readonly #reader: LogReader;
  readonly #plain: KafkaClient;
  readonly #landed: { readonly kind: Kind; readonly payload: Uint8Array }[] = [];
  #trigger: { readonly is: (kind: Kind, value: Uint8Array) => boolean } | null = null;
  #sequence = 0;

  constructor(properties: Readonly<Record<string, string>> = {}) {
    const world = new World(1);
    const store = new SimStore(world, NO_STORE_FAULTS);
    // What a dying process has asked for is lost: the store has exactly what had landed.
    store.landsAfterDeath = 0;
    this.world = world;

    this.cluster = new Cluster({
      world,
      store,
      net: { reset: 0, split: 0, latencyMs: 1 },
      properties: {
        "offsets.topic.num.partitions": "2",
        ...SEMANTICS_PROPERTIES,
        ...properties,
      },
    });
    this.#context = {
      world,
      cluster: this.cluster,
      history: new History(world),
      topics: [],
      steady: { name: "", topicId: "", partitions: 0, mayTrim: false, doomed: false },
      codecs,
      draining: false,
      resting: false,
      over: false,
    };
    const metadata = new MetadataChecker(world, store, CLUSTER_ID);
    metadata.onRegistered = (process, at) => this.cluster.registered(process, at);
    this.#metadata = metadata;
    this.#wal = new WalWatch(store, CLUSTER_ID, metadata);
    this.#wal.onLanded = (kind, topic, value) => this.#onLanded(kind, topic, value);
    this.#play = new SemanticsPlay(this.#context, PLAN);
    this.#reader = new LogReader(this.#play, "reader");
    this.#plain = new KafkaClient(world, this.cluster, "plain");
    this.client = new TxnClient({
      context: this.#context,
      name: "t",
      transactionalId: "t",
      timeoutMs: 10 * MINUTE_MS,
      isV2: false,
    });
  }

  get #place(): Place {
    return this.#play.places[0]!;
  }

  #onLanded(kind: Kind, topic: string, payload: Uint8Array): void {
    if (topic !== TOPIC) return;
    this.#landed.push({ kind, payload });
    if (this.#trigger?.is(kind, payload) !== true) return;
    this.#trigger = null;
    for (const process of this.cluster.processes()) process.kill("crash of the story");
  }

  drive<T>(work: Promise<T>): Promise<T> {
    return this.world.drive(work, 10 * MINUTE_MS, "a step of the story");
  }

  async begin(configs: Readonly<Record<string, string>> = {}): Promise<void> {
    this.cluster.start();
    await this.drive(this.#play.createPlain(configs));
  }

  /** Every process is gone, and a new one serves. */
  async crash(nodeId = this.cluster.nodeId): Promise<void> {
    for (const process of this.cluster.processes()) process.kill("crash of the story");
    this.cluster.nodeId = nodeId;
    this.cluster.start();
    await this.world.runUntil(() => this.cluster.isSettled, MINUTE_MS);
  }

  /** Dies in the moment in which such a record is in the store: nothing that comes after it is. */
  dieWhen(kind: Kind, is: (value: Uint8Array) => boolean = () => true): Promise<void> {
    this.#trigger = { is: (found, value) => found === kind && is(value) };
    return this.world.runUntil(() => this.cluster.processes().length === 0, 10 * MINUTE_MS)
      .then((isDead) => assert.ok(isDead, `nothing of kind ${kind} lands`));
  }

  async untilLanded(kind: Kind): Promise<void> {
    const before = this.count(kind);
    assert.ok(
      await this.world.runUntil(() => this.count(kind) > before, 10 * MINUTE_MS),
      `nothing of kind ${kind} lands`,
    );
  }

  count(kind: Kind): number {
    return this.#landed.filter((one) => one.kind === kind).length;
  }

  batch(ids: readonly string[], sequence: Partial<Sequence>, transactional: boolean): Uint8Array {
    return buildBatch({
      records: ids.map((id) => ({
        key: new TextEncoder().encode("k"),
        value: new TextEncoder().encode("v"),
        headers: identityHeader(id),
        timestampMs: this.world.wallMs,
      })),
      codec: null,
      codecs,
      transactional,
      ...sequence,
    });
  }

  /** A plain batch, sent until it is answered: its error and offset. */
  async produce(ids: readonly string[], sequence: Partial<Sequence> = {}) {
    const { topic, partition } = this.#place;
    const batch = this.batch(ids, sequence, false);
    const attempt = async () => {
      for (;;) {
        try {
          const { error, baseOffset } = await produce(
            this.#plain,
            topic.topicId,
            partition,
            batch,
            8_000,
            ids.join(),
          );
          if (error !== errorName(6)) return { error, baseOffset };
        } catch (error) {
          if (!(error instanceof NoAnswer)) throw error;
        }
        await this.world.sleep(200);
      }
    };
    return await this.drive(attempt());
  }

  // --- the transactional producer ---------------------------------------------------------------

  async initialise(): Promise<void> {
    const told = await this.drive(this.client.init(false, () => () => {}));
    assert.equal(told?.error, "NONE");
    this.client.become(told!.value.producerId, told!.value.epoch);
    this.#sequence = 0;
  }

  async write(ids: readonly string[]): Promise<number> {
    assert.equal((await this.drive(this.client.add(this.#place)))?.error, "NONE");
    const told = await this.drive(this.#send(ids));
    assert.equal(told?.error, "NONE");
    this.#sequence += ids.length;
    return told!.value;
  }

  #send(ids: readonly string[], baseSequence = this.#sequence) {
    const { producerId, epoch: producerEpoch } = this.client;
    const sequence = { producerId, producerEpoch, baseSequence };
    return this.client.produce(this.#place, this.batch(ids, sequence, true), ids.join());
  }

  /** The last batch once more. */
  async repeat(ids: readonly string[]) {
    const told = await this.drive(this.#send(ids, this.#sequence - ids.length));
    return { error: told?.error, offset: told?.value };
  }

  async end(commit: boolean): Promise<void> {
    assert.equal((await this.drive(this.client.end(commit)))?.error, "NONE");
  }

  // --- what is there ----------------------------------------------------------------------------

  /** Ids that a reader of committed records gets; all of them for the other kind. */
  async read(isCommitted: boolean): Promise<readonly string[]> {
    const { topic, partition } = this.#place;
    let from: number | null = null;
    while (from === null) {
      from = await this.drive(earliestOf(this.#plain, topic.name, partition));
      if (from === null) await this.world.run(100);
    }
    const { records } = await this.drive(this.#reader.whole(this.#place, isCommitted, from));
    this.#check();
    return records.flatMap(({ id }) => id === null ? [] : [id]);
  }

  async marks(): Promise<{ readonly stable: number; readonly watermark: number }> {
    for (;;) {
      const found = await this.drive(this.#reader.marks(this.#place));
      if (found !== null) return { stable: found.stable, watermark: found.watermark };
      await this.world.run(100);
    }
  }

  /** Nothing is left of passes of topic compaction that did not come to their end. */
  checkStreams(): void {
    checkStreams(this.world, this.#metadata.state, this.#wal);
    this.#check();
  }

  #check(): void {
    if (this.world.violation !== null) throw this.world.violation;
  }

  over(): void {
    this.#context.over = true;
    for (const process of this.cluster.processes()) process.kill("the end");
    this.#check();
  }
}
