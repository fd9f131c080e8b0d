/** `skerry group describe`: state, members, and how far behind a group is. */
import { describeGroupsApi } from "../../protocol/message/15_describe_groups.ts";
import { consumerGroupDescribeApi } from "../../protocol/message/69_consumer_group_describe.ts";
import { consumerProtocolAssignment } from "../../protocol/message/consumer_protocol.ts";
import { errorName } from "../../protocol/error_code.ts";
import { decodeGrowing } from "../../protocol/versioned.ts";
import { DecodeError } from "../../lib/bytes.ts";
import type { Cluster } from "../client/cluster.ts";
import type { BrokerConnection } from "../client/connection.ts";
import { brokerFault, checkCode, CLIENT_EXIT, ClientFault } from "../client/fault.ts";
import { type CommittedOffset, committedOffsets } from "../client/group_offsets.ts";
import { describedShareGroup, shareOffsets } from "../client/share_offsets.ts";
import { LATEST, listOffsets } from "../client/place.ts";
import { table, writeJson } from "./answer.ts";
import type { Call, Command } from "./command.ts";

const GROUPS_MAX = 1_000;

interface Assigned {
  readonly topic: string;
  readonly partitions: readonly number[];
}

interface Member {
  readonly id: string;
  readonly clientId: string;
  readonly host: string;
  readonly assigned: readonly Assigned[];
}

interface AssignedMember {
  readonly memberId: string;
  readonly clientId: string;
  readonly clientHost: string;
  readonly assignment: {
    readonly topicPartitions: readonly {
      readonly topicName: string;
      readonly partitions: readonly number[];
    }[];
  };
}

interface GroupState {
  readonly state: string;
  readonly type: "classic" | "consumer" | "share";
  readonly assignor: string;
  readonly members: readonly Member[];
}

interface Offset extends CommittedOffset {
  /** Null when the topic is gone. */
  readonly end: number | null;
  readonly lag: number | null;
}

interface Described extends GroupState {
  readonly group: string;
  readonly offsets: readonly Offset[];
}

/** Other types of clients put what they like there. */
function assignedOf(bytes: Uint8Array): Assigned[] {
  if (bytes.length === 0) return [];
  try {
    return [...decodeGrowing(consumerProtocolAssignment, bytes).assignedPartitions];
  } catch (error) {
    if (error instanceof DecodeError) return [];
    throw error;
  }
}

async function classicState(
  connection: BrokerConnection,
  group: string,
  leftMs: number,
): Promise<GroupState | null> {
  const { groups: [found] } = await connection.call(describeGroupsApi, { groups: [group] }, {
    timeoutMs: leftMs,
  });
  if (found === undefined || errorName(found.errorCode) === "GROUP_ID_NOT_FOUND") return null;
  checkCode(`describe group ${group}`, found.errorCode, { message: found.errorMessage });
  if (found.groupState === "Dead") return null;
  return {
    state: found.groupState,
    type: "classic",
    assignor: found.protocolData,
    members: found.members.map(({ memberId, clientId, clientHost, memberAssignment }) => ({
      id: memberId,
      clientId,
      host: clientHost,
      assigned: assignedOf(memberAssignment),
    })),
  };
}

/** Of groups whose broker assigns. */
function memberOf({ memberId, clientId, clientHost, assignment }: AssignedMember): Member {
  return {
    id: memberId,
    clientId,
    host: clientHost,
    assigned: assignment.topicPartitions.map(({ topicName: topic, partitions }) => (
      { topic, partitions }
    )),
  };
}

async function consumerState(
  connection: BrokerConnection,
  group: string,
  leftMs: number,
): Promise<GroupState | null> {
  if (!connection.speaks(consumerGroupDescribeApi)) return null;
  const { groups: [found] } = await connection.call(consumerGroupDescribeApi, {
    groupIds: [group],
    includeAuthorizedOperations: false,
  }, { timeoutMs: leftMs });
  if (found === undefined || errorName(found.errorCode) === "GROUP_ID_NOT_FOUND") return null;
  checkCode(`describe group ${group}`, found.errorCode, { message: found.errorMessage });
  return {
    state: found.groupState,
    type: "consumer",
    assignor: found.assignorName,
    members: found.members.map(memberOf),
  };
}

