/** Every API that the broker answers: the table that ApiVersions shows. */
import { bind, type Route } from "../broker/broker.ts";
import { offsetCommitHandler } from "../broker/api/08_offset_commit.ts";
import { offsetFetchHandler } from "../broker/api/09_offset_fetch.ts";
import { findCoordinatorHandler } from "../broker/api/10_find_coordinator.ts";
import { joinGroupHandler } from "../broker/api/11_join_group.ts";
import { heartbeatHandler } from "../broker/api/12_heartbeat.ts";
import { leaveGroupHandler } from "../broker/api/13_leave_group.ts";
import { syncGroupHandler } from "../broker/api/14_sync_group.ts";
import { describeGroupsHandler } from "../broker/api/15_describe_groups.ts";
import { listGroupsHandler } from "../broker/api/16_list_groups.ts";
import { deleteGroupsHandler } from "../broker/api/42_delete_groups.ts";
import type { GroupServices } from "../broker/group/services.ts";

export function groupRoutes(services: GroupServices): Route[] {
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
