/** Moves the log start of a partition for those who ask: the Kafka API and the gateway. */
import type { ErrorName } from "../protocol/error_code.ts";
import type { TopicRow } from "../controller/image.ts";
import { faultToCode } from "./fault_to_code.ts";
import type { BrokerServices } from "./handler.ts";

export type RecordsDeleted =
  | { readonly ok: true; readonly logStartOffset: number }
  | { readonly ok: false; readonly error: ErrorName };

function refuse(error: ErrorName): RecordsDeleted {
  return { ok: false, error };
}

/** Up to an offset, or all that there are. */
export async function deleteRecords(
  services: Pick<BrokerServices, "partitions">,
  topic: TopicRow | undefined,
  partition: number,
  before: number | "all",
): Promise<RecordsDeleted> {
  if (topic === undefined || partition < 0 || partition >= topic.partitions) {
    return refuse("UNKNOWN_TOPIC_OR_PARTITION");
  }
  if (topic.internal) return refuse("INVALID_TOPIC_EXCEPTION");
  try {
    const located = await services.partitions.open(topic.topicId, partition);
    if (!located.ok) return refuse(located.error);
    const { log } = located;
    const { cleanup } = log.config;
    if (cleanup.compact && !cleanup.delete) return refuse("POLICY_VIOLATION");
    const deleted = await log.deleteRecords(before === "all" ? log.highWatermark : before);
    return deleted.ok
      ? { ok: true, logStartOffset: deleted.logStartOffset }
      : refuse(deleted.error);
  } catch (error) {
    return refuse(faultToCode(error, "fetch"));
  }
}
