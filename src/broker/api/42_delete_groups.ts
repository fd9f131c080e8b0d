/**
 * DeleteGroups (key 42), versions 0-2.
 * Behaviour: only a group without members goes; its offsets go with it, durably. The states of a share group go
 * first: while one of them cannot be taken away, the group stays.
 */
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import {
  deleteGroupsApi,
  type DeleteGroupsRequest,
  type DeleteGroupsResponse,
} from "../../protocol/message/42_delete_groups.ts";
import { faultToCode } from "../fault_to_code.ts";
import { stillOpen } from "../group/coordinator.ts";
import { isEmptyGroup } from "../group/group_entry.ts";
import type { GroupServices } from "../group/services.ts";
import type { Handler } from "../handler.ts";
import { inGroups } from "../many.ts";

export function deleteGroupsHandler(
  services: GroupServices,
): Handler<DeleteGroupsRequest, DeleteGroupsResponse> {
  async function remove(groupId: string): Promise<ErrorName> {
    const found = stillOpen(await services.coordinator.shardOf(groupId));
    if (!found.ok) return found.error;
    const entry = found.shard.find(groupId);
    if (entry === undefined || entry.group.state === "Dead") return "GROUP_ID_NOT_FOUND";
    if (!isEmptyGroup(entry)) return "NON_EMPTY_GROUP";
    try {
      const states = await entry.share?.removeStates(null);
      if (typeof states === "string") return states;
      const failed = states?.values().next().value;
      if (failed !== undefined) return failed;
      // While its states went, somebody may have joined, or deleted it.
      if (found.shard.find(groupId) !== entry) return "GROUP_ID_NOT_FOUND";
      if (!isEmptyGroup(entry)) return "NON_EMPTY_GROUP";
      await found.shard.delete(entry);
      return "NONE";
    } catch (error) {
      return faultToCode(error, "coordinator");
    }
  }

  return {
    api: deleteGroupsApi,
    min: 0,
    max: 2,
    async handle({ groupsNames }) {
      const results = await inGroups(services.env.clock, groupsNames, async (groupId) => ({
        groupId,
        errorCode: errorCode(await remove(groupId)),
      }));
      return { throttleTimeMs: 0, results };
    },
  };
}