async function shareState(
  connection: BrokerConnection,
  group: string,
  leftMs: number,
): Promise<GroupState | null> {
  const found = await describedShareGroup(connection, group, leftMs);
  if (found === null) return null;
  return {
    state: found.groupState,
    type: "share",
    assignor: found.assignorName,
    members: found.members.map(memberOf),
  };
}

async function endsOf(cluster: Cluster, topic: string, partitions: readonly number[]) {
  try {
    const wanted = partitions.map((partition) => ({ partition, timestamp: LATEST }));
    return await listOffsets(cluster, topic, wanted);
  } catch (fault) {
    // Offsets outlive their topic.
    if (fault instanceof ClientFault && fault.exit === CLIENT_EXIT.notFound) {
      return new Map<number, number>();
    }
    throw fault;
  }
}

async function withLag(
  cluster: Cluster,
  committed: readonly CommittedOffset[],
): Promise<Offset[]> {
  const offsets: Offset[] = [];
  for (const topic of new Set(committed.map((one) => one.topic))) {
    const own = committed.filter((one) => one.topic === topic);
    const ends = await endsOf(cluster, topic, own.map(({ partition }) => partition));
    offsets.push(...own.map((one) => {
      const end = ends.get(one.partition) ?? null;
      return { ...one, end, lag: end === null ? null : Math.max(0, end - one.offset) };
    }));
  }
  return offsets;
}

/** Of a share group what is done lies between the offset and the end: its broker counts. */
async function withOwnLag(cluster: Cluster, group: string): Promise<Offset[]> {
  const own = await shareOffsets(cluster, group);
  const offsets = await withLag(cluster, own);
  return offsets.map((one, at) => ({ ...one, lag: own[at]!.lag }));
}

async function describeOne(cluster: Cluster, group: string): Promise<Described> {
  const state = await cluster.retrying(async (leftMs) => {
    const connection = await cluster.coordinator(group, leftMs);
    const found = await classicState(connection, group, leftMs) ??
      await consumerState(connection, group, leftMs) ??
      await shareState(connection, group, leftMs);
    if (found === null) throw brokerFault(`describe group ${group}`, "GROUP_ID_NOT_FOUND");
    return found;
  });
  const offsets = state.type === "share"
    ? await withOwnLag(cluster, group)
    : await withLag(cluster, await committedOffsets(cluster, group));
  return { group, ...state, offsets };
}

function text({ group, state, type, assignor, members, offsets }: Described): string {
  const by = assignor === "" ? "" : `, assignor ${assignor}`;
  const offsetRows = offsets.map(({ topic, partition, offset, end, lag }) =>
    [topic, partition, offset, end ?? "-", lag ?? "-"].map(String)
  );
  const memberRows = members.map(({ id, clientId, host, assigned }) => [
    id,
    clientId,
    host,
    assigned.map(({ topic, partitions }) => `${topic}:${partitions.join(",")}`).join(" "),
  ]);
  return [
    `${group}: ${state} (${type}${by})\n`,
    ...(offsets.length > 0
      ? [table(["TOPIC", "PARTITION", "OFFSET", "END", "LAG"], offsetRows)]
      : []),
    ...(members.length > 0 ? [table(["MEMBER", "CLIENT", "HOST", "READS"], memberRows)] : []),
  ].join("");
}

async function describe({ words, cluster, io }: Call): Promise<number> {
  const found: Described[] = [];
  const faults: ClientFault[] = [];
  for (const group of words.operands) {
    try {
      found.push(await describeOne(cluster, group));
    } catch (fault) {
      if (!(fault instanceof ClientFault)) throw fault;
      faults.push(fault);
    }
  }
  if (words.json) await writeJson(io, { groups: found });
  else await io.write(found.map(text).join("\n"));
  for (const { message } of faults) io.note(message);
  if (faults.length === 0) return CLIENT_EXIT.ok;
  return found.length > 0 ? CLIENT_EXIT.failed : faults[0]!.exit;
}

export const DESCRIBE: Command = {
  name: "group describe",
  operands: "GROUP...",
  operandsMin: 1,
  operandsMax: GROUPS_MAX,
  help: "State, members with their partitions, offsets and how far they are behind.",
  options: {},
  run: describe,
};
