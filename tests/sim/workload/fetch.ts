/** One Fetch call for one partition, decoded and checked. */
import { type ErrorName, errorName } from "../../../src/protocol/error_code.ts";
import { fetchApi } from "../../../src/protocol/message/01_fetch.ts";
import { listOffsetsApi } from "../../../src/protocol/message/02_list_offsets.ts";
import { readRecords } from "../../../src/protocol/record.ts";
import { readBatchHeader, splitBatches } from "../../../src/protocol/record_batch.ts";
import { checkContiguous, type ReadRecord } from "../checker/contiguous.ts";
import { checkWatermark } from "../checker/high_watermark.ts";
import { watermarkSeen } from "../checker/history.ts";
import { checkLeaderEpoch } from "../checker/leader_epochs.ts";
import type { KafkaClient } from "../kafka_client.ts";
import type { Context } from "./context.ts";

const VERSION = 13;

export interface FetchAsk {
  readonly topicId: string;
  readonly partition: number;
  readonly offset: number;
  readonly maxBytes: number;
  readonly waitMs: number;
  readonly timeoutMs: number;
}

export interface FetchAnswer {
  readonly by: number;
  readonly code: number;
  readonly error: ErrorName;
  readonly records: readonly ReadRecord[];
  readonly watermark: number;
  readonly logStart: number;
}

/** Throws NoAnswer. Everything that it shows becomes part of the history. */
export async function fetchFrom(
  context: Context,
  client: KafkaClient,
  ask: FetchAsk,
): Promise<FetchAnswer> {
  const { world, history, codecs } = context;
  const { topicId, partition, offset, maxBytes } = ask;
  const past = history.of(topicId, partition);
  const seen = new Map(past.watermarks);
  const request = {
    maxWaitMs: ask.waitMs,
    minBytes: 1,
    maxBytes,
    sessionId: 0,
    rackId: "",
    forgottenTopicsData: [],
    topics: [{
      topicId,
      partitions: [{ partition, fetchOffset: offset, partitionMaxBytes: maxBytes }],
    }],
  };
  const where = `${topicId.slice(0, 8)}-${partition} from ${offset}`;
  const { response, by } = await client.call(fetchApi, VERSION, request, ask.timeoutMs, where);
  const answer = response.responses[0]?.partitions[0];
  const code = answer?.errorCode ?? response.errorCode ?? 0;
  const watermark = answer?.highWatermark ?? -1;
  const logStart = answer?.logStartOffset ?? -1;
  const failed = { by, code, error: errorName(code), records: [], watermark, logStart };
  if (code !== 0 || answer === undefined) return failed;
  const records: ReadRecord[] = [];
  for (const batch of splitBatches(answer.records ?? new Uint8Array(0))) {
    const { batchLength, baseOffset, partitionLeaderEpoch } = readBatchHeader(batch);
    if (batchLength + 12 > batch.length) break;
    checkLeaderEpoch(world, past, baseOffset, partitionLeaderEpoch);
    for (const record of readRecords(batch, codecs)) {
      records.push({ offset: record.offset, value: new TextDecoder().decode(record.value!) });
    }
  }
  if (context.topics.every((topic) => topic.topicId !== topicId)) return { ...failed, records };
  const seenBefore = watermarkSeen({ ...past, watermarks: seen }, by);
  checkWatermark(world, past, { watermark, by, seenBefore });
  checkContiguous(world, past, offset, watermark, records);
  past.logStart = Math.max(past.logStart, logStart);
  for (const one of records) history.know(past, one.offset, one.value, `read from epoch ${by}`);
  return { ...failed, records };
}

const EARLIEST = -2;

/** Throws NoAnswer; null when the partition cannot answer now. */
export async function earliestOf(
  client: KafkaClient,
  name: string,
  partition: number,
): Promise<number | null> {
  const request = {
    replicaId: -1,
    isolationLevel: 0,
    topics: [{
      name,
      partitions: [{ partitionIndex: partition, currentLeaderEpoch: -1, timestamp: EARLIEST }],
    }],
  };
  const { response } = await client.call(listOffsetsApi, 7, request, 30_000);
  const answer = response.topics[0]?.partitions[0];
  return answer?.errorCode === 0 ? answer.offset ?? null : null;
}
