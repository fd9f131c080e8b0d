/** Everything in a partition, written down. */
import { fetchApi } from "../../../src/protocol/message/01_fetch.ts";
import type { Script } from "../script.ts";

export async function fetchAll(
  script: Script,
  label: string,
  topic: string,
  partition = 0,
): Promise<void> {
  await script.check(label, fetchApi, 11, {
    maxWaitMs: 0,
    minBytes: 0,
    maxBytes: 50_000_000,
    sessionId: 0,
    topics: [{
      topic,
      partitions: [{ partition, fetchOffset: 0, partitionMaxBytes: 50_000_000 }],
    }],
    forgottenTopicsData: [],
    rackId: "",
  });
}
