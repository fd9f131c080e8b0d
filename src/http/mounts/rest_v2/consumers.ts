/** Instances of consumers: made, subscribed or given partitions, and ended. */
import * as v from "valibot";
import { randomUuid } from "../../../env/random.ts";
import {
  HTTP_INSTANCE_PARTITIONS_MAX,
  HTTP_READ_BYTES_MAX,
  HTTP_WAIT_MS_MAX,
} from "../../../lib/limits.ts";
import { uuidOf } from "../../../lib/uuid.ts";
import type { Instance } from "../instances/instance.ts";
import { FORMATS, type InstanceRecord, NEW_INSTANCE, RESETS } from "../instances/record.ts";
import { assign, subscribe, unsubscribe } from "../instances/subscribe.ts";
import { nameText, partition, readChecked } from "../json_body.ts";
import type { MountServices } from "../mount_services.ts";
import { type Dialect, dialectOf } from "./dialect.ts";
import { publicUrl } from "./public_url.ts";
import { noContent, restError, v2Json } from "./shape.ts";

export interface Path {
  readonly group: string;
  readonly instance: string;
}

const NAME_TAKEN = 40_902;
const ILLEGAL_STATE = 40_903;
const BAD_CONFIG = 42_204;
/** Polls of Strimzi's bridge wait no longer by themselves. */
const STRIMZI_WAIT_MS = 100;

/** Some clients write all settings as texts. */
const flag = v.pipe(
  v.union([v.boolean(), v.picklist(["true", "false"])]),
  v.transform((value) => value === true || value === "true"),
);
const number = v.pipe(
  v.union([v.number(), v.pipe(v.string(), v.regex(/^-?\d{1,15}$/), v.transform(Number))]),
  v.safeInteger(),
  v.minValue(-1),
);

const creation = v.strictObject({
  name: v.optional(v.nullable(nameText), null),
  id: v.optional(v.nullable(nameText), null),
  format: v.optional(v.nullable(v.picklist([...FORMATS, "avro", "jsonschema", "protobuf"])), null),
  "auto.offset.reset": v.optional(v.nullable(v.picklist(RESETS))),
  "auto.commit.enable": v.optional(v.nullable(flag)),
  "enable.auto.commit": v.optional(v.nullable(flag)),
  "fetch.min.bytes": v.optional(v.nullable(number)),
  responseMinBytes: v.optional(v.nullable(number)),
  "consumer.request.timeout.ms": v.optional(v.nullable(number)),
  requestWaitMs: v.optional(v.nullable(number)),
  "isolation.level": v.optional(v.nullable(v.picklist(["read_uncommitted", "read_committed"]))),
});
type Creation = v.InferOutput<typeof creation>;

/** Settings that only Strimzi's clients send, or a format that only its bridge has. */
function dialectBy(asked: Creation): Dialect {
  const isStrimzi = asked["enable.auto.commit"] != null || asked["isolation.level"] != null ||
    asked.format === "text";
  return isStrimzi ? "strimzi" : "confluent";
}

function toldBy(asked: Creation, dialect: Dialect): Omit<InstanceRecord, "node"> {
  const { format } = asked;
  const known = FORMATS.find((one) => one === (format ?? "binary"));
  if (known === undefined) {
    throw restError(
      BAD_CONFIG,
      `Cannot use the format ${format}: there is no schema registry behind this node`,
    );
  }
  const waitMs = asked["consumer.request.timeout.ms"] ?? asked.requestWaitMs ??
    (dialect === "strimzi" ? STRIMZI_WAIT_MS : NEW_INSTANCE.waitMs);
  const minBytes = asked["fetch.min.bytes"] ?? asked.responseMinBytes ?? 1;
  return {
    ...NEW_INSTANCE,
    dialect,
    format: known,
    reset: asked["auto.offset.reset"] ?? NEW_INSTANCE.reset,
    autoCommit: asked["auto.commit.enable"] ?? asked["enable.auto.commit"] ?? true,
    waitMs: Math.min(HTTP_WAIT_MS_MAX, Math.max(0, waitMs)),
    minBytes: Math.min(HTTP_READ_BYTES_MAX, Math.max(1, minBytes)),
    committedOnly: asked["isolation.level"] === "read_committed",
  };
}

