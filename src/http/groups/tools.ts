/** What tools ask about groups: lists, descriptions, offsets, lag; and what they set and delete. */
import {
  type LeaseWindow,
  nextOf,
  type SpanState,
  windowAt,
} from "../../broker/group/lease/window.ts";
import type { LeaseChange, LeasedPartition } from "../../broker/group/lease/leases.ts";
import { isFault } from "../../lib/errors.ts";
import { ProblemError, problemOf, problemResponse } from "../problem.ts";
import { answerOf, chunksOf } from "../answer.ts";
import { topicOf } from "../read/positions.ts";
import type { HttpServices } from "../services.ts";
import type { OffsetsBody } from "./bodies.ts";
import type { GroupShown, OffsetRow } from "./lease_port.ts";
import { endOf } from "./partitions.ts";
import { expectUsable, faultOf, openGroup } from "./refused.ts";

/** What an offset takes up in the memory of groups, about. */
const OFFSET_BYTES = 512;

async function shown({ groups }: HttpServices, group: string): Promise<GroupShown> {
  const found = await groups.describe(group);
  if (found.ok) return found;
  throw new ProblemError(problemOf(found));
}

export async function listGroups(services: HttpServices, request: Request): Promise<Response> {
  const found = await services.groups.list();
  if (!found.ok) return problemResponse(problemOf(found));
  const { groups } = found;
  function* pieces(): Generator<string, void> {
    yield '{"groups":[';
    for (const [i, row] of groups.entries()) yield (i === 0 ? "" : ",") + JSON.stringify(row);
    yield "]}";
  }
  return answerOf(chunksOf(pieces()), {
    request,
    clock: services.env.clock,
    headers: { "content-type": "application/json" },
    release: () => {},
  });
}

/** Offsets of a window by what is the matter with them. */
function countOf({ spans }: LeaseWindow, wanted: SpanState): number {
  return spans.reduce(
    (sum, { state, first, last }) => sum + (state === wanted ? last - first + 1 : 0),
    0,
  );
}

async function leasesOf(services: HttpServices, found: GroupShown) {
  const opened = await services.groups.open(found.group);
  if (!opened.ok) return [];
  return found.leased.flatMap((at) => {
    const window = opened.leases.windowOf(at);
    if (window === null || window.spans.length === 0) return [];
    const { topic, partition } = at;
    return [{
      topic,
      partition,
      start: window.start,
      next: nextOf(window),
      leased: countOf(window, "leased"),
      returned: countOf(window, "returned"),
      acknowledged: countOf(window, "done"),
    }];
  });
}

export async function describeGroup(services: HttpServices, group: string): Promise<Response> {
  const found = await shown(services, group);
  const { type, state, protocolType, members } = found;
  const leases = await leasesOf(services, found);
  return Response.json({ group, type, state, protocolType, members, leases });
}

export async function deleteGroup({ groups }: HttpServices, group: string): Promise<Response> {
  const deleted = await groups.delete(group);
  return deleted.ok ? new Response(null, { status: 204 }) : problemResponse(problemOf(deleted));
}

export async function getOffsets(services: HttpServices, group: string): Promise<Response> {
  const { offsets } = await shown(services, group);
  return Response.json({
    offsets: offsets.map(({ topic, partition, offset, metadata, committedAtMs }) => ({
      topic,
      partition,
      offset,
      metadata,
      committedAt: committedAtMs,
    })),
  });
}

/** Null where the end cannot be found out here and now. */
async function lagIn({ gateway }: HttpServices, at: OffsetRow) {
  const { topic, partition, offset } = at;
  const bounds = await gateway.bounds(at.topicId, partition, "uncommitted");
  const end = bounds.ok ? bounds.highWatermark : null;
  const lag = end === null ? null : Math.max(0, end - offset);
  return { topic, partition, committed: offset, end, lag };
}

export async function getLag(
  services: HttpServices,
  request: Request,
  group: string,
): Promise<Response> {
  const { offsets } = await shown(services, group);
  const partitions: Awaited<ReturnType<typeof lagIn>>[] = [];
  // One after the other: each may have to be opened.
  for (const at of offsets) {
    if (request.signal.aborted) break;
    partitions.push(await lagIn(services, at));
  }
  const total = partitions.reduce((sum, { lag }) => sum + (lag ?? 0), 0);
  return Response.json({ lag: total, partitions });
}

function unknownPartition(topic: string, partition: number): ProblemError {
  return new ProblemError(problemOf({
    ok: false,
    error: "UNKNOWN_TOPIC_OR_PARTITION",
    message: `Cannot find partition ${partition} of ${topic}`,
  }));
}

async function offsetAt(
  { gateway }: HttpServices,
  at: LeasedPartition,
  offset: number | "earliest" | "latest",
): Promise<number> {
  if (typeof offset === "number") return offset;
  if (offset === "latest") return await endOf(gateway, at, "uncommitted");
  const bounds = await gateway.bounds(at.topicId, at.partition, "uncommitted");
  if (!bounds.ok) throw new ProblemError(problemOf(bounds));
  return bounds.earliest;
}

/** Sets where the group goes on; what is leased there is given up. */
export async function putOffsets(
  services: HttpServices,
  group: string,
  { offsets }: OffsetsBody,
): Promise<Response> {
  const { gateway, groups } = services;
  const changes = new Map<string, LeaseChange>();
  for (const { topic: name, partition, offset, metadata } of offsets) {
    const { topicId, partitions } = topicOf(gateway, name);
    if (partition >= partitions) throw unknownPartition(name, partition);
    const at = { topic: name, topicId, partition };
    const window = windowAt(topicId, -1, await offsetAt(services, at, offset));
    // The last one counts of a partition that is named again.
    changes.set(`${partition}/${name}`, { at, window, commit: true, metadata });
  }
  const leases = await openGroup(groups, group);
  try {
    if (!leases.hasRoom(OFFSET_BYTES * changes.size)) {
      throw new ProblemError(problemOf({ ok: false, error: "COORDINATOR_NOT_AVAILABLE" }));
    }
    const list = [...changes.values()];
    const durable = leases.change(list);
    leases.wake();
    await durable;
    expectUsable(leases, group);
    return Response.json({
      offsets: list.map(({ at: { topic, partition }, window }) => ({
        topic,
        partition,
        offset: window.start,
      })),
    });
  } catch (error) {
    throw isFault(error) ? faultOf(error) : error;
  }
}
