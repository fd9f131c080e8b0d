/**
 * Durable streams on partition logs: a step is judged and appended in one stretch, and answered once that is
 * durable. What it is judged by is what the log itself remembers, so that it holds after any crash.
 */
import { assert } from "../lib/assert.ts";
import { isFault } from "../lib/errors.ts";
import type { TopicRow } from "../controller/image.ts";
import { faultToCode } from "../broker/fault_to_code.ts";
import type { BrokerServices } from "../broker/handler.ts";
import { type AppendOutcome, refusalOf } from "../broker/produce.ts";
import { decideStep, type Decision } from "../http/mounts/durable_streams/decide.ts";
import type {
  Fork,
  StepAsk,
  Stepped,
  StreamPlace,
  StreamTail,
  StreamTopic,
} from "../http/mounts/durable_streams/port.ts";
import type { Failure, Gateway, ReadAnswer, ReadQuery } from "../http/port.ts";
import { ProblemError } from "../http/problem.ts";
import type { Appended, PartitionLog } from "../log/partition_log.ts";
import { STEP_SEQUENCE, withStep } from "../log/writer_step.ts";
import { buildBatch } from "../protocol/record_batch.ts";
import type { HttpWriter } from "./http_write.ts";
import { StreamExpiry } from "./stream_expiry.ts";
import {
  DELETED,
  type Holder,
  holderOf,
  isDeleted,
  joined,
  type Page,
  roomIn,
  shifted,
  sourceOf,
  startOf,
  StreamLineage,
} from "./stream_lineage.ts";

const CONTENT_TYPE = "application/octet-stream";

/** Only durable ends: what is told to clients must not be taken back. */
function tailOf({ logStartOffset, lastStableOffset, highWatermark, writers }: PartitionLog) {
  const { closing } = writers;
  const closedAt = closing !== null && closing.end <= highWatermark ? closing.end : null;
  return { ok: true, earliest: logStartOffset, next: lastStableOffset, closedAt } as const;
}

function unknown({ topicId }: StreamPlace): Failure {
  const message = `Cannot find topic id ${topicId}: it was deleted`;
  return { ok: false, error: "UNKNOWN_TOPIC_OR_PARTITION", message };
}

function failureOf({ error, message }: AppendOutcome & { ok: false }): Failure {
  return { ok: false, error, ...(message === undefined ? {} : { message }) };
}

export class HttpStreams {
  readonly #services: BrokerServices;
  readonly #writer: HttpWriter;
  readonly #lineage: StreamLineage;
  readonly #expiry: StreamExpiry;
  readonly #read: Gateway["read"];

  constructor(services: BrokerServices, writer: HttpWriter, read: Gateway["read"]) {
    this.#services = services;
    this.#writer = writer;
    this.#read = read;
    this.#lineage = new StreamLineage(services.metadata);
    this.#expiry = new StreamExpiry(services, this.#lineage, (row) => this.#remove(row));
  }

  close(): void {
    this.#expiry.close();
  }

  find(name: string): StreamTopic | null {
    const row = this.#services.topics.find(name);
    return row === undefined ? null : this.#streamOf(row);
  }

  byId(topicId: string): StreamTopic | null {
    const row = this.#row(topicId);
    return row === undefined ? null : this.#streamOf(row);
  }

  #streamOf(row: TopicRow): StreamTopic | null {
    if (row.internal || (!isDeleted(row) && this.#expiry.isOver(row))) return null;
    const { name, topicId, partitions, configs } = row;
    return {
      name,
      topicId,
      partitions,
      contentType: configs["skerry.stream.content.type"] ?? CONTENT_TYPE,
      ...this.#expiry.termsOf(row),
      isDeleted: isDeleted(row),
      fork: this.#forkOf(row),
    };
  }

  #forkOf(row: TopicRow): Fork | null {
    const source = sourceOf(row);
    if (source === null) return null;
    const kin = this.#lineage.of(row, 0);
    let to = Infinity;
    const inherited = kin.slice(1).map(({ row: { topicId } }, i) => {
      to = Math.min(to, kin[i]!.start);
      return { topicId, to };
    });
    const part = Number(row.configs["skerry.stream.fork.part"] ?? 0);
    return { source, start: kin[0]!.start, part, inherited };
  }

