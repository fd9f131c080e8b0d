/** The handlers of group coordination as routes. */
import { bind, type Route } from "../broker.ts";
import { offsetCommitHandler } from "../api/08_offset_commit.ts";
import { offsetFetchHandler } from "../api/09_offset_fetch.ts";
import { findCoordinatorHandler } from "../api/10_find_coordinator.ts";
import { joinGroupHandler } from "../api/11_join_group.ts";
import { heartbeatHandler } from "../api/12_heartbeat.ts";
import { leaveGroupHandler } from "../api/13_leave_group.ts";
import { syncGroupHandler } from "../api/14_sync_group.ts";
import { describeGroupsHandler } from "../api/15_describe_groups.ts";
import { listGroupsHandler } from "../api/16_list_groups.ts";
import { deleteGroupsHandler } from "../api/42_delete_groups.ts";
import type { GroupServices } from "./services.ts";

export function groupRoutes(services: GroupServices): readonly Route[] {
  return [
    bind(offsetCommitHandler(services)),
    bind(offsetFetchHandler(services)),
    bind(findCoordinatorHandler(services)),
    bind(joinGroupHandler(services)),
    bind(heartbeatHandler(services)),
    bind(leaveGroupHandler(services)),
    bind(syncGroupHandler(services)),
    bind(describeGroupsHandler(services)),
    bind(listGroupsHandler(services)),
    bind(deleteGroupsHandler(services)),
  ];
}
