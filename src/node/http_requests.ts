/**
 * Requests with an Idempotency-Key. What every partition of the topic remembers of the key decides: nothing
 * means a new request; other records than before are refused; what is in already is answered from where it is,
 * and only the rest is appended. One request at a time per key, so that nothing is decided twice.
 */
import { isFault } from "../lib/errors.ts";
import { HTTP_PARTITIONS_OPENED_AT_ONCE, RECORD_OVERHEAD_BYTES_MAX } from "../lib/limits.ts";
import type { PartitionLog, RememberedRequest } from "../log/partition_log.ts";
import { REQUEST_SEQUENCE, type RequestPart, withPart } from "../log/request_part.ts";
import { buildBatch } from "../protocol/record_batch.ts";
import { partitionKey, type TopicRow } from "../controller/image.ts";
import type { BrokerServices } from "../broker/handler.ts";
import { type AppendOutcome, refusalOf } from "../broker/produce.ts";
import type { Failure, RecordInput, Written } from "../http/port.ts";
import { keyInFlight, keyReused, preconditionFailed } from "../http/produce/conflicts.ts";
import type { ProduceOptions } from "../http/write_port.ts";
import { cut, newRecord, place, type Placed } from "./http_place.ts";
import { fingerprintOf, requestId } from "./http_request_id.ts";
import { batchBytesMax, type HttpWriter, type Sent } from "./http_write.ts";

/** Until there are users. */
const PRINCIPAL = "User:ANONYMOUS";
/** What the header of the first record takes in a batch. */
const PART_BYTES_MAX = 4 * RECORD_OVERHEAD_BYTES_MAX;

interface Keyed {
  readonly topic: TopicRow;
  readonly records: readonly RecordInput[];
  readonly id: string;
  readonly fingerprint: string;
  readonly options: ProduceOptions;
}

/** Records of one partition: what is in already, and where the rest goes. */
interface Group {
  readonly partition: number;
  readonly placed: readonly Placed[];
  readonly known: RememberedRequest | null;
  readonly knownCount: number;
  readonly log: PartitionLog | Failure | null;
}

function countOf(known: RememberedRequest | undefined): number {
  return known === undefined ? 0 : known.runs.reduce((sum, { count }) => sum + count, 0);
}

/** One for each record that is in, in order. */
function* storedResults(
  { partition, placed, known }: Group,
): Generator<Written & { ok: true }, void> {
  let at = 0;
  for (const { baseOffset, count, timeMs, isAppendTime } of known?.runs ?? []) {
    for (let i = 0; i < count; i++, at++) {
      const own = placed[at]?.record.timestampMs ?? null;
      const timestampMs = isAppendTime || own === null ? timeMs : own;
      yield { ok: true, partition, offset: baseOffset + i, timestampMs, duplicate: true };
    }
  }
}

export class HttpRequests {
  readonly #services: BrokerServices;
  readonly #writer: HttpWriter;
  /** Fingerprints of the requests under way, by their ids. */
  readonly #inFlight = new Map<string, string>();

  constructor(services: BrokerServices, writer: HttpWriter) {
    this.#services = services;
    this.#writer = writer;
  }

  async produce(
    topic: TopicRow,
    records: readonly RecordInput[],
    key: string,
    options: ProduceOptions,
  ): Promise<readonly Written[]> {
    const id = requestId({ principal: PRINCIPAL, topicId: topic.topicId, key });
    const fingerprint = fingerprintOf(records);
    const other = this.#inFlight.get(id);
    if (other !== undefined) throw other === fingerprint ? keyInFlight() : keyReused();
    this.#inFlight.set(id, fingerprint);
    try {
      return await this.#decide({ topic, records, id, fingerprint, options });
    } finally {
      this.#inFlight.delete(id);
    }
  }

  async #decide(keyed: Keyed): Promise<readonly Written[]> {
    const { topic, records, id, options } = keyed;
    const logs = await this.#written(topic);
    if ("ok" in logs) return records.map(() => logs);
    const known = this.#remembered(keyed, logs);
    // As the first time: a retry must find its records also when the topic has grown meanwhile.
    const partitions = known.values().next().value?.partitions ?? topic.partitions;
    const any = Number.parseInt(id.slice(0, 8), 16) % partitions;
    const groups = await this.#openRest(topic, [...place(records, { partitions, any })], known);
    if (known.size === 0) checkEnds(groups, options);
    const sent = groups.flatMap((group) => this.#send(group, keyed, partitions));
    options.onAdmitted?.();
    return await this.#writer.gather(sent);
  }

