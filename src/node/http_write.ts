/**
 * Writes of the HTTP gateway. First all logs are opened; then, in one stretch without waiting, conditions are
 * looked at and everything is appended; then it waits until that is durable.
 */
import { assert } from "../lib/assert.ts";
import { randomInt } from "../env/random.ts";
import { isFault } from "../lib/errors.ts";
import { HTTP_BATCH_BYTES, HTTP_PRODUCE_TIMEOUT_MS } from "../lib/limits.ts";
import type {
  ActiveProducer,
  Appended,
  AppendRefused,
  PartitionLog,
} from "../log/partition_log.ts";
import { SEQUENCE_MAX } from "../log/sequence.ts";
import { buildBatch, readBatchHeader } from "../protocol/record_batch.ts";
import type { TopicRow } from "../controller/image.ts";
import { faultToCode } from "../broker/fault_to_code.ts";
import type { BrokerServices } from "../broker/handler.ts";
import { ProducerIds } from "../broker/producer_ids.ts";
import { type AppendOutcome, appendTo, produceDeadline, settle } from "../broker/produce.ts";
import { RefusedSequences } from "../broker/refused_sequences.ts";
import type { Failure, RecordInput, Written } from "../http/port.ts";
import { preconditionFailed, producerRefused } from "../http/produce/conflicts.ts";
import type {
  BatchWritten,
  NewProducer,
  ProduceOptions,
  ProducerStamp,
} from "../http/write_port.ts";
import { cut, newRecord, place, type Placed } from "./http_place.ts";

/** A batch on its way: what became of each of its records. */
export interface Sent {
  readonly placed: readonly Placed[];
  readonly results: Promise<readonly Written[]>;
}

export function failureOf(error: unknown): Failure {
  if (!isFault(error)) throw error;
  return { ok: false, error: faultToCode(error, "produce"), message: error.message };
}

/** What timed out may still be stored. */
function late(outcome: AppendRefused): AppendRefused {
  if (outcome.error !== "REQUEST_TIMED_OUT") return outcome;
  return { ...outcome, message: "Cannot tell yet whether it is stored: the store does not answer" };
}

function unknownPartition({ name, partitions }: TopicRow, partition: number): Failure {
  const message = `Cannot find partition ${partition} of ${name}: it has ${partitions}`;
  return { ok: false, error: "UNKNOWN_TOPIC_OR_PARTITION", message };
}

export function batchBytesMax({ config }: PartitionLog): number {
  return Math.min(HTTP_BATCH_BYTES, config.messageBytesMax);
}

function checkEnd(log: PartitionLog, { nextOffset }: ProduceOptions): void {
  if (nextOffset === undefined || nextOffset === log.logEndOffset) return;
  throw preconditionFailed(nextOffset, log.logEndOffset);
}

/** The sequence after the last one, by the rule of the log; null where it has none to compare with. */
function expectedSequence(known: ActiveProducer, { producerEpoch }: ProducerStamp): number {
  const isNewer = producerEpoch > known.producerEpoch || known.lastSequence < 0;
  return isNewer || known.lastSequence === SEQUENCE_MAX ? 0 : known.lastSequence + 1;
}

export class HttpWriter {
  readonly #services: BrokerServices;
  readonly #ids: ProducerIds;
  readonly #refused: RefusedSequences;

  constructor(services: BrokerServices) {
    this.#services = services;
    this.#ids = new ProducerIds(services);
    this.#refused = new RefusedSequences(services.env.clock);
  }

  /** The log, or why there is none. */
  async open(topic: TopicRow, partition: number): Promise<PartitionLog | Failure> {
    if (partition >= topic.partitions) return unknownPartition(topic, partition);
    try {
      const located = await this.#services.partitions.open(topic.topicId, partition);
      return located.ok ? located.log : located;
    } catch (error) {
      return failureOf(error);
    }
  }

  async produce(
    topic: TopicRow,
    records: readonly RecordInput[],
    options: ProduceOptions,
  ): Promise<readonly Written[]> {
    // Records without key and partition of one request stay together: one batch instead of many.
    const any = randomInt(this.#services.env.random, topic.partitions);
    const groups = [...place(records, { partitions: topic.partitions, any })];
    const { producer } = options;
    if (producer !== undefined) return await this.#sequenced(topic, groups, producer);
    const logs = await Promise.all(groups.map(([partition]) => this.open(topic, partition)));
    const sent = groups.flatMap(([partition, placed], i) => {
      const log = logs[i]!;
      if ("ok" in log) return [{ placed, results: Promise.resolve(placed.map(() => log)) }];
      checkEnd(log, options);
      return this.#appendAll(log, partition, placed);
    });
    options.onAdmitted?.();
    return await this.gather(sent);
  }

  /** In the order of the request. */
  async gather(sent: readonly Sent[]): Promise<readonly Written[]> {
    const results: Written[] = [];
    await Promise.all(sent.map(async ({ placed, results: pending }) => {
      const written = await pending;
      for (const [i, { index }] of placed.entries()) results[index] = written[i]!;
    }));
    return results;
  }

  #appendAll(log: PartitionLog, partition: number, records: readonly Placed[]): Sent[] {
    const { clock, codecs } = this.#services.env;
    return cut(records, batchBytesMax(log)).map((placed) => {
      const nowMs = clock.nowMs();
      const built = placed.map(({ record }) => newRecord(record, nowMs));
      const outcome = appendTo(log, buildBatch({ records: built, codec: null, codecs }));
      return { placed, results: this.settled(partition, placed, outcome, nowMs) };
    });
  }

