/** One Fetch call for one partition as clients of transactional and compacted topics see it: whole batches, stable offset, aborted list. */
import { type ErrorName, errorName } from "../../../src/protocol/error_code.ts";
import { fetchApi } from "../../../src/protocol/message/01_fetch.ts";
import { readRecords } from "../../../src/protocol/record.ts";
import {
  isControlBatch,
  isTransactionalBatch,
  lastOffset,
  readBatchHeader,
  splitBatches,
} from "../../../src/protocol/record_batch.ts";
import { checkWatermark } from "../checker/high_watermark.ts";
import { name, type PartitionHistory, watermarkSeen } from "../checker/history.ts";
import { checkLeaderEpoch } from "../checker/leader_epochs.ts";
import { type SeenBatch, type SeenRecord, shown } from "../checker/log_view.ts";
import type { KafkaClient } from "../kafka_client.ts";
import type { Context } from "./context.ts";

const VERSION = 13;

export interface LogAsk {
  readonly history: PartitionHistory;
  readonly offset: number;
  readonly isCommitted: boolean;
  readonly maxBytes: number;
  readonly waitMs: number;
  readonly timeoutMs: number;
}

export interface LogAnswer {
  readonly by: number;
  readonly code: number;
  readonly error: ErrorName;
  readonly batches: readonly SeenBatch[];
  readonly aborted: readonly { readonly producerId: number; readonly firstOffset: number }[];
  readonly stable: number;
  readonly watermark: number;
}

function decode(batch: Uint8Array, { codecs }: Context): SeenBatch {
  const header = readBatchHeader(batch);
  const isControl = isControlBatch(header);
  const records: SeenRecord[] = [];
  for (const record of readRecords(batch, codecs)) records.push(shown(record));
  const marker = isControl && records.length > 0
    ? [...readRecords(batch, codecs)][0]!.key![3] === 1 ? "commit" : "abort"
    : null;
  return {
    baseOffset: header.baseOffset,
    lastOffset: lastOffset(header),
    leaderEpoch: header.partitionLeaderEpoch,
    producerId: header.producerId,
    producerEpoch: header.producerEpoch,
    isTransactional: isTransactionalBatch(header),
    isControl,
    marker,
    records,
  };
}

/** Throws NoAnswer. Everything that it shows becomes part of the history. */
export async function fetchLog(
  context: Context,
  client: KafkaClient,
  ask: LogAsk,
): Promise<LogAnswer> {
  const { world, history: all } = context;
  const { history, offset, maxBytes } = ask;
  const seen = new Map(history.watermarks);
  const request = {
    maxWaitMs: ask.waitMs,
    minBytes: 1,
    maxBytes,
    isolationLevel: ask.isCommitted ? 1 : 0,
    sessionId: 0,
    rackId: "",
    forgottenTopicsData: [],
    topics: [{
      topicId: history.topicId,
      partitions: [{
        partition: history.partition,
        fetchOffset: offset,
        partitionMaxBytes: maxBytes,
      }],
    }],
  };
  const where = `${name(history)} from ${offset}${ask.isCommitted ? " committed" : ""}`;
  const { response, by } = await client.call(fetchApi, VERSION, request, ask.timeoutMs, where);
  const answer = response.responses[0]?.partitions[0];
  const code = answer?.errorCode ?? response.errorCode ?? 0;
  const watermark = answer?.highWatermark ?? -1;
  const stable = answer?.lastStableOffset ?? -1;
  const aborted = answer?.abortedTransactions ?? [];
  const failed = { by, code, error: errorName(code), batches: [], aborted, stable, watermark };
  if (code !== 0 || answer === undefined) return failed;
  const batches: SeenBatch[] = [];
  for (const bytes of splitBatches(answer.records ?? new Uint8Array(0))) {
    if (readBatchHeader(bytes).batchLength + 12 > bytes.length) break;
    const batch = decode(bytes, context);
    checkLeaderEpoch(world, history, batch.baseOffset, batch.leaderEpoch);
    batches.push(batch);
  }
  checkWatermark(world, history, {
    watermark,
    by,
    seenBefore: watermarkSeen({ ...history, watermarks: seen }, by),
  });
  for (const { records } of batches) {
    for (const one of records) {
      all.know(history, one.offset, one.text, `read from epoch ${by}`);
    }
  }
  return { ...failed, batches };
}
