/** One Produce call for one partition, judged. */
import { type ErrorName, errorName } from "../../../src/protocol/error_code.ts";
import { produceApi } from "../../../src/protocol/message/00_produce.ts";
import type { KafkaClient } from "../kafka_client.ts";

export interface ProduceAnswer {
  readonly by: number;
  readonly code: number;
  readonly error: ErrorName;
  readonly baseOffset: number;
}

const VERSION = 13;

/** Throws NoAnswer. */
export async function produce(
  client: KafkaClient,
  topicId: string,
  partition: number,
  batch: Uint8Array,
  timeoutMs: number,
  label: string,
): Promise<ProduceAnswer> {
  const request = {
    acks: -1,
    timeoutMs: Math.round(timeoutMs * 0.8),
    topicData: [{ topicId, partitionData: [{ index: partition, records: batch }] }],
  };
  const where = `${topicId.slice(0, 8)}-${partition} ${label}`;
  const { response, by } = await client.call(produceApi, VERSION, request, timeoutMs, where);
  const answer = response.responses?.[0]?.partitionResponses[0];
  if (answer === undefined) throw new Error("Produce answer without a partition");
  const { errorCode: code, baseOffset } = answer;
  return { by, code, error: errorName(code), baseOffset };
}
