/** Records for an instance, its commits, and where it goes on. */
import * as v from "valibot";
import {
  HTTP_INSTANCE_PARTITIONS_MAX,
  HTTP_INSTANCE_SEEKS_MAX,
  HTTP_READ_BYTES_MAX,
} from "../../../lib/limits.ts";
import type { ErrorName } from "../../../protocol/error_code.ts";
import { ProblemError, problemOf } from "../../problem.ts";
import { parameter, parseCount, queryOf } from "../../query.ts";
import { BYTES_DEFAULT } from "../../read/parameters.ts";
import { jsonText, parseJson } from "../../json_text.ts";
import { toUtf8 } from "../../../lib/bytes.ts";
import type { OffsetAt, Place, TopicPartition } from "../group_port.ts";
import type { Instance } from "../instances/instance.ts";
import { isolationOf, poll } from "../instances/poll.ts";
import { boundedWait } from "../instances/record.ts";
import { place as placeByHand } from "../instances/subscribe.ts";
import { checked, count, nameText, partition, readChecked } from "../json_body.ts";
import type { MountServices } from "../mount_services.ts";
import { inTurn, type Path, places } from "./consumers.ts";
import { expectFormat } from "./formats.ts";
import { answerRecords, canShowRecord } from "./records.ts";
import { noContent, restError, v2Json } from "./shape.ts";
import { cannotShow } from "./topics.ts";

const ILLEGAL_STATE = 40_903;

function countOf(query: URLSearchParams, named: string): number | null {
  const text = parameter(query, named);
  return text === null ? null : parseCount(text, named);
}

export function getRecords(
  services: MountServices,
  request: Request,
  path: Path,
): Promise<Response> {
  const { gateway, groups, instances, env: { clock } } = services;
  const query = queryOf(request);
  const timeoutMs = countOf(query, "timeout");
  const bytesMax = Math.min(countOf(query, "max_bytes") ?? BYTES_DEFAULT, HTTP_READ_BYTES_MAX);
  return inTurn(services, request, path, async (instance) => {
    const { format, subscription, waitMs, dialect } = instance.record;
    expectFormat(request, format);
    if (subscription === null) {
      throw restError(ILLEGAL_STATE, "Cannot read: the instance has no topics and no partitions");
    }
    const polled = await poll({ gateway, groups, instances, clock }, instance, {
      waitMs: boundedWait(timeoutMs ?? waitMs),
      bytesMax: Math.max(1, bytesMax),
      signal: request.signal,
      canShow: (record) => canShowRecord(record, format),
    });
    if (polled.ok) {
      const { records, release } = polled;
      const hasMore = dialect === "strimzi";
      return answerRecords(records, { format, hasMore, request, clock, release });
    }
    if (!("stuckAt" in polled)) throw new ProblemError(problemOf(polled));
    const { place, offset } = polled.stuckAt;
    throw cannotShow(place.topic, place.partition, offset, format);
  });
}

const offsetAt = v.strictObject({
  topic: nameText,
  partition,
  offset: count,
  metadata: v.optional(v.nullable(v.string())),
});
const offsetsAt = v.pipe(v.array(offsetAt), v.maxLength(HTTP_INSTANCE_PARTITIONS_MAX));
const commitBody = v.strictObject({
  offsets: v.optional(v.nullable(offsetsAt), null),
  /** As Redpanda's proxy calls them. */
  partitions: v.optional(v.nullable(offsetsAt), null),
});

function refuseFirst(errors: readonly ErrorName[]): void {
  const error = errors.find((one) => one !== "NONE");
  if (error !== undefined) throw new ProblemError(problemOf({ ok: false, error }));
}

async function commitGiven(instance: Instance): Promise<void> {
  const error = await instance.commitGiven();
  if (error !== null) refuseFirst([error]);
}

/**
 * Confluent's proxy takes the offset of the last record that is done and commits the one behind it; the others
 * commit what they are told.
 */
export async function commitOffsets(
  services: MountServices,
  request: Request,
  path: Path,
): Promise<Response> {
  const asked = await readChecked(request, services.rooms, commitBody);
  const given = asked?.offsets ?? asked?.partitions ?? null;
  return await inTurn(services, request, path, async (instance) => {
    const isConfluent = instance.record.dialect === "confluent" && asked?.partitions == null;
    if (given === null) await commitGiven(instance);
    else {
      const offsets = given.map((one): OffsetAt => ({
        ...one,
        offset: one.offset + (isConfluent ? 1 : 0),
        metadata: one.metadata ?? "",
      }));
      refuseFirst(await instance.commit(offsets));
      for (const { topic, partition: at } of offsets) instance.places.chosen(topic, at);
    }
    // The list that it answers is always empty.
    return isConfluent ? v2Json([]) : noContent();
  });
}

const committedBody = v.strictObject({ partitions: places });

async function answerCommitted(
  { groups }: MountServices,
  { group }: Path,
  of: readonly TopicPartition[],
): Promise<Response> {
  const found = await groups.committed(group, of);
  if (!found.ok) throw new ProblemError(problemOf(found));
  return v2Json({ offsets: found.offsets });
}