  /** Waits for durability, as long as clients do. */
  async settled(
    partition: number,
    placed: readonly Placed[],
    outcome: AppendOutcome,
    nowMs: number,
  ): Promise<readonly Written[]> {
    const last = await this.durable(outcome);
    if (!last.ok) return placed.map(() => last);
    const { baseOffset, logAppendTimeMs, duplicate } = last;
    return placed.map(({ record }, i) => ({
      ok: true,
      partition,
      offset: baseOffset + i,
      timestampMs: logAppendTimeMs >= 0 && (!duplicate || record.timestampMs === null)
        ? logAppendTimeMs
        : record.timestampMs ?? nowMs,
      ...(duplicate ? { duplicate } : {}),
    }));
  }

  async durable(outcome: AppendOutcome): Promise<AppendOutcome> {
    if (!outcome.ok) return outcome;
    const deadline = produceDeadline(this.#services.env.clock, HTTP_PRODUCE_TIMEOUT_MS);
    const last = await settle(outcome, deadline.expired).finally(() => deadline.stop());
    return last.ok ? last : late(last);
  }

  /** All records are one batch, as the producer's numbers are: a repeat of it is then found whole. */
  async #sequenced(
    topic: TopicRow,
    groups: readonly (readonly [number, Placed[]])[],
    stamp: ProducerStamp,
  ): Promise<readonly Written[]> {
    const [group] = groups;
    assert(group !== undefined && groups.length === 1, "numbered records are for one partition");
    const [partition, placed] = group;
    const { clock, codecs } = this.#services.env;
    const nowMs = clock.nowMs();
    const records = placed.map(({ record }) => newRecord(record, nowMs));
    const { producerId, producerEpoch, sequence: baseSequence } = stamp;
    const producer = { producerId, producerEpoch, baseSequence };
    const batch = buildBatch({ records, codec: null, codecs, ...producer });
    const outcome = await this.#appendBatch(topic, partition, batch, {});
    if (!outcome.ok) throw producerRefused(outcome, stamp.sequence, outcome.place(stamp));
    return await this.settled(partition, placed, outcome, nowMs);
  }

  async produceBatch(
    topic: TopicRow,
    partition: number,
    batch: Uint8Array,
    options: ProduceOptions,
  ): Promise<BatchWritten | Failure> {
    const outcome = await this.#appendBatch(topic, partition, batch, options);
    options.onAdmitted?.();
    const last = outcome.ok ? await this.durable(outcome) : outcome;
    if (!last.ok) return { ok: false, error: last.error, ...messageIn(last) };
    const { baseOffset, lastOffset, logAppendTimeMs, duplicate } = last;
    const timestampMs = logAppendTimeMs >= 0
      ? logAppendTimeMs
      : readBatchHeader(batch).maxTimestamp;
    return { ok: true, partition, baseOffset, lastOffset, timestampMs, duplicate };
  }

  /** A sequence that is refused because there is no log keeps later ones out, as over TCP. */
  async #appendBatch(
    topic: TopicRow,
    partition: number,
    batch: Uint8Array,
    options: ProduceOptions,
  ): Promise<Appended | (AppendRefused & Placeable)> {
    const nowhere = { place: () => null };
    const log = await this.open(topic, partition);
    if ("ok" in log) {
      if (partition < topic.partitions) this.#refused.note(topic.topicId, partition, batch);
      return { ...log, ...nowhere };
    }
    const missing = this.#refused.missingBefore(topic.topicId, partition, batch);
    if (missing !== null) {
      const message = `sequence ${missing} was refused before and is still missing`;
      return { ok: false, error: "OUT_OF_ORDER_SEQUENCE_NUMBER", message, ...nowhere };
    }
    checkEnd(log, options);
    const outcome = appendTo(log, batch);
    return outcome.ok ? outcome : { ...outcome, place: (stamp) => placeOf(log, stamp) };
  }

  async createProducer(): Promise<NewProducer | Failure> {
    try {
      const id = await this.#ids.take();
      return typeof id === "string"
        ? { ok: false, error: id }
        : { ok: true, producerId: id, producerEpoch: 0 };
    } catch (error) {
      if (!isFault(error)) throw error;
      return { ok: false, error: faultToCode(error, "coordinator"), message: error.message };
    }
  }
}

interface Placeable {
  /** Where the producer stands there. */
  readonly place: (stamp: ProducerStamp) => ReturnType<typeof placeOf>;
}

function placeOf(log: PartitionLog, stamp: ProducerStamp) {
  const [known] = log.activeProducers(stamp.producerId);
  if (known === undefined) return null;
  const { producerEpoch } = known;
  return { producerEpoch, expected: expectedSequence(known, stamp) };
}

function messageIn({ message }: AppendRefused): Pick<Failure, "message"> {
  return message === undefined ? {} : { message };
}
