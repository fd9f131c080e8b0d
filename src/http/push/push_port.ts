/** What pushing records stands on. */
import type { Env } from "../../env/env.ts";
import type { OutboundHttp } from "../../env/outbound_http.ts";
import type { Semaphore } from "../../lib/semaphore.ts";
import type { GroupGateway } from "../mounts/group_port.ts";
import type { Gateway } from "../port.ts";
import type { MetadataTexts } from "../texts.ts";
import type { Sign } from "./signature.ts";
import type { TargetRules } from "./target.ts";

export interface PushGroups extends Pick<GroupGateway, "commit" | "committed" | "describeGroup"> {
  /** Whether this node has the group, by the local replica. Throws FaultError. */
  leads(group: string): Promise<boolean>;
}

export interface PushServices {
  readonly env: Env;
  readonly gateway: Gateway;
  readonly texts: MetadataTexts;
  readonly groups: PushGroups;
  /** Null where the broker is embedded without one: nothing is delivered then. */
  readonly outbound: OutboundHttp | null;
  /** Node-wide bytes of produce requests, for dead letters. */
  readonly producePermits: Semaphore;
  readonly sign: Sign;
  readonly rules: () => TargetRules;
}
