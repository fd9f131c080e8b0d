/** GET records of a topic: pages over all partitions, each in its order, behind a cursor. */
import * as v from "valibot";
import { type Clock, sleep } from "../../env/clock.ts";
import { HTTP_READ_BYTES_MAX } from "../../lib/limits.ts";
import { formatWanted, JSON_TYPES, LINE_TYPES } from "../accept.ts";
import { answerOf, chunksOf } from "../answer.ts";
import type { RecordOutput } from "../port.ts";
import { ProblemError, problemResponse } from "../problem.ts";
import type { ReadGateway } from "../read_port.ts";
import { encodeCursor } from "./cursor.ts";
import { filterOf } from "./filter.ts";
import { readMany, release, type Results, type Target, waitForMany } from "./many.ts";
import type { ManyQuery } from "./many.ts";
import {
  type Found,
  linesOf,
  listOf,
  type NotFound,
  oversizedProblem,
  readProblem,
} from "./page.ts";
import { encodingField, limitsOf, pageLimits, partitionsOf, topicFields } from "./parameters.ts";
import { inTurn, type Start, startAt, topicOf } from "./positions.ts";
import type { ReadServices } from "./partition.ts";

const FORMATS = [["json", JSON_TYPES], ["lines", LINE_TYPES]] as const;

export const mergedQuery = v.strictObject({
  ...topicFields,
  ...pageLimits,
  encoding: encodingField,
});

/** What cannot be read however often it is asked for: the reader has to hear of it, in its turn. */
function isLasting({ error }: NotFound): boolean {
  return error === "OFFSET_OUT_OF_RANGE" || error === "CORRUPT_MESSAGE" ||
    error === "INVALID_RECORD";
}

/** What a page came to. */
interface Merged {
  readonly pages: readonly (readonly [partition: number, page: Found])[];
  readonly failures: readonly (readonly [partition: number, failure: NotFound])[];
  readonly positions: ReadonlyMap<number, number>;
  readonly turn: number;
  /** Some partition has more, or was not looked at. */
  readonly hasMore: boolean;
}

function targetsOf({ topic, positions, turn }: Start, order: readonly number[]): Target[] {
  return inTurn(order, turn).map((partition) => ({
    topic: topic.name,
    topicId: topic.topicId,
    partition,
    offset: positions.get(partition) ?? "earliest",
    bytesMax: HTTP_READ_BYTES_MAX,
  }));
}

/** Those that have nothing are not asked: most of many partitions are idle. */
function withNews(gateway: ReadGateway, targets: readonly Target[], query: ManyQuery): Target[] {
  return targets.filter(({ topicId, partition, offset }) => {
    const end = gateway.peekEnd(topicId!, partition, query.isolation);
    return end === null || typeof offset !== "number" || end > offset;
  });
}

function mergedOf(
  start: Start,
  targets: readonly Target[],
  results: Results,
  endOf: (partition: number) => number | null,
): Merged {
  const positions = new Map(start.positions);
  const pages: (readonly [number, Found])[] = [];
  const failures: (readonly [number, NotFound])[] = [];
  let next: number | null = null;
  let hasMore = false;
  for (const [i, { partition }] of targets.entries()) {
    const result = results[i] ?? null;
    if (result === null) {
      next ??= partition;
      hasMore = true;
    } else if (result.ok) {
      positions.set(partition, result.next);
      pages.push([partition, result]);
      hasMore ||= result.next < (endOf(partition) ?? Infinity);
    } else {
      failures.push([partition, result]);
      if (isLasting(result)) next ??= partition;
    }
  }
  // The next page begins one partition further on, or where this one ended.
  const turn = next ?? (targets[0] === undefined ? start.turn : targets[0].partition + 1);
  return { pages, failures, positions, turn, hasMore };
}

async function mergedPage(
  gateway: ReadGateway,
  clock: Clock,
  start: Start,
  query: ManyQuery,
  waitMs: number,
): Promise<Merged> {
  const endMs = clock.monotonicMs() + waitMs;
  let at = start;
  for (;;) {
    const all = targetsOf(at, at.partitions);
    const targets = withNews(gateway, all, query);
    const results = await readMany(gateway, clock, targets, query, (failure) => isLasting(failure));
    const merged = mergedOf(
      at,
      targets,
      results,
      (partition) => gateway.peekEnd(at.topic.topicId, partition, query.isolation),
    );
    const leftMs = endMs - clock.monotonicMs();
    const isEmpty = merged.failures.length === 0 &&
      merged.pages.every(([, page]) => page.records.length === 0 && page.oversized === null);
    if (!isEmpty || leftMs <= 0 || query.signal.aborted) return merged;
    release(results);
    at = { ...at, positions: new Map(merged.positions), turn: merged.turn };
    // Others have their turn: a filter may pass over many pages.
    if (merged.hasMore) await sleep(clock, 0);
    else await waitForMany(gateway, clock, targetsOf(at, at.partitions), query, leftMs);
  }
}

