/** Places in a partition, as words of the command line: `earliest`, `latest`, `42`, `-10`, a time. */
import { byLeader, type Cluster, type TopicView } from "./cluster.ts";
import { brokerFault, checkCode } from "./fault.ts";
import { listOffsetsApi } from "../../protocol/message/02_list_offsets.ts";

export const LATEST = -1;
export const EARLIEST = -2;

export type Place =
  | { readonly kind: "earliest" }
  | { readonly kind: "latest" }
  | { readonly kind: "offset"; readonly offset: number }
  /** That many records before the end. */
  | { readonly kind: "beforeEnd"; readonly count: number }
  /** The first record of that time or later. */
  | { readonly kind: "time"; readonly timestampMs: number };

/** As in messages about a place that cannot be used. */
export const PLACE_FORMS =
  "earliest, latest, an offset, -N (before the end), @MILLISECONDS, a date";

function safe(digits: string): number | null {
  const value = Number(digits);
  return Number.isSafeInteger(value) ? value : null;
}

/** Null when it is none. A date without a zone is UTC. */
export function parsePlace(text: string): Place | null {
  if (text === "earliest" || text === "latest") return { kind: text };
  const number = /^([-@]?)(\d+)$/.exec(text);
  if (number !== null) {
    const value = safe(number[2]!);
    if (value === null) return null;
    if (number[1] === "@") return { kind: "time", timestampMs: value };
    return number[1] === "-"
      ? { kind: "beforeEnd", count: value }
      : { kind: "offset", offset: value };
  }
  if (!/^\d{4}-\d\d-\d\d/.test(text)) return null;
  const isZoned = /(Z|[+-]\d\d:?\d\d)$/.test(text) || !text.includes("T");
  const timestampMs = Date.parse(isZoned ? text : `${text}Z`);
  return Number.isNaN(timestampMs) ? null : { kind: "time", timestampMs };
}

export interface ListOptions {
  /** Whether records of open transactions count as not there. */
  readonly committed?: boolean;
}

/** Offsets by partition: LATEST, EARLIEST, or the first record of a time; -1 where there is none. */
export async function listOffsets(
  cluster: Cluster,
  topic: string,
  wanted: readonly { readonly partition: number; readonly timestamp: number }[],
  { committed = false }: ListOptions = {},
): Promise<Map<number, number>> {
  return await cluster.retrying(async (leftMs) => {
    const view = await cluster.topic(topic, { leftMs });
    const found = new Map<number, number>();
    for (const [leader, group] of byLeader(view, wanted)) {
      const connection = await cluster.node(leader);
      const { topics } = await connection.call(listOffsetsApi, {
        replicaId: -1,
        isolationLevel: committed ? 1 : 0,
        topics: [{
          name: topic,
          partitions: group.map(({ partition, timestamp }) => ({
            partitionIndex: partition,
            timestamp,
          })),
        }],
        timeoutMs: Math.ceil(leftMs),
      }, { timeoutMs: leftMs });
      for (const one of topics.flatMap(({ partitions }) => partitions)) {
        checkCode(`look up offsets of ${topic}-${one.partitionIndex}`, one.errorCode, {
          atLeader: true,
        });
        found.set(one.partitionIndex, one.offset);
      }
    }
    return found;
  });
}

export interface Bounds {
  readonly start: number;
  readonly end: number;
}

/** First and next offset of every partition that is named. */
export async function boundsOf(
  cluster: Cluster,
  topic: string,
  partitions: readonly number[],
  options?: ListOptions,
): Promise<Map<number, Bounds>> {
  const at = (timestamp: number) => partitions.map((partition) => ({ partition, timestamp }));
  const starts = await listOffsets(cluster, topic, at(EARLIEST), options);
  const ends = await listOffsets(cluster, topic, at(LATEST), options);
  return new Map(partitions.map((partition) => {
    const start = starts.get(partition) ?? 0;
    return [partition, { start, end: ends.get(partition) ?? start }];
  }));
}

function within(offset: number, { start, end }: Bounds): number {
  return Math.min(end, Math.max(start, offset));
}

/** What a place means in each partition; never before the first record or behind the end. */
export async function placeIn(
  cluster: Cluster,
  topic: string,
  partitions: readonly number[],
  place: Place,
  options?: ListOptions,
): Promise<Map<number, number>> {
  const bounds = await boundsOf(cluster, topic, partitions, options);
  const times = place.kind === "time"
    ? await listOffsets(
      cluster,
      topic,
      partitions.map((partition) => ({ partition, timestamp: place.timestampMs })),
      options,
    )
    : new Map<number, number>();
  return new Map(partitions.map((partition) => {
    const bound = bounds.get(partition)!;
    if (place.kind === "earliest") return [partition, bound.start];
    if (place.kind === "offset") return [partition, within(place.offset, bound)];
    if (place.kind === "beforeEnd") return [partition, within(bound.end - place.count, bound)];
    const found = times.get(partition) ?? -1;
    return [partition, found < 0 ? bound.end : within(found, bound)];
  }));
}

/** Numbers of the partitions that are meant: those given, which must be there, or all. */
export function partitionsOf(topic: TopicView, given: readonly number[]): number[] {
  const all = topic.partitions.map(({ partition }) => partition);
  const missing = given.find((partition) => !all.includes(partition));
  if (missing === undefined) return given.length === 0 ? all : [...new Set(given)];
  throw brokerFault(
    `use partition ${missing} of topic ${topic.name}`,
    "UNKNOWN_TOPIC_OR_PARTITION",
    {
      message: `it has ${all.length} partitions`,
    },
  );
}