export async function createInstance(
  services: MountServices,
  request: Request,
  group: string,
): Promise<Response> {
  const { instances, env } = services;
  const asked = await readChecked(request, services.rooms, creation) ?? v.parse(creation, {});
  const dialect = dialectOf(request, dialectBy(asked));
  const name = asked.name ?? asked.id ?? `rest-consumer-${uuidOf(randomUuid(env.random))}`;
  if (await instances.create(group, name, toldBy(asked, dialect)) === null) {
    throw restError(NAME_TAKEN, `Cannot make instance ${name}: there is one already`);
  }
  const base = publicUrl(request, "/consumers/");
  const path = `/consumers/${encodeURIComponent(group)}/instances/${encodeURIComponent(name)}`;
  return v2Json({ instance_id: name, base_uri: `${base}${path}` });
}

/** Runs in the instance's turn. Throws NoInstance. */
export async function inTurn(
  { instances }: MountServices,
  request: Request,
  { group, instance: name }: Path,
  work: (instance: Instance) => Promise<Response>,
): Promise<Response> {
  const instance = instances.find(group, name);
  return await instances.inTurn(instance, request.signal, () => work(instance));
}

export function deleteInstance(
  services: MountServices,
  request: Request,
  path: Path,
): Promise<Response> {
  return inTurn(services, request, path, async (instance) => {
    await services.instances.end(instance);
    return noContent();
  });
}

const topics = v.pipe(v.array(nameText), v.minLength(1), v.maxLength(HTTP_INSTANCE_PARTITIONS_MAX));
const subscription = v.strictObject({
  topics: v.optional(v.nullable(topics), null),
  topic_pattern: v.optional(v.nullable(nameText), null),
});

export async function setSubscription(
  services: MountServices,
  request: Request,
  path: Path,
): Promise<Response> {
  const asked = await readChecked(request, services.rooms, subscription);
  const { topics: names = null, topic_pattern: pattern = null } = asked ?? {};
  if ((names === null) === (pattern === null)) {
    throw restError(ILLEGAL_STATE, "Cannot subscribe: name either topics or a topic_pattern");
  }
  return await inTurn(services, request, path, async (instance) => {
    const { subscription: before } = instance.record;
    if (before !== null && "partitions" in before) {
      throw restError(ILLEGAL_STATE, "Cannot subscribe: partitions are assigned by hand");
    }
    const wanted = names === null
      ? { pattern: pattern! }
      : { topics: [...new Set(names)].toSorted() };
    await subscribe(services, instance, wanted);
    return noContent();
  });
}

function byTopic(instance: Instance): Map<string, number[]> {
  const found = new Map<string, number[]>();
  for (const { topic, partition: at } of instance.places.list) {
    found.set(topic, [...found.get(topic) ?? [], at].toSorted((a, b) => a - b));
  }
  return found;
}

/** What a pattern means is known by what it was given. */
export async function getSubscription(services: MountServices, path: Path): Promise<Response> {
  const instance = services.instances.find(path.group, path.instance);
  const { subscription: of, dialect } = instance.record;
  // After a restart it has nothing in memory before it has said that it is there.
  if (instance.subscription !== null && !instance.isMember) await instance.beat();
  const given = byTopic(instance);
  const names = of === null || "partitions" in of
    ? []
    : "topics" in of
    ? of.topics
    : [...given.keys()].toSorted();
  if (dialect !== "strimzi") return v2Json({ topics: names });
  const partitions = names.filter((topic) => given.has(topic))
    .map((topic) => Object.fromEntries([[topic, given.get(topic)]]));
  return v2Json({ topics: names, partitions });
}

export function deleteSubscription(
  services: MountServices,
  request: Request,
  path: Path,
): Promise<Response> {
  return inTurn(services, request, path, async (instance) => {
    await unsubscribe(services, instance);
    return noContent();
  });
}

export const place = v.strictObject({ topic: nameText, partition });
export const places = v.pipe(v.array(place), v.maxLength(HTTP_INSTANCE_PARTITIONS_MAX));
const assignment = v.strictObject({ partitions: places });

export async function setAssignments(
  services: MountServices,
  request: Request,
  path: Path,
): Promise<Response> {
  const asked = await readChecked(request, services.rooms, assignment);
  if (asked === null) throw restError(400, "Cannot assign: the body is empty", 400);
  return await inTurn(services, request, path, async (instance) => {
    if (instance.subscription !== null) {
      throw restError(ILLEGAL_STATE, "Cannot assign partitions: topics are subscribed to");
    }
    await assign(services, instance, asked.partitions);
    return noContent();
  });
}

export async function getAssignments(services: MountServices, path: Path): Promise<Response> {
  const instance = services.instances.find(path.group, path.instance);
  if (instance.subscription !== null && !instance.isMember) await instance.beat();
  const { subscription: of } = instance.record;
  const own = of !== null && "partitions" in of ? of.partitions : instance.places.list;
  return v2Json({
    partitions: own.map(({ topic, partition: at }) => ({ topic, partition: at })),
  });
}