  #remembered(
    { id, fingerprint }: Keyed,
    logs: ReadonlyMap<number, PartitionLog>,
  ): Map<number, RememberedRequest> {
    const known = new Map<number, RememberedRequest>();
    for (const [partition, log] of logs) {
      const found = log.rememberedRequest(id);
      if (found === null) continue;
      // Whoever does not wait must not leave the rejection unhandled.
      found.durable.catch(() => {});
      if (found.fingerprint !== fingerprint) throw keyReused();
      known.set(partition, found);
    }
    return known;
  }

  /**
   * All logs of the topic that may remember anything; without one of them nobody knows. What another node leads
   * is left out: its records cannot be written here, either.
   */
  async #written(topic: TopicRow): Promise<ReadonlyMap<number, PartitionLog> | Failure> {
    const { partitions, metadata } = this.#services;
    const found = new Map<number, PartitionLog>();
    const closed: number[] = [];
    for (let partition = 0; partition < topic.partitions; partition++) {
      const log = partitions.peek(topic.topicId, partition);
      if (log !== undefined) found.set(partition, log);
      else {
        const row = metadata.view().partitions.get(partitionKey(topic.topicId, partition));
        if (row?.metaStream != null) closed.push(partition);
      }
    }
    for (let at = 0; at < closed.length; at += HTTP_PARTITIONS_OPENED_AT_ONCE) {
      const some = closed.slice(at, at + HTTP_PARTITIONS_OPENED_AT_ONCE);
      const logs = await Promise.all(some.map((partition) => this.#writer.open(topic, partition)));
      for (const [i, log] of logs.entries()) {
        if (!("ok" in log)) found.set(some[i]!, log);
        else if (log.error !== "NOT_LEADER_OR_FOLLOWER") return log;
      }
    }
    return found;
  }

  async #openRest(
    topic: TopicRow,
    groups: readonly (readonly [number, Placed[]])[],
    known: ReadonlyMap<number, RememberedRequest>,
  ): Promise<readonly Group[]> {
    return await Promise.all(groups.map(async ([partition, placed]) => {
      const remembered = known.get(partition);
      const knownCount = countOf(remembered);
      const isWhole = knownCount >= placed.length;
      const log = isWhole ? null : await this.#writer.open(topic, partition);
      return { partition, placed, known: remembered ?? null, knownCount, log };
    }));
  }

  #send(group: Group, keyed: Keyed, partitions: number): Sent[] {
    const { placed, knownCount, log } = group;
    const rest = placed.slice(knownCount);
    const sent = group.known === null ? [] : [this.#recalled(group, group.known)];
    if (log === null) return sent;
    if ("ok" in log) return [...sent, { placed: rest, results: failed(rest, log) }];
    return [...sent, ...this.#append(group, log, keyed, partitions)];
  }

  #recalled(group: Group, { durable }: RememberedRequest): Sent {
    const placed = group.placed.slice(0, group.knownCount);
    const stored = [...storedResults(group)];
    return { placed, results: this.#whenDurable(durable, stored, placed) };
  }

  async #whenDurable(
    durable: Promise<void>,
    stored: readonly Written[],
    placed: readonly Placed[],
  ): Promise<readonly Written[]> {
    const waiting = { ok: true, baseOffset: 0, lastOffset: 0, durable } as const;
    const rest = { logAppendTimeMs: -1, logStartOffset: 0, duplicate: true } as const;
    const last = await this.#writer.durable({ ...waiting, ...rest });
    return last.ok ? stored : await failed(placed, last);
  }

  /** What follows a batch that is refused is refused too: the table knows a request only from its start. */
  #append(
    { partition, placed, knownCount }: Group,
    log: PartitionLog,
    { id, fingerprint }: Keyed,
    partitions: number,
  ): Sent[] {
    const { clock } = this.#services.env;
    const givenMs = clock.nowMs();
    const part: RequestPart = { id, fingerprint, partitions, first: knownCount, givenMs };
    const bytesMax = Math.max(1, batchBytesMax(log) - PART_BYTES_MAX);
    const sent: Sent[] = [];
    let first = knownCount;
    let refused: AppendOutcome & { ok: false } | null = null;
    for (const batch of cut(placed.slice(knownCount), bytesMax)) {
      const outcome: AppendOutcome = refused ?? this.#appendPart(log, batch, { ...part, first });
      if (!outcome.ok) refused = outcome;
      const results = this.#writer.settled(partition, batch, outcome, givenMs);
      sent.push({ placed: batch, results });
      first += batch.length;
    }
    return sent;
  }

  #appendPart(log: PartitionLog, batch: readonly Placed[], part: RequestPart): AppendOutcome {
    const { codecs } = this.#services.env;
    const [first, ...others] = batch.map(({ record }) => newRecord(record, part.givenMs));
    const records = [withPart(first!, part), ...others];
    const built = buildBatch({ records, codec: null, codecs, baseSequence: REQUEST_SEQUENCE });
    try {
      const appended = log.appendRequest(built);
      if (appended.ok) appended.durable.catch(() => {});
      return appended;
    } catch (error) {
      if (!isFault(error)) throw error;
      return refusalOf(error);
    }
  }
}

function failed(placed: readonly Placed[], failure: Failure): Promise<readonly Written[]> {
  return Promise.resolve(placed.map(() => failure));
}

/** In the same stretch as the appends that follow. */
function checkEnds(groups: readonly Group[], { nextOffset }: ProduceOptions): void {
  if (nextOffset === undefined) return;
  for (const { log } of groups) {
    if (log === null || "ok" in log || log.logEndOffset === nextOffset) continue;
    throw preconditionFailed(nextOffset, log.logEndOffset);
  }
}
