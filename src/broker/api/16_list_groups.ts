/**
 * ListGroups (key 16), versions 0-5.
 * Behaviour: groups of all partitions of the offsets topic that this node leads.
 * Version notes: 4 filter by state (KIP-518) · 5 filter by type (KIP-848): classic, consumer or share.
 */
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import {
  listGroupsApi,
  type ListGroupsRequest,
  type ListGroupsResponse,
} from "../../protocol/message/16_list_groups.ts";
import { stillOpen } from "../group/coordinator.ts";
import { stateNameOf, typeOf } from "../group/group_entry.ts";
import type { GroupServices } from "../group/services.ts";
import type { Handler } from "../handler.ts";

export function listGroupsHandler(
  services: GroupServices,
): Handler<ListGroupsRequest, ListGroupsResponse> {
  return {
    api: listGroupsApi,
    min: 0,
    max: 5,
    async handle({ statesFilter, typesFilter }) {
      const states = new Set(statesFilter.map((state) => state.toLowerCase()));
      const types = new Set(typesFilter.map((type) => type.toLowerCase()));
      let error: ErrorName = "NONE";
      const groups: NonNullable<ListGroupsResponse["groups"]>[number][] = [];
      for (const each of await services.coordinator.allShards()) {
        const found = stillOpen(each);
        if (!found.ok) {
          error = found.error;
          continue;
        }
        for (const entry of found.shard.groups.values()) {
          const groupState = stateNameOf(entry);
          const groupType = typeOf(entry);
          if (states.size > 0 && !states.has(groupState.toLowerCase())) continue;
          if (types.size > 0 && !types.has(groupType)) continue;
          const { groupId, protocolType } = entry.group;
          groups.push({
            groupId,
            protocolType: groupType === "classic" ? protocolType ?? "" : groupType,
            groupState,
            groupType,
          });
        }
      }
      return { errorCode: errorCode(error), groups: error === "NONE" ? groups : [] };
    },
  };
}
