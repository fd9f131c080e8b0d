/**
 * AlterClientQuotas (key 49), versions 0-1.
 * Behaviour: each entity alone, all of its changes or none: user, client-id, both, or ip, with null for the
 * default. Limits must be above 0; byte rates and connection rates are whole numbers. What is removed and was
 * not there is no error.
 * Deviations: the quotas are kept and shown; nothing is slowed down by them yet. An ip is an address: host names
 * are not looked up. There may be 10,000 entities; one more is POLICY_VIOLATION.
 * Version notes: 1 flexible.
 */
import { errorCode } from "../../protocol/error_code.ts";
import {
  alterClientQuotasApi,
  type AlterClientQuotasRequest,
  type AlterClientQuotasResponse,
} from "../../protocol/message/49_alter_client_quotas.ts";
import { changeProblem, changeQuota, readEntity } from "../client_quotas.ts";
import { refuse } from "../config_target.ts";
import { faultToCode } from "../fault_to_code.ts";
import type { BrokerServices, Handler } from "../handler.ts";
import { inGroups } from "../many.ts";
import type { TopicOutcome } from "../topics.ts";

type Asked = AlterClientQuotasRequest["entries"][number];

async function alter(
  { metadata }: BrokerServices,
  { entity: parts, ops }: Asked,
  validateOnly: boolean,
): Promise<TopicOutcome> {
  const entity = readEntity(parts);
  if (typeof entity === "string") return refuse("INVALID_REQUEST", entity);
  for (const op of ops) {
    const problem = changeProblem(entity, op);
    if (problem !== null) return refuse("INVALID_REQUEST", problem);
  }
  if (validateOnly) return { ok: true };
  try {
    return await changeQuota(metadata, entity, ops) ?? { ok: true };
  } catch (error) {
    return refuse(faultToCode(error, "admin"), "The metadata log cannot be written now");
  }
}

export function alterClientQuotasHandler(
  services: BrokerServices,
): Handler<AlterClientQuotasRequest, AlterClientQuotasResponse> {
  return {
    api: alterClientQuotasApi,
    min: 0,
    max: 1,
    async handle({ entries, validateOnly }) {
      const answers = await inGroups(services.env.clock, entries, async (asked) => {
        const outcome = await alter(services, asked, validateOnly);
        return {
          errorCode: errorCode(outcome.ok ? "NONE" : outcome.error),
          errorMessage: outcome.ok ? null : outcome.message,
          entity: asked.entity,
        };
      });
      return { throttleTimeMs: 0, entries: answers };
    },
  };
}
