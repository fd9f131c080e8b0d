/** Pushing records above one incarnation of the broker. */
import type { OutboundHttp } from "../env/outbound_http.ts";
import type { GroupServices } from "../broker/group/services.ts";
import type { GroupGateway } from "../http/mounts/group_port.ts";
import type { Gateway } from "../http/port.ts";
import { Push } from "../http/push/push.ts";
import type { PushGroups } from "../http/push/push_port.ts";
import { Signer } from "../http/push/signature.ts";
import { HttpTexts } from "./http_texts.ts";

export interface HttpPushOptions {
  readonly services: GroupServices;
  readonly gateway: Gateway;
  readonly groups: GroupGateway;
  readonly outbound: OutboundHttp | null;
}

function pushGroups({ services, groups }: HttpPushOptions): PushGroups {
  const { coordinator, nodeId } = services;
  return {
    commit: (by, offsets) => groups.commit(by, offsets),
    committed: (group, of) => groups.committed(group, of),
    describeGroup: (group) => groups.describeGroup(group),
    async leads(group) {
      const found = await coordinator.locate(group);
      return "leader" in found && found.leader === nodeId;
    },
  };
}

export function createPush(options: HttpPushOptions): Push {
  const { services, gateway, outbound } = options;
  const signer = new Signer();
  return new Push({
    env: services.env,
    gateway,
    texts: new HttpTexts(services),
    groups: pushGroups(options),
    outbound,
    producePermits: services.permits.produce,
    sign: (key, body, signed) => signer.sign(key, body, signed),
    rules: () => ({ isLoopbackAllowed: services.config.flag("skerry.push.loopback") }),
  });
}
