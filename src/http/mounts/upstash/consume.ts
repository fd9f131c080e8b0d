/** Consuming: an instance is made by its first request, and its later ones go on where it is. */
import * as v from "valibot";
import {
  HTTP_INSTANCE_IDLE_MS_MAX,
  HTTP_INSTANCE_IDLE_MS_MIN,
  HTTP_INSTANCE_PARTITIONS_MAX,
} from "../../../lib/limits.ts";
import type { ErrorName } from "../../../protocol/error_code.ts";
import { badRequest, ProblemError, problemOf } from "../../problem.ts";
import { parseCount } from "../../query.ts";
import { BYTES_DEFAULT } from "../../read/parameters.ts";
import type { OffsetAt } from "../group_port.ts";
import type { Instance } from "../instances/instance.ts";
import { NoInstance } from "../instances/instances.ts";
import { poll } from "../instances/poll.ts";
import { boundedWait, type InstanceRecord, NEW_INSTANCE, RESETS } from "../instances/record.ts";
import { subscribe } from "../instances/subscribe.ts";
import { count, nameText, partition, readChecked } from "../json_body.ts";
import type { MountServices } from "../mount_services.ts";
import { topicPartitions } from "./fetch.ts";
import { answerMessages } from "./messages.ts";
import { success } from "./shape.ts";

export interface InstanceName {
  readonly group: string;
  readonly instance: string;
}

const WAIT_MS_DEFAULT = 1_000;
/** Its clients say nothing about it, and a worker may come back after a while. */
const SESSION_MS_DEFAULT = 120_000;

const consumeBody = v.strictObject({
  topic: v.optional(nameText),
  topics: v.optional(v.pipe(v.array(nameText), v.maxLength(HTTP_INSTANCE_PARTITIONS_MAX))),
  timeout: v.optional(count),
});
const offsetAt = v.strictObject({
  topic: nameText,
  partition,
  offset: count,
  metadata: v.optional(v.nullable(v.string())),
});
const commitBody = v.pipe(
  v.union([v.pipe(offsetAt, v.transform((one) => [one])), v.array(offsetAt)]),
  v.maxLength(HTTP_INSTANCE_PARTITIONS_MAX),
);

function countHeader({ headers }: Request, header: string, fallback: number): number {
  const text = headers.get(header);
  return text === null ? fallback : parseCount(text, header);
}

/** They count when the instance is made. */
function toldBy(request: Request): Omit<InstanceRecord, "node"> {
  const { headers } = request;
  const autoCommit = headers.get("kafka-enable-auto-commit") ?? "true";
  const reset = headers.get("kafka-auto-offset-reset") ?? "latest";
  if (autoCommit !== "true" && autoCommit !== "false") {
    throw badRequest("Cannot use Kafka-Enable-Auto-Commit: not true or false");
  }
  const known = RESETS.find((one) => one === reset);
  if (known === undefined) {
    throw badRequest(`Cannot use Kafka-Auto-Offset-Reset: not ${RESETS.join(" or ")}`);
  }
  const idleMs = countHeader(request, "kafka-session-timeout-ms", SESSION_MS_DEFAULT);
  return {
    ...NEW_INSTANCE,
    format: "text",
    autoCommit: autoCommit === "true",
    commitIntervalMs: countHeader(request, "kafka-auto-commit-interval", 5_000),
    reset: known,
    idleMs: Math.min(HTTP_INSTANCE_IDLE_MS_MAX, Math.max(HTTP_INSTANCE_IDLE_MS_MIN, idleMs)),
  };
}

async function findOrMake(
  { instances }: MountServices,
  request: Request,
  { group, instance }: InstanceName,
): Promise<Instance> {
  const told = toldBy(request);
  return await instances.create(group, instance, told) ?? instances.find(group, instance);
}

export async function consume(
  services: MountServices,
  request: Request,
  named: InstanceName,
  fromPath: { readonly topic: string; readonly timeoutMs: number | null } | null,
): Promise<Response> {
  const { instances, gateway, groups, env: { clock } } = services;
  const asked = await readChecked(request, services.rooms, consumeBody) ?? {};
  const topics = fromPath !== null
    ? [fromPath.topic]
    : [...asked.topic === undefined ? [] : [asked.topic], ...asked.topics ?? []];
  if (topics.length === 0) throw badRequest("Cannot consume: name a topic, or topics");
  const waitMs = fromPath?.timeoutMs ?? asked.timeout ?? WAIT_MS_DEFAULT;
  const instance = await findOrMake(services, request, named);
  return await instances.inTurn(instance, request.signal, async () => {
    await subscribe(services, instance, { topics: [...new Set(topics)].toSorted() });
    const polled = await poll({ gateway, groups, instances, clock }, instance, {
      waitMs: boundedWait(waitMs),
      bytesMax: BYTES_DEFAULT,
      signal: request.signal,
      canShow: () => true,
    });
    if (polled.ok) {
      return answerMessages(polled.records, { request, clock, release: polled.release });
    }
    if (!("stuckAt" in polled)) throw new ProblemError(problemOf(polled));
    const { place: { topic, partition: at }, offset } = polled.stuckAt;
    throw badRequest(
      `Cannot show offset ${offset} of partition ${at} of ${topic}: it is too large; commit ${
        offset + 1
      } to go on behind it`,
    );
  });
}

function refuseFirst(errors: readonly ErrorName[]): void {
  const error = errors.find((one) => one !== "NONE");
  if (error !== undefined) throw new ProblemError(problemOf({ ok: false, error }));
}

/** Offsets are the group's: one may be committed also where the instance has ended meanwhile. */
async function commitOffsets(
  { instances, groups }: MountServices,
  { group, instance: name_ }: InstanceName,
  offsets: readonly OffsetAt[],
): Promise<void> {
  try {
    const instance = instances.find(group, name_);
    refuseFirst(await instance.commit(offsets));
    for (const { topic, partition: at } of offsets) instance.places.chosen(topic, at);
  } catch (error) {
    if (!(error instanceof NoInstance)) throw error;
    refuseFirst(await groups.commit({ group, member: null }, offsets));
  }
}

export async function commit(
  services: MountServices,
  request: Request,
  named: InstanceName,
): Promise<Response> {
  const { instances } = services;
  const given = await readChecked(request, services.rooms, commitBody);
  if (given !== null && given.length > 0) {
    const offsets = given.map((one) => ({ ...one, metadata: one.metadata ?? "" }));
    await commitOffsets(services, named, offsets);
    return success();
  }
  const instance = instances.find(named.group, named.instance);
  return await instances.inTurn(instance, request.signal, async () => {
    const error = await instance.commitGiven();
    if (error !== null) throw new ProblemError(problemOf({ ok: false, error }));
    return success();
  });
}

/** In the order of the question; -1 is Kafka's own word for none. */
export async function committed(
  { groups, rooms }: MountServices,
  request: Request,
  { group }: InstanceName,
): Promise<Response> {
  const of = await readChecked(request, rooms, topicPartitions);
  const found = await groups.committed(group, of);
  if (!found.ok) throw new ProblemError(problemOf(found));
  const shown = ({ topic, partition: at, offset }: Omit<OffsetAt, "metadata">) => ({
    topic,
    partition: at,
    offset,
  });
  if (of === null) return Response.json(found.offsets.map(shown));
  return Response.json(of.map((asked) =>
    shown(
      found.offsets.find((one) => one.topic === asked.topic && one.partition === asked.partition) ??
        { ...asked, offset: -1 },
    )
  ));
}