/** The question stands in the body, or in the query: not every client can send a body with GET. */
export async function committedOffsets(
  services: MountServices,
  request: Request,
  path: Path,
): Promise<Response> {
  services.instances.find(path.group, path.instance);
  const text = parameter(queryOf(request), "partitions");
  const asked = text === null ? await readChecked(request, services.rooms, committedBody) : {
    partitions: checked(places, parseJson(jsonText(toUtf8(text)), "partitions"), "partitions"),
  };
  if (asked === null) {
    throw restError(
      400,
      "Cannot look: name partitions in ?partitions=, or POST offsets:query",
      400,
    );
  }
  return await answerCommitted(services, path, asked.partitions);
}

/** Those that it has here and now: a member is asked to say that it is there first. */
async function hold({ gateway }: MountServices, instance: Instance): Promise<void> {
  const { subscription } = instance.record;
  if (subscription !== null && "partitions" in subscription && instance.places.size === 0) {
    placeByHand({ gateway }, instance, subscription.partitions);
  } else if (subscription !== null && !instance.isMember) await instance.beat();
}

function placeOf(instance: Instance, { topic, partition: at }: TopicPartition): Place {
  const found = instance.places.list.find((one) => one.topic === topic && one.partition === at);
  if (found !== undefined) return found;
  throw restError(ILLEGAL_STATE, `Cannot move in partition ${at} of ${topic}: it is not its own`);
}

interface Jump extends TopicPartition {
  readonly offset: number;
}

/** They are kept in the bucket first, so that they hold after a restart. */
async function jump(
  { instances }: MountServices,
  instance: Instance,
  jumps: readonly Jump[],
): Promise<Response> {
  const isSame = (a: TopicPartition, b: TopicPartition) =>
    a.topic === b.topic && a.partition === b.partition;
  const others = instance.record.seeks.filter((one) => !jumps.some((other) => isSame(one, other)));
  const seeks = [
    ...others,
    ...jumps.map(({ topic, partition: at, offset }) => ({ topic, partition: at, offset })),
  ];
  if (seeks.length > HTTP_INSTANCE_SEEKS_MAX) {
    throw restError(422, `Cannot keep more than ${HTTP_INSTANCE_SEEKS_MAX} positions`, 422);
  }
  await instances.change(instance, { seeks });
  for (const { topic, partition: at, offset } of jumps) instance.places.jump(topic, at, offset);
  return noContent();
}

const time = v.pipe(
  v.union([
    count,
    v.pipe(v.string(), v.isoTimestamp(), v.transform((text) => new Date(text).getTime())),
  ]),
);
const seekBody = v.strictObject({
  offsets: v.optional(offsetsAt, []),
  timestamps: v.optional(
    v.pipe(
      v.array(v.strictObject({
        topic: nameText,
        partition,
        timestamp: time,
        metadata: v.optional(v.nullable(v.string())),
      })),
      v.maxLength(HTTP_INSTANCE_PARTITIONS_MAX),
    ),
    [],
  ),
});

async function offsetFor(
  { gateway }: MountServices,
  request: Request,
  instance: Instance,
  at: Place,
  timestampMs: number,
): Promise<number> {
  const page = await gateway.read(at.topic, at.partition, {
    offset: { timestampMs },
    recordsMax: 1,
    bytesMax: 1,
    recordBytesMax: Infinity,
    waitMs: 0,
    isolation: isolationOf(instance),
    signal: request.signal,
  });
  if (!page.ok) throw new ProblemError(problemOf(page));
  page.release();
  return page.records[0]?.offset ?? page.next;
}

export async function seek(
  services: MountServices,
  request: Request,
  path: Path,
): Promise<Response> {
  const asked = await readChecked(request, services.rooms, seekBody);
  if (asked === null) throw restError(400, "Cannot move: the body is empty", 400);
  return await inTurn(services, request, path, async (instance) => {
    await hold(services, instance);
    const jumps: Jump[] = [];
    for (const one of asked.offsets) {
      jumps.push({ ...placeOf(instance, one), offset: one.offset });
    }
    for (const one of asked.timestamps) {
      const at = placeOf(instance, one);
      jumps.push({
        ...at,
        offset: await offsetFor(services, request, instance, at, one.timestamp),
      });
    }
    return await jump(services, instance, jumps);
  });
}

export async function seekToBound(
  services: MountServices,
  request: Request,
  path: Path,
  bound: "earliest" | "latest",
): Promise<Response> {
  const asked = await readChecked(request, services.rooms, committedBody);
  if (asked === null) throw restError(400, "Cannot move: the body is empty", 400);
  return await inTurn(services, request, path, async (instance) => {
    await hold(services, instance);
    const jumps: Jump[] = [];
    for (const one of asked.partitions) {
      const at = placeOf(instance, one);
      const isolation = isolationOf(instance);
      const bounds = await services.gateway.bounds(at.topicId, at.partition, isolation);
      if (!bounds.ok) throw new ProblemError(problemOf(bounds));
      jumps.push({ ...at, offset: bounds[bound] });
    }
    return await jump(services, instance, jumps);
  });
}
