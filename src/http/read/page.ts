/** Pages of records: cut to what their text may take, and the problems of reading one. */
import { HTTP_RENDERED_BYTES_MAX } from "../../lib/limits.ts";
import type { Oversized, ReadAnswer, RecordOutput } from "../port.ts";
import { type Problem, ProblemError, problemOf } from "../problem.ts";
import { recordJson, renderedBytes, renderedBytesMax, type Shown } from "../record_json.ts";

export type Found = Extract<ReadAnswer, { ok: true }>;
export type NotFound = Exclude<ReadAnswer, Found>;

export const STATUS_GONE = 410;

export function readProblem(
  answer: NotFound,
  more: Readonly<Record<string, unknown>> = {},
): Problem {
  const range = answer.error === "OFFSET_OUT_OF_RANGE" && answer.logStart !== undefined
    ? { earliest: answer.logStart, latest: answer.highWatermark }
    : {};
  const next = answer.next === undefined ? {} : { next: answer.next };
  const problem = problemOf(answer, { ...range, ...next, ...more });
  return answer.error === "UNKNOWN_TOPIC_ID" ? { ...problem, status: STATUS_GONE } : problem;
}

/** A record that JSON is too small for: where it can be had, and where to read on. */
export function oversizedProblem(
  { offset, bytes }: Oversized,
  topic: string,
  partition: number,
): ProblemError {
  const raw = rawPath(topic, partition, offset);
  return new ProblemError({
    status: 422,
    title: "Record too large",
    detail: `Cannot show offset ${offset} as JSON: ${bytes} bytes are more than a record of an ` +
      `answer may take; GET ${raw} gives its value as it is; read on at ${offset + 1}`,
    more: { raw, next: offset + 1 },
  });
}

export function rawPath(topic: string, partition: number, offset: number): string {
  return `/v1/topics/${encodeURIComponent(topic)}/partitions/${partition}/records/${offset}`;
}

/** The page, ended where its text would become too large. */
export function fitted(page: Found, shown: Shown, bytesMax = HTTP_RENDERED_BYTES_MAX): Found {
  let bytes = page.records.reduce((sum, record) => sum + renderedBytesMax(record), 0);
  if (bytes <= bytesMax) return page;
  bytes = 0;
  for (const [i, record] of page.records.entries()) {
    const more = renderedBytes(record, shown);
    bytes += more;
    if (bytes <= bytesMax) continue;
    const oversized = i === 0 ? { offset: record.offset, bytes: more } : null;
    return { ...page, records: page.records.slice(0, i), next: record.offset, oversized };
  }
  return page;
}

/** Records between commas, from here and there. */
export function* listOf(
  records: Iterable<readonly [partition: number, record: RecordOutput]>,
  shown: Shown,
): Generator<string, void> {
  let isFirst = true;
  for (const [partition, record] of records) {
    if (!isFirst) yield ",";
    isFirst = false;
    yield* recordJson(record, partition, shown);
  }
}

/** A record per line. */
export function* linesOf(
  records: Iterable<readonly [partition: number, record: RecordOutput]>,
  shown: Shown,
): Generator<string, void> {
  for (const [partition, record] of records) {
    yield* recordJson(record, partition, shown);
    yield "\n";
  }
}

export function* ofPartition(
  records: readonly RecordOutput[],
  partition: number,
): Generator<readonly [number, RecordOutput], void> {
  for (const record of records) yield [partition, record];
}
