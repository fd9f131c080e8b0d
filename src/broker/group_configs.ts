/**
 * Settings of single groups (KIP-848, KIP-932): they live in the metadata, one value for each group, and stand
 * above the broker's. A group may have settings before there is a group.
 *
 *     key     kafka/config/group/ and the group id
 *     value   a JSON object of texts by property name
 */
import { GROUP_CONFIGS_MAX } from "../lib/limits.ts";
import { areSameTexts } from "../lib/texts.ts";
import type { MetadataStore } from "../controller/metadata_store.ts";
import type { BrokerConfig } from "./broker_config.ts";
import { GROUP_PROPERTIES, type GroupProperty } from "./group_properties.ts";
import { changeKv, type KvRefused, readTexts, type Texts } from "./metadata_kv.ts";
import { checkProperty, numberOf } from "./property.ts";
import type { ConfigSynonym } from "./topic_config.ts";

const PREFIX = "kafka/config/group/";

type Changes = Readonly<Record<string, string | null>>;

export interface GroupConfigServices {
  readonly metadata: MetadataStore;
  readonly config: BrokerConfig;
}

/** What is set for one group; keys of a build that knows other properties stay as they are. */
export function groupSettings(metadata: MetadataStore, groupId: string): Texts {
  return readTexts(metadata.view().kv.get(PREFIX + groupId)?.value ?? null);
}

/** Groups that something is set for. */
export function configuredGroups(metadata: MetadataStore): string[] {
  return [...metadata.view().kv.entries()]
    .flatMap(([key]) => key.startsWith(PREFIX) ? [key.slice(PREFIX.length)] : []);
}

/** The value that holds, and whether the group has set it: Kafka calls all others a default. */
export function groupValue(
  { metadata, config }: GroupConfigServices,
  groupId: string,
  property: GroupProperty,
): ConfigSynonym {
  const { name, broker, fallback } = property;
  const own = groupSettings(metadata, groupId)[name];
  if (own !== undefined && checkProperty(property, own).ok) {
    return { name, value: own, source: "group" };
  }
  return { name, value: broker === null ? fallback : config.text(broker), source: "default" };
}

export function groupText(services: GroupConfigServices, groupId: string, name: string): string {
  const property = GROUP_PROPERTIES.get(name);
  return property === undefined ? "" : groupValue(services, groupId, property).value;
}

export function groupInteger(
  services: GroupConfigServices,
  groupId: string,
  name: string,
): number {
  return numberOf(groupText(services, groupId, name));
}

function refuse(message: string): KvRefused {
  return { ok: false, error: "INVALID_CONFIG", message };
}

/** As they will be: what is not set counts with the broker's value. */
function valuesAfter({ config }: GroupConfigServices, set: Texts): (name: string) => number {
  return (name) => {
    const { broker, fallback } = GROUP_PROPERTIES.get(name)!;
    return numberOf(set[name] ?? (broker === null ? fallback : config.text(broker)));
  };
}

/** Kafka looks at all that will be set, not only at what changes. */
function boundsProblem(services: GroupConfigServices, set: Texts): string | null {
  const { config } = services;
  for (const { name, bounds } of GROUP_PROPERTIES.values()) {
    const text = set[name];
    if (bounds === null || text === undefined) continue;
    if (numberOf(text) < config.integer(bounds.min)) {
      return `${name} must be greater than or equal to ${bounds.min}`;
    }
    if (numberOf(text) > config.integer(bounds.max)) {
      return `${name} must be less than or equal to ${bounds.max}`;
    }
  }
  const valueOf = valuesAfter(services, set);
  for (const kind of ["consumer", "share"]) {
    const [session, heartbeat] = [`${kind}.session.timeout.ms`, `${kind}.heartbeat.interval.ms`];
    if (set[session] === undefined && set[heartbeat] === undefined) continue;
    if (valueOf(session) <= valueOf(heartbeat)) {
      return `${session} must be greater than ${heartbeat}`;
    }
  }
  return null;
}

/** A group's settings with the changes made, in canonical form, or what is wrong with them. */
function decided(
  services: GroupConfigServices,
  before: Texts,
  changes: Changes,
): { readonly values: Texts } | KvRefused {
  const values: Record<string, string> = { ...before };
  for (const [name, text] of Object.entries(changes)) {
    if (text === null) {
      delete values[name];
      continue;
    }
    const property = GROUP_PROPERTIES.get(name);
    if (property === undefined) return refuse(`Unknown group config name: ${name.slice(0, 200)}`);
    const checked = checkProperty(property, text);
    if (!checked.ok) return refuse(checked.message);
    values[name] = checked.value;
  }
  const problem = boundsProblem(services, values);
  return problem === null ? { values } : refuse(problem);
}

function isOneTooMany(metadata: MetadataStore, groupId: string): boolean {
  const { kv } = metadata.view();
  if (kv.has(PREFIX + groupId) || kv.size < GROUP_CONFIGS_MAX) return false;
  return configuredGroups(metadata).length >= GROUP_CONFIGS_MAX;
}

/**
 * Null removes a setting. All of the changes are made, or none; "stale", and nothing is done, when other settings than
 * `seen` are there by now. Throws FaultError; null when it is done.
 */
export async function changeGroupSettings(
  services: GroupConfigServices,
  groupId: string,
  changes: Changes,
  { seen, validateOnly }: { readonly seen: Texts; readonly validateOnly: boolean },
): Promise<KvRefused | "stale" | null> {
  const { metadata } = services;
  const wanted = decided(services, seen, changes);
  if (!("values" in wanted)) return wanted;
  const texts = Object.keys(wanted.values).length === 0 ? null : JSON.stringify(wanted.values);
  if (texts !== null && isOneTooMany(metadata, groupId)) {
    const message = `There are settings of ${GROUP_CONFIGS_MAX} groups already`;
    return { ok: false, error: "POLICY_VIOLATION", message };
  }
  if (validateOnly) return null;
  let isStale = false;
  const refused = await changeKv(metadata, PREFIX + groupId, (value) => {
    isStale = !areSameTexts(readTexts(value), seen);
    return isStale ? value : texts;
  });
  return isStale ? "stale" : refused;
}
