/**
 * DescribeGroups (key 15), versions 0-6.
 * Behaviour: an unknown group, and one that is not classic, reads as "Dead" without an error up to v5, as GROUP_ID_NOT_FOUND from v6 on.
 * Who asks is told that everything may be done with a group, except where there is an error.
 * A group that is named again is answered once. Members' metadata and assignments are shown only while the group is stable, as Kafka does.
 * Version notes: 4 static members (KIP-345) · 6 GROUP_ID_NOT_FOUND (KIP-1043).
 */
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import {
  describeGroupsApi,
  type DescribeGroupsRequest,
  type DescribeGroupsResponse,
} from "../../protocol/message/15_describe_groups.ts";
import { GROUP_OPERATIONS, OPERATIONS_OMITTED } from "../authorized_operations.ts";
import { type Group, type Member, metadataOf, NO_BYTES } from "../group/group.ts";
import { typeOf } from "../group/group_entry.ts";
import { stillOpen } from "../group/coordinator.ts";
import type { GroupServices } from "../group/services.ts";
import type { Handler } from "../handler.ts";
import { inGroups } from "../many.ts";

const NOT_FOUND_SINCE = 6;

type Described = DescribeGroupsResponse["groups"][number];

function failed(
  groupId: string,
  error: ErrorName,
  groupState: string,
  errorMessage: string | null = null,
): Described {
  return {
    errorCode: errorCode(error),
    errorMessage,
    groupId,
    groupState,
    protocolType: "",
    protocolData: "",
    members: [],
  };
}

function describedMember(group: Group, member: Member): Described["members"][number] {
  const stable = group.state === "Stable";
  return {
    memberId: member.memberId,
    groupInstanceId: member.instanceId,
    clientId: member.clientId,
    clientHost: `/${member.clientHost}`,
    memberMetadata: stable ? metadataOf(member, group.protocolName) : NO_BYTES,
    memberAssignment: stable ? member.assignment : NO_BYTES,
  };
}

function described(group: Group): Described {
  return {
    errorCode: errorCode("NONE"),
    errorMessage: null,
    groupId: group.groupId,
    groupState: group.state,
    protocolType: group.protocolType ?? "",
    protocolData: group.state === "Stable" ? group.protocolName ?? "" : "",
    members: [...group.members.values()].map((member) => describedMember(group, member)),
  };
}

function operationsOf({ errorCode: code }: Described): number {
  return code === errorCode("NONE") ? GROUP_OPERATIONS : OPERATIONS_OMITTED;
}

export function describeGroupsHandler(
  services: GroupServices,
): Handler<DescribeGroupsRequest, DescribeGroupsResponse> {
  async function describe(groupId: string, version: number): Promise<Described> {
    const found = stillOpen(await services.coordinator.shardOf(groupId));
    if (!found.ok) return failed(groupId, found.error, "");
    const entry = found.shard.find(groupId);
    if (entry !== undefined && typeOf(entry) === "classic") return described(entry.group);
    const problem = entry === undefined ? "not found" : "is not a classic group";
    return version >= NOT_FOUND_SINCE
      ? failed(groupId, "GROUP_ID_NOT_FOUND", "Dead", `Group ${groupId} ${problem}.`)
      : failed(groupId, "NONE", "Dead");
  }

  return {
    api: describeGroupsApi,
    min: 0,
    max: 6,
    async handle(request, { version }) {
      const groups = await inGroups(
        services.env.clock,
        [...new Set(request.groups)],
        (groupId) => describe(groupId, version),
      );
      if (!request.includeAuthorizedOperations) return { groups };
      return { groups: groups.map((one) => ({ ...one, authorizedOperations: operationsOf(one) })) };
    },
  };
}