function* recordsOf(merged: Merged): Generator<readonly [number, RecordOutput], void> {
  for (const [partition, page] of merged.pages) {
    for (const record of page.records) yield [partition, record];
  }
}

/** The first failure of a page without records, with a cursor that goes on behind it. */
function failed({ topic }: Start, merged: Merged): Response | null {
  const [first] = merged.failures;
  if (first === undefined) return null;
  const [partition, failure] = first;
  const start = failure.logStart;
  const isTrimmed = failure.error === "OFFSET_OUT_OF_RANGE" && start !== undefined;
  const next = failure.next ?? (isTrimmed ? start : null);
  if (next === null) return problemResponse(readProblem(failure, { partition }));
  const positions = new Map(merged.positions).set(partition, next);
  const cursor = encodeCursor(topic.name, { ...merged, topicId: topic.topicId, positions });
  return problemResponse(readProblem(failure, { partition, cursor }));
}

function answerMerged(
  start: Start,
  merged: Merged,
  { request, clock, query }: {
    readonly request: Request;
    readonly clock: Clock;
    readonly query: ManyQuery;
  },
): Response {
  const { topicId, name } = start.topic;
  const cursor = encodeCursor(name, { topicId, turn: merged.turn, positions: merged.positions });
  const isUpToDate = !merged.hasMore && merged.failures.length === 0;
  const isLines = query.shown.isInLine;
  function* pieces(): Generator<string, void> {
    yield '{"records":[';
    yield* listOf(recordsOf(merged), query.shown);
    yield `],"cursor":"${cursor}","upToDate":${isUpToDate}}`;
  }
  return answerOf(chunksOf(isLines ? linesOf(recordsOf(merged), query.shown) : pieces()), {
    request,
    clock,
    headers: {
      "content-type": isLines ? "application/x-ndjson" : "application/json",
      "kafka-cursor": cursor,
      "kafka-up-to-date": String(isUpToDate),
      "cache-control": "no-store",
      "vary": "Accept",
    },
    release: () => {
      for (const [, page] of merged.pages) page.release();
    },
  });
}

export async function consumeMerged(
  { gateway, clock }: ReadServices,
  request: Request,
  name: string,
  parameters: v.InferOutput<typeof mergedQuery>,
): Promise<Response> {
  const { waitMs, ...limits } = limitsOf(parameters);
  const isInLine = formatWanted(request, FORMATS) === "lines";
  const shown = { encoding: parameters.encoding, isInLine };
  const { matches, partitionsOf: byKey } = filterOf(parameters);
  const topic = topicOf(gateway, name);
  const query: ManyQuery = { ...limits, shown, filter: matches, signal: request.signal };
  const start = await startAt({
    gateway,
    topic,
    partitions: partitionsOf(parameters) ?? byKey?.(topic.partitions) ?? null,
    isolation: limits.isolation,
    cursor: parameters.cursor ?? null,
    from: parameters.from,
  });
  const merged = await mergedPage(gateway, clock, start, query, waitMs);
  const hasRecords = merged.pages.some(([, page]) => page.records.length > 0);
  if (hasRecords) return answerMerged(start, merged, { request, clock, query });
  for (const [partition, page] of merged.pages) {
    if (page.oversized === null) continue;
    release(merged.pages.map(([, one]) => one));
    throw oversizedIn(start, merged, partition, page.oversized);
  }
  const problem = failed(start, merged);
  if (problem === null) return answerMerged(start, merged, { request, clock, query });
  release(merged.pages.map(([, one]) => one));
  return problem;
}

function oversizedIn(
  { topic }: Start,
  merged: Merged,
  partition: number,
  oversized: NonNullable<Found["oversized"]>,
) {
  const error = oversizedProblem(oversized, topic.name, partition);
  const positions = new Map(merged.positions).set(partition, oversized.offset + 1);
  const cursor = encodeCursor(topic.name, { ...merged, topicId: topic.topicId, positions });
  const { problem } = error;
  return new ProblemError({ ...problem, more: { ...problem.more, partition, cursor } });
}
