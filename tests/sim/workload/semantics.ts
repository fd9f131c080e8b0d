/**
 * Transactions and compacted topics: their topics, who writes and reads them, and what is asked once nothing is
 * under way any more. Apart from the other clients, whose topics have no markers and no holes.
 */
import { type Random, randomInt } from "../../../src/env/random.ts";
import { errorName } from "../../../src/protocol/error_code.ts";
import { metadataApi } from "../../../src/protocol/message/03_metadata.ts";
import { offsetFetchApi } from "../../../src/protocol/message/09_offset_fetch.ts";
import { createTopicsApi } from "../../../src/protocol/message/19_create_topics.ts";
import { buildBatch } from "../../../src/protocol/record_batch.ts";
import { ZERO_UUID } from "../../../src/lib/uuid.ts";
import { CompactedLedger } from "../checker/compacted.ts";
import { identityHeader } from "../checker/log_view.ts";
import { TransactionLedger } from "../checker/transactions.ts";
import { KafkaClient, NoAnswer } from "../kafka_client.ts";
import { between, chance } from "../world.ts";
import { type Context, isTransient, unexpected } from "./context.ts";
import { KeyedWriter } from "./keyed_writer.ts";
import { disagreement, LogReader } from "./log_reader.ts";
import { historyOf, type Place, type Semantics, type SemanticTopic } from "./semantics_context.ts";
import { produce } from "./produce.ts";
import { groupOf, TxnProducer } from "./txn_producer.ts";

const TIMEOUT_MS = 40_000;
const MARK_MS = 1_000;
/** More than `segment.ms`: the next record begins a segment. */
const ROLL_MS = 2_000;
/** Of the record behind all others: only what lies below the newest segment is compacted. */
const LAST_KEY = "last";

export interface SemanticsPlan {
  /** Producers by transactional id: more than one fence each other. */
  readonly instances: readonly number[];
  readonly keyedWriters: number;
  readonly readers: number;
  readonly pauseMs: number;
  readonly timeoutMs: number;
  readonly deletionMs: number;
  /** Partitions without and with compaction. */
  readonly partitions: readonly [number, number];
}

export function planSemantics(random: Random): SemanticsPlan {
  const compacted = chance(random, 0.6) ? 1 + randomInt(random, 2) : 0;
  return {
    instances: Array.from(
      { length: 2 + randomInt(random, 2) },
      () => chance(random, 0.4) ? 2 : 1,
    ),
    keyedWriters: compacted === 0 ? 0 : randomInt(random, 2),
    readers: 1 + randomInt(random, 2),
    pauseMs: between(random, 10, 200),
    timeoutMs: Math.round(between(random, 2_000, 12_000)),
    deletionMs: Math.round(between(random, 5_000, 120_000)),
    partitions: [1 + randomInt(random, 3), compacted],
  };
}

/** Looked at often enough for a run: passes of the cleaner, transactions that are too old. */
export const SEMANTICS_PROPERTIES = {
  "transaction.state.log.num.partitions": "2",
  "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
  "log.retention.check.interval.ms": "2000",
};

export class SemanticsPlay implements Semantics {
  readonly context: Context;
  readonly transactions: TransactionLedger;
  readonly compacted: CompactedLedger;
  readonly places: Place[] = [];
  onEnding: () => void = () => {};
  readonly #plan: SemanticsPlan;
  readonly #client: KafkaClient;
  readonly #producers: TxnProducer[] = [];
  readonly #writers: KeyedWriter[] = [];
  readonly #auditor: LogReader;

  constructor(context: Context, plan: SemanticsPlan) {
    const { world, cluster } = context;
    const isTimeTrue = () => !cluster.hasWrongClocks;
    this.context = context;
    this.#plan = plan;
    this.transactions = new TransactionLedger(world, cluster);
    const { deletionMs } = plan;
    this.compacted = new CompactedLedger(world, this.transactions, { deletionMs, isTimeTrue });
    this.#client = new KafkaClient(world, cluster, "semantics");
    this.#auditor = new LogReader(this, "log auditor");
    world.note(`semantics ${JSON.stringify(plan)}`);
  }

