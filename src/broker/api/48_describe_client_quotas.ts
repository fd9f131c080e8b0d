/**
 * DescribeClientQuotas (key 48), versions 0-1.
 * Behaviour: stored quotas whose entities have all that the filter names; with `strict` nothing else. No
 * component means all. A type that is none is UNSUPPORTED_VERSION, a filter that contradicts itself
 * INVALID_REQUEST, as in Kafka.
 * Deviations: the quotas are kept and shown; nothing is slowed down by them yet.
 * Version notes: 1 flexible.
 */
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import {
  describeClientQuotasApi,
  type DescribeClientQuotasRequest,
  type DescribeClientQuotasResponse,
} from "../../protocol/message/48_describe_client_quotas.ts";
import { type Entity, ENTITY_TYPES, storedQuotas } from "../client_quotas.ts";
import type { BrokerServices, Handler } from "../handler.ts";

type Component = DescribeClientQuotasRequest["components"][number];

interface Problem {
  readonly error: ErrorName;
  readonly message: string;
}

const EXACT = 0;
const DEFAULT = 1;
const ANY = 2;

function invalid(message: string): Problem {
  return { error: "INVALID_REQUEST", message };
}

function componentProblem({ entityType, matchType, match }: Component): Problem | null {
  if (entityType === "") return invalid("Invalid empty entity type.");
  if (!ENTITY_TYPES.has(entityType)) {
    const message = `Unsupported entity type ${entityType.slice(0, 60)}.`;
    return { error: "UNSUPPORTED_VERSION", message };
  }
  if (matchType < EXACT || matchType > ANY) return invalid(`Unknown match type ${matchType}`);
  if (matchType === EXACT) {
    return match === null ? invalid("An exact match needs a name") : null;
  }
  return match === null ? null : invalid("Only an exact match has a name");
}

function filterProblem(components: readonly Component[]): Problem | null {
  for (const component of components) {
    const problem = componentProblem(component);
    if (problem !== null) return problem;
  }
  const types = new Set(components.map(({ entityType }) => entityType));
  if (types.size < components.length) {
    return invalid("An entity type cannot appear more than once in the filter.");
  }
  return types.has("ip") && types.size > 1
    ? invalid(
      "Invalid entity filter component combination, IP filter component should not be used with user or clientId filter component.",
    )
    : null;
}

function isMatched(entity: Entity, { entityType, matchType, match }: Component): boolean {
  const name = entity.get(entityType);
  if (name === undefined) return false;
  if (matchType === ANY) return true;
  return matchType === DEFAULT ? name === null : name === match;
}

export function describeClientQuotasHandler(
  services: BrokerServices,
): Handler<DescribeClientQuotasRequest, DescribeClientQuotasResponse> {
  return {
    api: describeClientQuotasApi,
    min: 0,
    max: 1,
    handle({ components, strict }) {
      const problem = filterProblem(components);
      const found = problem === null ? storedQuotas(services.metadata) : [];
      const entries = found.filter(({ entity }) =>
        components.every((component) => isMatched(entity, component)) &&
        (!strict || entity.size === components.length)
      ).map(({ entity, limits }) => ({
        entity: [...entity].map(([entityType, entityName]) => ({ entityType, entityName })),
        values: [...limits].map(([key, value]) => ({ key, value })),
      }));
      return Promise.resolve({
        throttleTimeMs: 0,
        errorCode: errorCode(problem?.error ?? "NONE"),
        errorMessage: problem?.message ?? null,
        entries: problem === null ? entries : null,
      });
    },
  };
}
