/**
 * Produce (key 0), versions 3-13.
 * Behaviour: acks=1 and acks=all wait until the batch is durable; acks=0 sends no answer and hangs up
 * when something failed. With `skerry.acks.one=log-end` acks=1 only waits for a place in the log.
 * Requests of one connection are appended in order of arrival and wait side by side.
 * The first transactional batch of a producer in a partition waits for the word of the transaction's coordinator.
 * Of a partition that stands in a request twice the last batch is appended, and answered once, as in Kafka. A
 * duplicate is answered with the original's offset and largest time, also where times are the clients'.
 * Deviations: 0-2 are listed for old librdkafka and refused; records are not inflated unless the topic
 * is compacted, has another compression.type or says `skerry.produce.validate=full`;
 * min.insync.replicas is not enforced; a time-out below one second waits one second.
 * Version notes: 7 zstd (KIP-110) · 8 error texts (KIP-467) · 9 flexible · 10 leader hints (KIP-951)
 * · 11 TRANSACTION_ABORTABLE, 12 adds partitions to the transaction (KIP-890) · 13 topic ids (KIP-516).
 */
import { viewOf } from "../../lib/bytes.ts";
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import { BATCH_HEADER_BYTES } from "../../protocol/record_batch.ts";
import {
  produceApi,
  type ProduceRequest,
  type ProduceResponse,
} from "../../protocol/message/00_produce.ts";
import type { TopicRow } from "../../controller/image.ts";
import type { AppendRefused, PartitionLog, Verification } from "../../log/partition_log.ts";
import { hintedNodes, leaderHint } from "../endpoints.ts";
import { type BrokerServices, CLOSE, type Handler } from "../handler.ts";
import { lastOfEach } from "../many.ts";
import { RefusedSequences } from "../refused_sequences.ts";
import type { Transactions } from "../txn/transactions.ts";
import { produceMode, type TxnBatch, verifyBatches } from "../txn/produce_txn.ts";
import { type AppendOutcome, appendTo, produceDeadline, refusalOf, settle } from "../produce.ts";

type TopicData = ProduceRequest["topicData"][number];
type PartitionData = TopicData["partitionData"][number];
type TopicAnswer = ProduceResponse["responses"][number];
type PartitionAnswer = TopicAnswer["partitionResponses"][number];

const TOPIC_IDS_SINCE = 13;
const ZSTD_SINCE = 7;
const HINTS_SINCE = 10;
const ADMIN_CLIENT = "__admin_client";
const MAGIC_AT = 16;
const MAGIC = 2;
const ATTRIBUTES_AT = 21;
const TRANSACTIONAL = 1 << 4;
const ZSTD = 4;

/** One partition of the request on its way through the steps. */
interface Item {
  /** As the request calls it. */
  readonly asked: TopicData;
  readonly topic: TopicRow | undefined;
  readonly data: PartitionData;
  log?: PartitionLog;
  verification?: Verification;
  outcome: AppendOutcome | null;
}

function refuse(error: ErrorName, message?: string): AppendRefused {
  return message === undefined ? { ok: false, error } : { ok: false, error, message };
}

function attributesOf({ records }: PartitionData): number {
  if (records === null || records.length < ATTRIBUTES_AT + 2) return 0;
  return viewOf(records).getInt16(ATTRIBUTES_AT);
}

/** What fails every partition alike. */
function wholeProblem(request: ProduceRequest): ErrorName | null {
  const { transactionalId, topicData, acks } = request;
  if (transactionalId === null && topicData.some((t) => t.partitionData.some(isTransactional))) {
    return "TRANSACTIONAL_ID_AUTHORIZATION_FAILED";
  }
  return acks < -1 || acks > 1 ? "INVALID_REQUIRED_ACKS" : null;
}

