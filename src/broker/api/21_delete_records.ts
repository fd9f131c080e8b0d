/**
 * DeleteRecords (key 21), versions 0-2.
 * Behaviour: moves the log start up to the offset, durably; -1 is the high watermark. An offset below the log
 * start changes nothing and is no error. Records go from view at once, a batch across the new start is still
 * read as a whole, and the bytes follow with their segments.
 * A topic that is only compacted is POLICY_VIOLATION; an internal one is INVALID_TOPIC_EXCEPTION.
 * Version notes: 2 flexible.
 */
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import {
  deleteRecordsApi,
  type DeleteRecordsRequest,
  type DeleteRecordsResponse,
} from "../../protocol/message/21_delete_records.ts";
import type { TopicRow } from "../../controller/image.ts";
import { withDeadline } from "../deadline.ts";
import { deleteRecords } from "../delete_records.ts";
import type { BrokerServices, Handler } from "../handler.ts";
import { inGroups } from "../many.ts";

type Asked = DeleteRecordsRequest["topics"][number]["partitions"][number];
type Answer = DeleteRecordsResponse["topics"][number]["partitions"][number];

const HIGH_WATERMARK = -1;
const NO_WATERMARK = -1;

function answer(partitionIndex: number, error: ErrorName, lowWatermark = NO_WATERMARK): Answer {
  return { partitionIndex, lowWatermark, errorCode: errorCode(error) };
}

async function trim(
  services: BrokerServices,
  topic: TopicRow | undefined,
  { partitionIndex, offset }: Asked,
): Promise<Answer> {
  const before = offset === HIGH_WATERMARK ? "all" : offset;
  const deleted = await deleteRecords(services, topic, partitionIndex, before);
  return deleted.ok
    ? answer(partitionIndex, "NONE", deleted.logStartOffset)
    : answer(partitionIndex, deleted.error);
}

export function deleteRecordsHandler(
  services: BrokerServices,
): Handler<DeleteRecordsRequest, DeleteRecordsResponse> {
  return {
    api: deleteRecordsApi,
    min: 0,
    max: 2,
    async handle(request) {
      const { clock } = services.env;
      const topics = await withDeadline(clock, request.timeoutMs, async (deadline) => {
        const answers: DeleteRecordsResponse["topics"][number][] = [];
        for (const { name, partitions } of request.topics) {
          await services.topics.look([name]);
          const topic = services.topics.find(name);
          const results = await inGroups(clock, partitions, (asked) =>
            deadline.run(
              () => trim(services, topic, asked),
              answer(asked.partitionIndex, "REQUEST_TIMED_OUT"),
            ));
          answers.push({ name, partitions: results });
        }
        return answers;
      });
      return { throttleTimeMs: 0, topics };
    },
  };
}
