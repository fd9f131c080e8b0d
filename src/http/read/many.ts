/**
 * Reads of several partitions as one page. Each has a fair share of what is left of the page; once something is
 * held, nothing is waited for any more: neither memory, which others may hold as well, nor one cold partition
 * after the other.
 */
import { type Clock, sleep } from "../../env/clock.ts";
import {
  HTTP_MERGE_MS_MAX,
  HTTP_RECORD_BYTES_MAX,
  HTTP_RENDERED_BYTES_MAX,
} from "../../lib/limits.ts";
import type { Failure, ReadQuery, ReadStart } from "../port.ts";
import { ProblemError } from "../problem.ts";
import type { ReadGateway } from "../read_port.ts";
import { rawBytes, renderedBytesMax, type Shown } from "../record_json.ts";
import { fitted, type Found, type NotFound } from "./page.ts";

export interface Target {
  readonly topic: string;
  /** Null for a topic that is not there. */
  readonly topicId: string | null;
  readonly partition: number;
  readonly offset: ReadStart;
  readonly bytesMax: number;
}

export interface ManyQuery
  extends Pick<ReadQuery, "recordsMax" | "bytesMax" | "isolation" | "signal"> {
  readonly shown: Shown;
  readonly filter: ReadQuery["filter"] | null;
}

/** One for each target; null where the page ended before it. */
export type Results = readonly (Found | NotFound | null)[];

/** What the page may still take. */
interface Left {
  records: number;
  bytes: number;
  text: number;
}

function share(left: number, among: number): number {
  return Math.max(1, Math.ceil(left / among));
}

async function readTarget(
  gateway: ReadGateway,
  target: Target,
  query: ManyQuery,
  left: Left,
  how: { readonly among: number; readonly mayWait: boolean },
): Promise<Found | NotFound> {
  const answer = await gateway.read(target.topic, target.partition, {
    offset: target.offset,
    recordsMax: share(left.records, how.among),
    bytesMax: Math.min(target.bytesMax, share(left.bytes, how.among)),
    recordBytesMax: HTTP_RECORD_BYTES_MAX,
    waitMs: 0,
    isolation: query.isolation,
    signal: query.signal,
    mayWait: how.mayWait,
    ...(target.topicId === null ? {} : { topicId: target.topicId }),
    ...(query.filter === null || query.filter === undefined ? {} : { filter: query.filter }),
  });
  return answer.ok ? fitted(answer, query.shown, left.text) : answer;
}

function take(page: Found, left: Left): void {
  left.records -= page.records.length;
  for (const record of page.records) {
    left.bytes -= rawBytes(record);
    left.text -= renderedBytesMax(record);
  }
}

/** Whether an answer comes from memory for want of the store's: what is there is worth more than what is not. */
function isBusy(error: unknown): boolean {
  return error instanceof ProblemError && error.problem.status === 503;
}

export function release(results: Results): void {
  for (const result of results) if (result?.ok === true) result.release();
}

/** `isLast`: the page ends at a failure, which is then not part of it unless it is the first. */
export async function readMany(
  gateway: ReadGateway,
  clock: Clock,
  targets: readonly Target[],
  query: ManyQuery,
  isLast: (failure: Failure) => boolean = () => false,
): Promise<Results> {
  const results: (Found | NotFound | null)[] = targets.map(() => null);
  const left: Left = {
    records: query.recordsMax,
    bytes: query.bytesMax,
    text: HTTP_RENDERED_BYTES_MAX,
  };
  const startedMs = clock.monotonicMs();
  let isHolding = false;
  try {
    for (const [i, target] of targets.entries()) {
      if (query.signal.aborted || left.records <= 0 || left.bytes <= 0 || left.text <= 0) break;
      if (isHolding && clock.monotonicMs() - startedMs > HTTP_MERGE_MS_MAX) break;
      const how = { among: targets.length - i, mayWait: !isHolding };
      const result = await readTarget(gateway, target, query, left, how);
      // A record that no longer fits whole is the next page's first.
      if (result.ok && result.oversized !== null && result.records.length === 0 && isHolding) {
        result.release();
        break;
      }
      results[i] = result;
      if (result.ok) take(result, left);
      else if (isLast(result)) break;
      isHolding ||= result.ok && result.records.length > 0;
    }
  } catch (error) {
    if (isHolding && isBusy(error)) return results;
    release(results);
    throw error;
  }
  return results;
}

/** Waits until one of the targets has moved behind its offset, or the time is over. */
export async function waitForMany(
  gateway: ReadGateway,
  clock: Clock,
  targets: readonly Target[],
  { isolation, signal }: Pick<ManyQuery, "isolation" | "signal">,
  waitMs: number,
): Promise<void> {
  const wake = new AbortController();
  const byTopic = new Map<string, number[]>();
  for (const { topicId, partition } of targets) {
    if (topicId === null) continue;
    const partitions = byTopic.get(topicId);
    if (partitions === undefined) byTopic.set(topicId, [partition]);
    else partitions.push(partition);
  }
  const stops = [...byTopic].map(([topicId, partitions]) =>
    gateway.watch(topicId, partitions, () => wake.abort())
  );
  const hasMoved = targets.some(({ topicId, partition, offset }) => {
    const end = topicId === null ? null : gateway.peekEnd(topicId, partition, isolation);
    return end !== null && typeof offset === "number" && end > offset;
  });
  try {
    if (!hasMoved) await sleep(clock, waitMs, AbortSignal.any([wake.signal, signal]));
  } finally {
    for (const stop of stops) stop();
  }
}