  /** What could not be deleted is over all the same, and the next sweep tries again. */
  async makeRoom(name: string): Promise<Failure | null> {
    const row = this.#services.topics.find(name);
    if (row === undefined || isDeleted(row) || !this.#expiry.isOver(row)) return null;
    const removed = await this.remove(row.topicId);
    return removed.ok ? null : removed;
  }

  async remove(topicId: string): Promise<{ readonly ok: true } | Failure> {
    const row = this.#row(topicId);
    if (row === undefined) return unknown({ topicId, partition: 0 });
    try {
      return await this.#remove(row);
    } catch (error) {
      if (!isFault(error)) throw error;
      return { ok: false, error: faultToCode(error, "admin"), message: error.message };
    }
  }

  /** With what was there for it alone. */
  async #remove(row: TopicRow): Promise<{ readonly ok: true } | Failure> {
    const { topics } = this.#services;
    if (this.#lineage.hasForks(row.topicId)) {
      if (isDeleted(row)) return { ok: true };
      const hidden = await topics.alterConfigs(row, { [DELETED]: "true" }, { byBroker: true });
      assert(hidden !== "stale", "nothing was compared");
      return hidden;
    }
    const removed = await topics.delete(row.topicId);
    const source = sourceOf(row);
    const older = source === null ? undefined : this.#row(source.topicId);
    if (removed.ok && older !== undefined && isDeleted(older)) await this.#remove(older);
    return removed;
  }

  /** Over as many of its kin as a page has room for. */
  async read(place: StreamPlace, query: ReadQuery): Promise<ReadAnswer> {
    const row = this.#row(place.topicId);
    if (row === undefined) return unknown(place);
    const { topicId, name } = row;
    if (sourceOf(row) === null) {
      return await this.#read(name, place.partition, { ...query, topicId });
    }
    const kin = this.#lineage.of(row, place.partition);
    const first = holderOf(kin, typeof query.offset === "number" ? query.offset : 0);
    if (first === null) return forebearGone(row);
    let page = await this.#readKin(topicId, first, query);
    for (let holder = first; page.ok && page.next === holder.end;) {
      const room = roomIn(page.records, query);
      const next = holderOf(kin, page.next);
      if (room === null || next === null) break;
      const more = await this.#readOn(topicId, next, { ...query, ...room, offset: page.next });
      if (more === null) break;
      page = joined(page, more);
      holder = next;
    }
    return page;
  }

