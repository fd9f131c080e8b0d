/** Where a share group's records begin in its partitions (KIP-932), read, moved and taken away by its coordinator. */
import { errorName } from "../../protocol/error_code.ts";
import type { Infer } from "../../protocol/schema.ts";
import { shareGroupDescribeApi } from "../../protocol/message/77_share_group_describe.ts";
import { describeShareGroupOffsetsApi } from "../../protocol/message/90_describe_share_group_offsets.ts";
import { alterShareGroupOffsetsApi } from "../../protocol/message/91_alter_share_group_offsets.ts";
import { deleteShareGroupOffsetsApi } from "../../protocol/message/92_delete_share_group_offsets.ts";
import type { Cluster } from "./cluster.ts";
import type { BrokerConnection } from "./connection.ts";
import { checkCode } from "./fault.ts";
import type { CommittedOffset } from "./group_offsets.ts";

type DescribedShareGroup = Infer<typeof shareGroupDescribeApi.response>["groups"][number];

/** What a broker without share groups, or with groups of that name of another kind, answers. */
const NONE: ReadonlySet<string> = new Set(["GROUP_ID_NOT_FOUND", "UNSUPPORTED_VERSION"]);

/** Null when there is no share group of that name. */
export async function describedShareGroup(
  connection: BrokerConnection,
  group: string,
  leftMs: number,
): Promise<DescribedShareGroup | null> {
  if (!connection.speaks(shareGroupDescribeApi)) return null;
  const { groups: [found] } = await connection.call(shareGroupDescribeApi, {
    groupIds: [group],
    includeAuthorizedOperations: false,
  }, { timeoutMs: leftMs });
  if (found === undefined || NONE.has(errorName(found.errorCode))) return null;
  checkCode(`describe group ${group}`, found.errorCode, { message: found.errorMessage });
  return found;
}

export async function isShareGroup(cluster: Cluster, group: string): Promise<boolean> {
  return await cluster.retrying(async (leftMs) => {
    const connection = await cluster.coordinator(group, leftMs);
    return await describedShareGroup(connection, group, leftMs) !== null;
  });
}

export interface ShareOffset extends CommittedOffset {
  /** Records from there on that are not done; null when the broker does not know. */
  readonly lag: number | null;
}

/** Partitions that the group has begun with, in order. */
export async function shareOffsets(cluster: Cluster, group: string): Promise<ShareOffset[]> {
  return await cluster.retrying(async (leftMs) => {
    const connection = await cluster.coordinator(group, leftMs);
    const { groups: [answer] } = await connection.call(describeShareGroupOffsetsApi, {
      groups: [{ groupId: group, topics: null }],
    }, { timeoutMs: leftMs });
    const what = `read the offsets of group ${group}`;
    checkCode(what, answer?.errorCode ?? 0, { message: answer?.errorMessage ?? null });
    const found = (answer?.topics ?? []).flatMap(({ topicName: topic, partitions }) =>
      partitions.map((one) => {
        checkCode(what, one.errorCode);
        const { partitionIndex: partition, startOffset: offset, lag } = one;
        return { topic, partition, offset, metadata: "", lag: lag < 0 ? null : lag };
      })
    );
    return found.filter(({ offset }) => offset >= 0).toSorted((a, b) =>
      a.topic < b.topic ? -1 : a.topic > b.topic ? 1 : a.partition - b.partition
    );
  });
}

export async function moveShareOffsets(
  cluster: Cluster,
  group: string,
  offsets: readonly Omit<CommittedOffset, "metadata">[],
): Promise<void> {
  const what = `move the offsets of group ${group}`;
  await cluster.retrying(async (leftMs) => {
    const connection = await cluster.coordinator(group, leftMs);
    const answer = await connection.call(alterShareGroupOffsetsApi, {
      groupId: group,
      topics: [...new Set(offsets.map(({ topic }) => topic))].map((topicName) => ({
        topicName,
        partitions: offsets.filter(({ topic }) => topic === topicName)
          .map(({ partition, offset }) => ({ partitionIndex: partition, startOffset: offset })),
      })),
    }, { timeoutMs: leftMs });
    checkCode(what, answer.errorCode, { message: answer.errorMessage });
    for (const { topicName, partitions } of answer.responses) {
      for (const { partitionIndex, errorCode: code, errorMessage: message } of partitions) {
        checkCode(`${what} in ${topicName}-${partitionIndex}`, code, { message });
      }
    }
  });
}

export interface Removed {
  readonly topic: string;
  readonly code: number;
  readonly message: string | null;
}

/** Of whole topics: the group begins in them by its own rule again. */
export async function removeShareOffsets(
  cluster: Cluster,
  group: string,
  topics: readonly string[],
): Promise<Removed[]> {
  return await cluster.retrying(async (leftMs) => {
    const connection = await cluster.coordinator(group, leftMs);
    const answer = await connection.call(deleteShareGroupOffsetsApi, {
      groupId: group,
      topics: topics.map((topicName) => ({ topicName })),
    }, { timeoutMs: leftMs });
    checkCode(`delete offsets of group ${group}`, answer.errorCode, {
      message: answer.errorMessage,
    });
    return answer.responses.map(({ topicName: topic, errorCode: code, errorMessage: message }) => ({
      topic,
      code,
      message,
    }));
  });
}
