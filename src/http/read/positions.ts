/** Where a reader of a whole topic begins: behind a cursor, at the beginning, or at the end of each partition. */
import { HTTP_CURSOR_PARTITIONS_MAX } from "../../lib/limits.ts";
import { unknownTopic } from "../api/unknown_topic.ts";
import type { Failure, TopicSummary } from "../port.ts";
import { badRequest, ProblemError, problemOf } from "../problem.ts";
import type { Isolation, ReadGateway } from "../read_port.ts";
import { decodeCursor } from "./cursor.ts";
import { STATUS_GONE } from "./page.ts";
import { tooManyPartitions } from "./parameters.ts";

export interface Start {
  readonly topic: TopicSummary;
  /** What is read, in order. */
  readonly partitions: readonly number[];
  readonly turn: number;
  /** A partition that is not among them is read from its beginning. */
  readonly positions: Map<number, number>;
}

export interface StartOptions {
  readonly gateway: ReadGateway;
  readonly topic: TopicSummary;
  /** Null: all of them. */
  readonly partitions: readonly number[] | null;
  readonly isolation: Isolation;
  readonly cursor: string | null;
  readonly from: "earliest" | "latest";
}

export function topicOf(gateway: ReadGateway, name: string): TopicSummary {
  const topic = gateway.findTopic(name);
  if (topic !== null) return topic;
  throw unknownTopic(name);
}

/** A browser that comes back says where it was in a header, and its URL is still that of its first visit. */
export function cursorOf(request: Request, given: string | undefined): string | null {
  const last = request.headers.get("last-event-id");
  return last === null || last === "" ? given ?? null : last;
}

export function allPartitions({ partitions }: TopicSummary): number[] {
  return Array.from({ length: partitions }, (_, partition) => partition);
}

function chosen({ topic, partitions }: StartOptions): readonly number[] {
  const list = partitions ?? allPartitions(topic);
  if (list.length > HTTP_CURSOR_PARTITIONS_MAX) throw tooManyPartitions(list.length);
  const unknown = list.find((partition) => partition >= topic.partitions);
  if (unknown === undefined) return list.toSorted((a, b) => a - b);
  const message = `Cannot find partition ${unknown} of ${topic.name}: it has ${topic.partitions}`;
  throw new ProblemError(problemOf({ ok: false, error: "UNKNOWN_TOPIC_OR_PARTITION", message }));
}

function recreated(name: string): ProblemError {
  return new ProblemError({
    status: STATUS_GONE,
    title: "Topic is gone",
    detail: `Cannot go on at this cursor: ${name} was deleted and created again; begin anew ` +
      "without a cursor, with from=earliest for all records of the new topic",
    more: { reason: "recreated" },
  });
}

function beyondEnd(partition: number, offset: number, earliest: number, latest: number) {
  const message = `Cannot go on at this cursor: it stands at offset ${offset} of partition ` +
    `${partition}, which ends at ${latest}`;
  const failure: Failure = { ok: false, error: "OFFSET_OUT_OF_RANGE", message };
  return new ProblemError(problemOf(failure, { partition, earliest, latest }));
}

/** Those that the cursor may not stand behind: what was read there is gone, and others will take its offsets. */
async function checkEnds(
  { gateway, topic, isolation }: StartOptions,
  positions: ReadonlyMap<number, number>,
): Promise<void> {
  await Promise.all([...positions].map(async ([partition, offset]) => {
    if (offset <= (gateway.peekEnd(topic.topicId, partition, isolation) ?? -1)) return;
    const bounds = await gateway.bounds(topic.topicId, partition, isolation);
    if (!bounds.ok) throw new ProblemError(problemOf(bounds));
    const { earliest, highWatermark: latest } = bounds;
    if (offset > Math.max(earliest, latest)) throw beyondEnd(partition, offset, earliest, latest);
  }));
}

async function ends(
  { gateway, topic, isolation }: StartOptions,
  partitions: readonly number[],
): Promise<Map<number, number>> {
  const found = await Promise.all(partitions.map(async (partition) => {
    const bounds = await gateway.bounds(topic.topicId, partition, isolation);
    if (!bounds.ok) throw new ProblemError(problemOf(bounds));
    return [partition, bounds.latest] as const;
  }));
  return new Map(found);
}

/** Throws ProblemError: 400 for a cursor that is none, 410 for one of an earlier topic of that name. */
export async function startAt(options: StartOptions): Promise<Start> {
  const { topic, cursor: text, from } = options;
  const partitions = chosen(options);
  if (text === null) {
    const positions = from === "latest" ? await ends(options, partitions) : new Map();
    return { topic, partitions, turn: 0, positions };
  }
  const cursor = decodeCursor(topic.name, text);
  if (cursor === null) {
    throw badRequest(
      `Cannot use the cursor: it is damaged, or of another topic than ${topic.name}`,
    );
  }
  if (cursor.topicId !== topic.topicId) throw recreated(topic.name);
  const positions = new Map([...cursor.positions].filter(([one]) => partitions.includes(one)));
  await checkEnds(options, positions);
  return { topic, partitions, turn: cursor.turn, positions };
}

/** The partitions in the order in which they are read now. */
export function inTurn(partitions: readonly number[], turn: number): readonly number[] {
  const at = partitions.findIndex((partition) => partition >= turn);
  return at <= 0 ? partitions : [...partitions.slice(at), ...partitions.slice(0, at)];
}
