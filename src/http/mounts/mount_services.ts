/** What the dialects of other brokers' gateways are built from. */
import type { Semaphore } from "../../lib/semaphore.ts";
import type { AdminGateway } from "../admin/admin_port.ts";
import type { NodeStatus } from "../port.ts";
import type { ProduceServices } from "../produce/held_request.ts";
import type { GroupGateway } from "./group_port.ts";
import type { Instances } from "./instances/instances.ts";

export interface DialectServices {
  readonly groups: GroupGateway;
  readonly instances: Instances;
}

export interface MountServices extends ProduceServices, DialectServices {
  readonly admin: AdminGateway;
  /** How many streams of records may be written at once. */
  readonly recordStreams: Semaphore;
  readonly status: Pick<NodeStatus, "notReady" | "version" | "clusterId" | "nodeId">;
}
