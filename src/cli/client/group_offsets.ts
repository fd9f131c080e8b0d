/** Committed offsets of a group, read and written by its coordinator. */
import { offsetCommitApi } from "../../protocol/message/08_offset_commit.ts";
import { offsetFetchApi } from "../../protocol/message/09_offset_fetch.ts";
import { checkCode } from "./fault.ts";
import type { Cluster } from "./cluster.ts";

/** From here on a request names groups; up to there it names topics by name. */
const FETCH_VERSIONS = { versionMin: 8, versionMax: 9 };
const COMMIT_VERSION_MAX = 9;

export interface CommittedOffset {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  readonly metadata: string;
}

/** All that the group has committed, in order. */
export async function committedOffsets(
  cluster: Cluster,
  group: string,
): Promise<CommittedOffset[]> {
  return await cluster.retrying(async (leftMs) => {
    const connection = await cluster.coordinator(group, leftMs);
    const { groups: [answer] } = await connection.call(offsetFetchApi, {
      groups: [{ groupId: group, topics: null }],
      requireStable: false,
    }, { timeoutMs: leftMs, ...FETCH_VERSIONS });
    const what = `read the offsets of group ${group}`;
    checkCode(what, answer?.errorCode ?? 0);
    const found = (answer?.topics ?? []).flatMap(({ name, partitions }) =>
      partitions.map((one) => {
        checkCode(what, one.errorCode);
        const { partitionIndex: partition, committedOffset: offset, metadata } = one;
        return { topic: name, partition, offset, metadata: metadata ?? "" };
      })
    );
    return found.filter(({ offset }) => offset >= 0).toSorted((a, b) =>
      a.topic < b.topic ? -1 : a.topic > b.topic ? 1 : a.partition - b.partition
    );
  });
}

export interface Committer {
  readonly memberId: string;
  /** -1 for whoever is no member: the group must be empty then. */
  readonly generation: number;
}

export async function commitOffsets(
  cluster: Cluster,
  group: string,
  offsets: readonly Omit<CommittedOffset, "metadata">[],
  { memberId, generation }: Committer = { memberId: "", generation: -1 },
): Promise<void> {
  const topics = new Map<string, { partitionIndex: number; committedOffset: number }[]>();
  for (const { topic, partition, offset } of offsets) {
    const rows = topics.get(topic) ?? [];
    rows.push({ partitionIndex: partition, committedOffset: offset });
    topics.set(topic, rows);
  }
  await cluster.retrying(async (leftMs) => {
    const connection = await cluster.coordinator(group, leftMs);
    const answer = await connection.call(offsetCommitApi, {
      groupId: group,
      generationIdOrMemberEpoch: generation,
      memberId,
      topics: [...topics].map(([name, rows]) => ({
        name,
        partitions: rows.map((row) => ({ ...row, committedMetadata: "" })),
      })),
    }, { timeoutMs: leftMs, versionMax: COMMIT_VERSION_MAX });
    for (const { name, partitions } of answer.topics) {
      for (const { partitionIndex, errorCode: code } of partitions) {
        checkCode(`commit ${name}-${partitionIndex} of group ${group}`, code);
      }
    }
  });
}