  /** Whatever is inherited is there, so nobody waits for it. */
  async #readKin(topicId: string, holder: Holder, query: ReadQuery): Promise<ReadAnswer> {
    const { row, partition, start, end } = holder;
    const { offset, waitMs } = query;
    const answer = await this.#read(row.name, partition, {
      ...query,
      offset: typeof offset === "number" ? offset - start : offset,
      topicId: row.topicId,
      waitMs: end === Infinity ? waitMs : 0,
    });
    return shifted(answer, holder, topicId);
  }

  /** Null where there is nothing, or no memory: whoever holds some waits for none. */
  async #readOn(topicId: string, holder: Holder, query: ReadQuery): Promise<Page | null> {
    try {
      const answer = await this.#readKin(topicId, holder, { ...query, waitMs: 0, mayWait: false });
      return answer.ok ? answer : null;
    } catch (error) {
      if (error instanceof ProblemError) return null;
      throw error;
    }
  }

  #tailOf(row: TopicRow, log: PartitionLog): StreamTail {
    const tail = tailOf(log);
    if (sourceOf(row) === null) return tail;
    const start = startOf(row);
    const closedAt = tail.closedAt === null ? null : tail.closedAt + start;
    return { ok: true, earliest: 0, next: tail.next + start, closedAt };
  }

  touch(topicId: string): void {
    const row = this.#row(topicId);
    if (row !== undefined) this.#expiry.touch(row);
  }

  async tail(place: StreamPlace): Promise<StreamTail | Failure> {
    const log = await this.#open(place);
    const row = this.#row(place.topicId);
    if ("ok" in log) return log;
    return row === undefined ? unknown(place) : this.#tailOf(row, log);
  }

  peekTail({ topicId, partition }: StreamPlace): StreamTail | null {
    const log = this.#services.partitions.peek(topicId, partition);
    const row = this.#row(topicId);
    return log === undefined || row === undefined ? null : this.#tailOf(row, log);
  }

  async step(place: StreamPlace, ask: StepAsk): Promise<Stepped | Failure> {
    const log = await this.#open(place);
    if ("ok" in log) return log;
    // From here to the append nothing comes in between: what is over or deleted by now takes no more.
    const row = this.#row(place.topicId);
    if (row === undefined || isDeleted(row) || this.#expiry.isOver(row)) return unknown(place);
    this.#expiry.touch(row);
    const decision = decideStep(log.writers, log.logEndOffset, ask);
    const stepped = decision.kind === "refuse"
      ? await this.#refused(log, decision)
      : decision.kind === "known"
      ? await this.#known(log, decision)
      : await this.#append(log, ask);
    return shiftedStep(stepped, startOf(row));
  }

  #row(topicId: string): TopicRow | undefined {
    return this.#services.metadata.view().topics.get(topicId);
  }

  async #open(place: StreamPlace): Promise<PartitionLog | Failure> {
    const row = this.#row(place.topicId);
    if (row === undefined || this.#expiry.isOver(row)) return unknown(place);
    return await this.#writer.open(row, place.partition);
  }

  async #append(log: PartitionLog, { values, closes, order, writer }: StepAsk): Promise<
    Stepped | Failure
  > {
    assert(closes || values.length > 0, "a step appends or closes");
    const { codecs, clock } = this.#services.env;
    const timestampMs = clock.nowMs();
    const [first, ...others] = (values.length === 0 ? [null] : values)
      .map((value) => ({ key: null, value, headers: [], timestampMs }));
    const isPlain = !closes && order === null && writer === null;
    const records = [isPlain ? first! : withStep(first!, { closes, order, writer }), ...others];
    const sequence = isPlain ? {} : { baseSequence: STEP_SEQUENCE };
    const batch = buildBatch({ records, codec: null, codecs, ...sequence });
    const last = await this.#writer.durable(appended(log, batch, isPlain));
    if (!last.ok) return failureOf(last);
    return { ok: true, isNew: true, next: last.lastOffset + 1, isClosed: closes, writer };
  }

  async #known(
    log: PartitionLog,
    { end, writer }: Decision & { kind: "known" },
  ): Promise<Stepped | Failure> {
    const failed = await this.#whenDurable(log, end);
    const { next, closedAt } = tailOf(log);
    return failed ?? { ok: true, isNew: false, next, isClosed: closedAt !== null, writer };
  }

  /** That a stream is closed is not said before it is so for good. */
  async #refused(
    log: PartitionLog,
    { refusal }: Decision & { kind: "refuse" },
  ): Promise<Stepped | Failure> {
    const failed = refusal.reason === "closed" ? await this.#whenDurable(log, refusal.next) : null;
    return failed ?? { ok: false, refusal };
  }

  async #whenDurable(log: PartitionLog, end: number): Promise<Failure | null> {
    const { logStartOffset } = log;
    const waiting: Appended = {
      ok: true,
      baseOffset: end - 1,
      lastOffset: end - 1,
      logAppendTimeMs: -1,
      logStartOffset,
      duplicate: true,
      durable: log.passed(end),
    };
    const last = await this.#writer.durable(waiting);
    return last.ok ? null : failureOf(last);
  }
}

function forebearGone({ name }: TopicRow): Failure {
  const message = `Cannot read ${name} from its beginning: what it was forked from is gone`;
  return { ok: false, error: "UNKNOWN_TOPIC_ID", message };
}

function shiftedStep(stepped: Stepped | Failure, start: number): Stepped | Failure {
  if (stepped.ok) return { ...stepped, next: stepped.next + start };
  if (!("refusal" in stepped) || stepped.refusal.reason !== "closed") return stepped;
  return { ...stepped, refusal: { ...stepped.refusal, next: stepped.refusal.next + start } };
}

function appended(log: PartitionLog, batch: Uint8Array, isPlain: boolean): AppendOutcome {
  try {
    const outcome = isPlain ? log.append(batch) : log.appendStep(batch);
    if (outcome.ok) outcome.durable.catch(() => {});
    return outcome;
  } catch (error) {
    if (!isFault(error)) throw error;
    return refusalOf(error);
  }
}