function shapeProblem(item: Item, version: number, clientId: string): AppendOutcome | null {
  const { topic, data } = item;
  if (topic === undefined) {
    return refuse(version >= TOPIC_IDS_SINCE ? "UNKNOWN_TOPIC_ID" : "UNKNOWN_TOPIC_OR_PARTITION");
  }
  if (data.index < 0 || data.index >= topic.partitions) return refuse("UNKNOWN_TOPIC_OR_PARTITION");
  if (data.records === null) return refuse("INVALID_RECORD", "No record batch");
  if (version < ZSTD_SINCE && (attributesOf(data) & 7) === ZSTD) {
    return refuse("UNSUPPORTED_COMPRESSION_TYPE", "zstd needs Produce version 7");
  }
  return topic.internal && clientId !== ADMIN_CLIENT
    ? refuse("INVALID_TOPIC_EXCEPTION", `Cannot write to the internal topic ${topic.name}`)
    : null;
}

/** What a request calls a topic: its name or its id, never both. */
function topicKey({ name, topicId }: TopicData): string {
  return name === "" ? topicId : name;
}

/** Without an await when all topics are known. */
function lookFor(
  { topics }: BrokerServices,
  { topicData }: ProduceRequest,
  version: number,
): Promise<void> | null {
  return version >= TOPIC_IDS_SINCE
    ? topics.lookById(topicData.map(({ topicId }) => topicId))
    : topics.look(topicData.map(({ name }) => name));
}

function itemsOf(
  services: BrokerServices,
  { topicData }: ProduceRequest,
  version: number,
): readonly Item[] {
  const all = topicData.flatMap((asked): Item[] => {
    const topic = version >= TOPIC_IDS_SINCE
      ? services.topics.findById(asked.topicId)
      : services.topics.find(asked.name);
    return asked.partitionData.map((data) => ({ asked, topic, data, outcome: null }));
  });
  return lastOfEach(all, ({ asked, data }) => `${topicKey(asked)}/${data.index}`);
}

/** Sets the log, or the outcome when there is none to be had. */
async function openLog(
  services: BrokerServices,
  item: Item,
  topic: TopicRow,
  refused: RefusedSequences,
): Promise<void> {
  const { index, records } = item.data;
  try {
    const located = await services.partitions.open(topic.topicId, index);
    if (located.ok) item.log = located.log;
    else item.outcome = refuse(located.error);
  } catch (error) {
    item.outcome = refusalOf(error);
  }
  if (item.outcome !== null && records !== null) refused.note(topic.topicId, index, records);
}

/** Without an await when all logs are open, which keeps the order of pipelined requests. */
function openAll(
  services: BrokerServices,
  items: readonly Item[],
  refused: RefusedSequences,
): Promise<unknown> | null {
  const opening: Promise<void>[] = [];
  for (const item of items) {
    const { topic, data } = item;
    if (item.outcome !== null || topic === undefined) continue;
    const log = services.partitions.peek(topic.topicId, data.index);
    if (log === undefined) opening.push(openLog(services, item, topic, refused));
    else item.log = log;
  }
  return opening.length === 0 ? null : Promise.all(opening);
}

function isTransactional(data: PartitionData): boolean {
  return data.records?.[MAGIC_AT] === MAGIC && (attributesOf(data) & TRANSACTIONAL) !== 0;
}

/** Asks the coordinator for every batch that begins a producer's transaction in its partition. */
async function verifyAll(
  { env }: BrokerServices,
  transactions: Transactions,
  transactionalId: string,
  items: readonly Item[],
  version: number,
): Promise<void> {
  const asked: { readonly item: Item; readonly batch: TxnBatch }[] = [];
  for (const item of items) {
    const { topic, data, log } = item;
    const { records, index: partition } = data;
    if (item.outcome !== null || topic === undefined || log === undefined) continue;
    if (records === null || records.length < BATCH_HEADER_BYTES || !isTransactional(data)) continue;
    const batch = { topic: topic.name, partition, log, records, verification: null, refused: null };
    asked.push({ item, batch });
  }
  const batches = asked.map(({ batch }) => batch);
  const mode = produceMode(version, transactions.isV2);
  await verifyBatches(env, transactions, transactionalId, batches, mode);
  for (const { item, batch: { refused, verification } } of asked) {
    if (refused !== null) item.outcome = refused;
    else if (verification !== null) item.verification = verification;
  }
}