  get isIdle(): boolean {
    return [...this.#producers, ...this.#writers].every(({ isIdle }) => isIdle);
  }

  async begin(): Promise<void> {
    const [plain, compacted] = this.#plan.partitions;
    await this.createPlain({ "segment.ms": "2000" }, plain);
    if (compacted === 0) return;
    await this.#create("keys", compacted, {
      "cleanup.policy": "compact",
      "segment.ms": "1000",
      "min.cleanable.dirty.ratio": "0.05",
      "max.compaction.lag.ms": "60000",
      "delete.retention.ms": String(this.#plan.deletionMs),
    });
  }

  async createPlain(configs: Readonly<Record<string, string>>, partitions = 1): Promise<void> {
    await this.#create("txn", partitions, configs);
  }

  load(): void {
    const { instances, keyedWriters, readers, pauseMs, timeoutMs } = this.#plan;
    const random = this.context.world.random("semantics");
    for (const [id, count] of instances.entries()) {
      for (let i = 0; i < count; i++) {
        const isV2 = chance(random, 0.5);
        this.#producers.push(
          new TxnProducer(this, {
            name: `t${id}-${i}`,
            transactionalId: `t${id}`,
            timeoutMs,
            isV2,
          }),
        );
      }
    }
    for (let i = 0; i < keyedWriters; i++) this.#writers.push(new KeyedWriter(this, `k${i}`));
    for (const one of this.#producers) void one.run(pauseMs * 2);
    for (const one of this.#writers) void one.run(pauseMs);
    for (let i = 0; i < readers; i++) void new LogReader(this, `lr${i}`).run(pauseMs * 4);
  }

  /**
   * Every transaction ends, by its time-out where nobody else ends it, and the last stable offset gets to the end of
   * each log; every id commits once more.
   */
  async settle(): Promise<void> {
    const { world, cluster } = this.context;
    if (cluster.hasWrongClocks) {
      for (const producer of this.#producers) {
        await producer.takeOver();
      }
    }
    await this.#becomeStable();
    for (const producer of this.#producers) await producer.commitOnce();
    await this.#becomeStable();
    await world.sleep(ROLL_MS);
    for (const place of this.places) if (place.topic.isCompacted) await this.#roll(place);
  }

  async #becomeStable(): Promise<void> {
    for (const place of this.places) {
      for (;;) {
        const marks = await this.#auditor.marks(place);
        if (marks !== null && marks.stable === marks.watermark) break;
        await this.context.world.sleep(MARK_MS);
      }
    }
  }

  async #roll({ topic: { topicId }, partition }: Place): Promise<void> {
    const { world, codecs } = this.context;
    for (let attempt = 0;; attempt++) {
      const records = [{
        key: new TextEncoder().encode(LAST_KEY),
        value: new TextEncoder().encode("v"),
        headers: identityHeader(`last.${partition}.${attempt}`),
        timestampMs: world.wallMs,
      }];
      const batch = buildBatch({ records, codec: null, codecs });
      try {
        const answer = await produce(this.#client, topicId, partition, batch, TIMEOUT_MS, "last");
        if (answer.code === 0) return;
        if (!isTransient(answer.error)) unexpected(this.context, "the last record", answer.code);
      } catch (error) {
        if (!(error instanceof NoAnswer)) throw error;
      }
      await world.sleep(100);
    }
  }

  async questions(when: string): Promise<void> {
    const { world } = this.context;
    const committed = new Set<string>();
    for (const place of this.places) {
      const { topic: { name }, partition } = place;
      const shown = await this.#auditor.whole(place, true);
      const all = await this.#auditor.whole(place, false);
      const difference = disagreement(shown, all);
      if (difference !== null) world.violated(`${name}-${partition} ${when}: ${difference}`);
      for (const { id } of shown.records) if (id !== null) committed.add(id);
    }
    this.transactions.checkAtRest(committed);
    for (const id of this.transactions.ids()) await this.#checkOffset(id);
  }

  /** Long after the last write, and after the cleaner has been round. */
  async checkCompacted(): Promise<void> {
    if (this.context.cluster.hasWrongClocks) return;
    for (const place of this.places) {
      if (!place.topic.isCompacted) continue;
      const { records } = await this.#auditor.whole(place, false);
      const old = records.filter(({ key }) => key !== LAST_KEY);
      this.compacted.checkOnce(historyOf(this.context, place), old);
    }
  }

  async #checkOffset(transactionalId: string): Promise<void> {
    for (;;) {
      const found = await this.#offsetOf(transactionalId);
      if (found === null) {
        await this.context.world.sleep(100);
        continue;
      }
      this.transactions.offsetShown(transactionalId, found.offset, found.by);
      const wanted = this.transactions.offsetAtRest(transactionalId);
      if (wanted === null || wanted === found.offset) return;
      return this.context.world.violated(
        `the group of ${transactionalId} has offset ${found.offset}, ${wanted} was committed`,
      );
    }
  }

