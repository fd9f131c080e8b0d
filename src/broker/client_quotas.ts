/**
 * Client quotas as they are stored: limits of users, client ids, pairs of both, and addresses, with null for
 * the default of a type. Nothing is slowed down by them yet.
 *
 *     key     kafka/quota/ and the entity: a JSON array of [type, name] pairs, in order of their types
 *     value   a JSON object of texts: limits by name
 */
import { QUOTA_ENTITIES_MAX } from "../lib/limits.ts";
import type { MetadataStore } from "../controller/metadata_store.ts";
import { changeKv, type KvRefused, readTexts } from "./metadata_kv.ts";

const PREFIX = "kafka/quota/";

/** By type; null is the default of the type. */
export type Entity = ReadonlyMap<string, string | null>;

export interface EntityPart {
  readonly entityType: string;
  readonly entityName: string | null;
}

export interface QuotaChange {
  readonly key: string;
  readonly value: number;
  readonly remove: boolean;
}

type NumberKind = "double" | "integer";

const CLIENT_LIMITS: ReadonlyMap<string, NumberKind> = new Map([
  ["consumer_byte_rate", "integer"],
  ["controller_mutation_rate", "double"],
  ["producer_byte_rate", "integer"],
  ["request_percentage", "double"],
]);
const ADDRESS_LIMITS: ReadonlyMap<string, NumberKind> = new Map([
  ["connection_creation_rate", "integer"],
]);

export const ENTITY_TYPES: ReadonlySet<string> = new Set(["user", "client-id", "ip"]);

const ADDRESS = /^(?:\d{1,3}(?:\.\d{1,3}){3}|[0-9a-fA-F:.]*:[0-9a-fA-F:.]*)$/;
/** Kafka's tolerance for whole numbers that come as doubles. */
const EPSILON = 1e-6;

/** The entity, or what is wrong with it. */
export function readEntity(parts: readonly EntityPart[]): Entity | string {
  const entity = new Map<string, string | null>();
  for (const { entityType, entityName } of parts) {
    if (!ENTITY_TYPES.has(entityType)) {
      return `Unhandled client quota entity type: ${entityType.slice(0, 60)}`;
    }
    if (entityName === "") return `Empty ${entityType} not supported`;
    if (entity.has(entityType)) {
      return `Invalid client quota entity, contains duplicate entity type ${entityType}`;
    }
    entity.set(entityType, entityName);
  }
  if (entity.size === 0) return "Invalid empty client quota entity";
  const address = entity.get("ip");
  if (address === undefined) return entity;
  if (entity.size > 1) {
    return "Invalid quota entity combination, IP entity should not be combined with User or ClientId";
  }
  return address === null || ADDRESS.test(address) ? entity : `${address} is not a valid IP`;
}

/** What is wrong with a change, or null. */
export function changeProblem(entity: Entity, { key, value, remove }: QuotaChange): string | null {
  const kind = (entity.has("ip") ? ADDRESS_LIMITS : CLIENT_LIMITS).get(key);
  if (kind === undefined) return `Invalid configuration key ${key.slice(0, 60)}`;
  if (remove) return null;
  if (!Number.isFinite(value) || value <= 0) return `Quota ${key} must be greater than 0`;
  return kind === "integer" && Math.abs(Math.round(value) - value) > EPSILON
    ? `${key} cannot be a fractional value.`
    : null;
}

function keyOf(entity: Entity): string {
  return PREFIX + JSON.stringify([...entity].toSorted(([a], [b]) => a < b ? -1 : 1));
}

function isPair(one: unknown): one is readonly [string, string | null] {
  return Array.isArray(one) && typeof one[0] === "string" &&
    (one[1] === null || typeof one[1] === "string");
}

/** Null for what this build did not write. */
function entityOf(key: string): Entity | null {
  try {
    const pairs: unknown = JSON.parse(key.slice(PREFIX.length));
    return Array.isArray(pairs) && pairs.every(isPair) ? new Map(pairs) : null;
  } catch {
    return null;
  }
}

export interface StoredQuota {
  readonly entity: Entity;
  readonly limits: ReadonlyMap<string, number>;
}

export function storedQuotas(metadata: MetadataStore): StoredQuota[] {
  const found: StoredQuota[] = [];
  for (const [key, { value }] of metadata.view().kv.entries()) {
    if (!key.startsWith(PREFIX)) continue;
    const entity = entityOf(key);
    if (entity === null) continue;
    const limits = Object.entries(readTexts(value)).map(([name, text]): [string, number] => [
      name,
      Number(text),
    ]);
    found.push({ entity, limits: new Map(limits) });
  }
  return found;
}

function isOneTooMany(metadata: MetadataStore, key: string): boolean {
  const { kv } = metadata.view();
  if (kv.has(key) || kv.size < QUOTA_ENTITIES_MAX) return false;
  const stored = [...kv.entries()].filter(([one]) => one.startsWith(PREFIX));
  return stored.length >= QUOTA_ENTITIES_MAX;
}

/** Both checked before. The last change of a limit counts. Throws FaultError. */
export async function changeQuota(
  metadata: MetadataStore,
  entity: Entity,
  changes: readonly QuotaChange[],
): Promise<KvRefused | null> {
  const key = keyOf(entity);
  if (changes.some(({ remove }) => !remove) && isOneTooMany(metadata, key)) {
    const message = `There are quotas for ${QUOTA_ENTITIES_MAX} entities already`;
    return { ok: false, error: "POLICY_VIOLATION", message };
  }
  return await changeKv(metadata, key, (value) => {
    const limits = new Map(Object.entries(readTexts(value)));
    for (const { key: name, value: limit, remove } of changes) {
      if (remove) limits.delete(name);
      else limits.set(name, String(limit));
    }
    return limits.size === 0 ? null : JSON.stringify(Object.fromEntries(limits));
  });
}