function append(services: BrokerServices, item: Item, refused: RefusedSequences): void {
  const { log, data, topic } = item;
  if (item.outcome !== null || log === undefined || data.records === null) return;
  const missing = topic === undefined
    ? null
    : refused.missingBefore(topic.topicId, data.index, data.records);
  if (missing !== null) {
    const message = `sequence ${missing} was refused before and is still missing`;
    item.outcome = refuse("OUT_OF_ORDER_SEQUENCE_NUMBER", message);
    return;
  }
  item.outcome = appendTo(log, data.records, item.verification);
  if (item.outcome.ok && !item.outcome.duplicate) {
    services.env.metrics.count("skerry_produce_bytes_total", {}, data.records.length);
    const records = item.outcome.lastOffset - item.outcome.baseOffset + 1;
    services.env.metrics.count("skerry_produce_records_total", {}, records);
  }
}

function answerOf(
  services: BrokerServices,
  { topic, data, outcome }: Item,
  version: number,
): PartitionAnswer {
  if (outcome?.ok === true) {
    const { baseOffset, logAppendTimeMs, logStartOffset } = outcome;
    const errorCodeNone = errorCode("NONE");
    const { index } = data;
    return { index, errorCode: errorCodeNone, baseOffset, logAppendTimeMs, logStartOffset };
  }
  const { error, message = null, recordErrors = [] } = outcome ??
    refuse("NOT_LEADER_OR_FOLLOWER");
  const row = topic === undefined
    ? undefined
    : services.partitions.leaderOf(topic.topicId, data.index);
  const hint = version >= HINTS_SINCE ? leaderHint(error, row) : null;
  return {
    index: data.index,
    errorCode: errorCode(error),
    baseOffset: -1,
    recordErrors: recordErrors.map((one) => ({
      batchIndex: one.index,
      batchIndexErrorMessage: one.message,
    })),
    errorMessage: message,
    ...(hint === null ? {} : { currentLeader: hint }),
  };
}

function responseOf(
  services: BrokerServices,
  items: readonly Item[],
  version: number,
): ProduceResponse {
  const byTopic = Map.groupBy(items, ({ asked }) => topicKey(asked));
  const responses = Array.from(byTopic.values(), (ofTopic): TopicAnswer => ({
    name: ofTopic[0]!.asked.name,
    topicId: ofTopic[0]!.asked.topicId,
    partitionResponses: ofTopic.map((item) => answerOf(services, item, version)),
  }));
  const hints = responses.flatMap(({ partitionResponses }) =>
    partitionResponses.map(({ currentLeader }) => currentLeader)
  );
  const named = hints.flatMap((hint) =>
    hint?.leaderId === undefined
      ? []
      : [{ leaderId: hint.leaderId, leaderEpoch: hint.leaderEpoch ?? -1 }]
  );
  return { responses, nodeEndpoints: hintedNodes(services, named) };
}

/** Without a coordinator of transactions the logs refuse what would begin one. */
export function produceHandler(
  services: BrokerServices,
  transactions: Transactions | null = null,
): Handler<ProduceRequest, ProduceResponse> {
  const refused = new RefusedSequences(services.env.clock);
  return {
    api: produceApi,
    min: 3,
    max: 13,
    async handle(request, context) {
      const { version, clientId } = context;
      const looking = lookFor(services, request, version);
      if (looking !== null) await looking;
      const items = itemsOf(services, request, version);
      const whole = wholeProblem(request);
      for (const item of items) {
        item.outcome = whole === null ? shapeProblem(item, version, clientId) : refuse(whole);
      }
      const opening = openAll(services, items, refused);
      if (opening !== null) await opening;
      const { transactionalId } = request;
      if (transactionalId !== null && transactions !== null && whole === null) {
        await verifyAll(services, transactions, transactionalId, items, version);
      }
      for (const item of items) append(services, item, refused);
      context.admitted();
      if (request.acks === 0) return items.every(({ outcome }) => outcome?.ok) ? null : CLOSE;
      const waits = request.acks === -1 || services.config.text("skerry.acks.one") === "durable";
      if (waits) {
        const deadline = produceDeadline(services.env.clock, request.timeoutMs);
        try {
          await Promise.all(items.map(async (item) => {
            if (item.outcome !== null) item.outcome = await settle(item.outcome, deadline.expired);
          }));
        } finally {
          deadline.stop();
        }
      }
      return responseOf(services, items, version);
    },
  };
}