  /** Null without an answer. */
  async #offsetOf(transactionalId: string): Promise<{ offset: number; by: number } | null> {
    const { topic: { name }, partition } = this.places[0]!;
    try {
      const { response, by } = await this.#client.call(offsetFetchApi, 9, {
        groups: [{
          groupId: groupOf(transactionalId),
          topics: [{ name, partitionIndexes: [partition] }],
        }],
        requireStable: true,
      }, TIMEOUT_MS);
      const group = response.groups?.[0];
      const found = group?.topics[0]?.partitions[0];
      const code = group?.errorCode !== 0 ? group?.errorCode ?? -1 : found?.errorCode ?? 0;
      if (code === 0) return { offset: found?.committedOffset ?? -1, by };
      const error = errorName(code);
      if (!isTransient(error) && error !== "UNSTABLE_OFFSET_COMMIT") {
        unexpected(this.context, `the offset of ${transactionalId}`, code);
      }
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error;
    }
    return null;
  }

  // --- topics -----------------------------------------------------------------------------------

  async #create(
    name: string,
    partitions: number,
    configs: Readonly<Record<string, string>>,
  ): Promise<void> {
    for (;;) {
      const topicId = await this.#attempt(name, partitions, configs);
      if (topicId === null) {
        await this.context.world.sleep(50);
        continue;
      }
      const isCompacted = configs["cleanup.policy"] === "compact";
      const topic: SemanticTopic = { name, topicId, partitions, isCompacted };
      for (let partition = 0; partition < partitions; partition++) {
        this.places.push({ topic, partition });
      }
      return;
    }
  }

  async #attempt(
    name: string,
    partitions: number,
    configs: Readonly<Record<string, string>>,
  ): Promise<string | null> {
    try {
      const { response } = await this.#client.call(createTopicsApi, 7, {
        topics: [{
          name,
          numPartitions: partitions,
          replicationFactor: 1,
          assignments: [],
          configs: Object.entries(configs).map(([key, value]) => ({ name: key, value })),
        }],
        timeoutMs: 30_000,
      }, TIMEOUT_MS);
      const { errorCode, topicId } = response.topics[0]!;
      if (errorCode === 0) return topicId!;
      if (errorName(errorCode) === "TOPIC_ALREADY_EXISTS") return await this.#find(name);
      if (!isTransient(errorName(errorCode))) {
        unexpected(this.context, `creation of ${name}`, errorCode);
      }
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error;
    }
    return null;
  }

  async #find(name: string): Promise<string | null> {
    const { response } = await this.#client.call(metadataApi, 12, {
      topics: [{ topicId: ZERO_UUID, name }],
      allowAutoTopicCreation: false,
      includeTopicAuthorizedOperations: false,
    }, TIMEOUT_MS);
    const [topic] = response.topics;
    return topic?.errorCode === 0 ? topic.topicId! : null;
  }
}
