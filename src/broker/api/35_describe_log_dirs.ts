/**
 * DescribeLogDirs (key 35), versions 1-4.
 * Behaviour: one directory, which stands for the object store, with the partitions that this broker leads and
 * their bytes from the log start on. A null list means all of them; topics and partitions that this broker does
 * not lead are left out. A log that is not in use stays closed: its size is what its last owner has counted. Only
 * one whose owner crashed before that is opened.
 * Deviations: sizes are those of the records; the store may hold each byte once more while it is compacted.
 * Version notes: 2 flexible · 3 an error for the whole · 4 size of the volume: unknown, -1.
 */
import { errorCode } from "../../protocol/error_code.ts";
import {
  describeLogDirsApi,
  type DescribeLogDirsRequest,
  type DescribeLogDirsResponse,
} from "../../protocol/message/35_describe_log_dirs.ts";
import { isFault } from "../../lib/errors.ts";
import type { TopicRow } from "../../controller/image.ts";
import type { BrokerServices, Handler } from "../handler.ts";
import { inGroups } from "../many.ts";

type Answer = DescribeLogDirsResponse["results"][number]["topics"][number];
type Partition = Answer["partitions"][number];

const DIRECTORY = "/object-store";

interface Wanted {
  readonly topic: TopicRow;
  readonly partitions: Iterable<number>;
}

function allOf(topic: TopicRow): Wanted {
  return { topic, partitions: Array.from({ length: topic.partitions }, (_, index) => index) };
}

function wantedOf(services: BrokerServices, { topics }: DescribeLogDirsRequest): Wanted[] {
  if (topics === null) return [...services.metadata.view().topics.values()].map(allOf);
  const byName = new Map<string, Set<number>>();
  for (const { topic, partitions } of topics) {
    const known = byName.get(topic) ?? new Set();
    for (const partition of partitions) known.add(partition);
    byName.set(topic, known);
  }
  return [...byName].flatMap(([name, partitions]) => {
    const topic = services.topics.find(name);
    return topic === undefined ? [] : [{ topic, partitions }];
  });
}

/** Null for what is led elsewhere, and for a log that cannot be opened now: Kafka lists no offline ones. */
async function sizeOf(
  { partitions }: BrokerServices,
  { topicId }: TopicRow,
  partitionIndex: number,
): Promise<Partition | null> {
  try {
    const partitionSize = await partitions.sizeOf(topicId, partitionIndex);
    if (partitionSize === null) return null;
    return { partitionIndex, partitionSize, offsetLag: 0, isFutureKey: false };
  } catch (error) {
    if (!isFault(error)) throw error;
    return null;
  }
}

export function describeLogDirsHandler(
  services: BrokerServices,
): Handler<DescribeLogDirsRequest, DescribeLogDirsResponse> {
  return {
    api: describeLogDirsApi,
    min: 1,
    max: 4,
    async handle(request, { signal }) {
      const topics: Answer[] = [];
      for (const { topic, partitions } of wantedOf(services, request)) {
        // Nobody reads it any more, and each log takes its time.
        if (signal.aborted) break;
        const sizes = await inGroups(
          services.env.clock,
          [...partitions],
          (partition) => sizeOf(services, topic, partition),
        );
        const found = sizes.filter((one) => one !== null);
        if (found.length > 0) topics.push({ name: topic.name, partitions: found });
      }
      const result = { errorCode: errorCode("NONE"), logDir: DIRECTORY, topics };
      return { throttleTimeMs: 0, errorCode: errorCode("NONE"), results: [result] };
    },
  };
}
