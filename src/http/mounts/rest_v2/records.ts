/** Records in the JSON of the proxies. */
import type { Clock } from "../../../env/clock.ts";
import { answerOf, chunksOf } from "../../answer.ts";
import type { RecordOutput } from "../../port.ts";
import { toBase64 } from "../../../lib/base64.ts";
import type { TopicPartition } from "../group_port.ts";
import type { Format } from "../instances/record.ts";
import { canShow, jsonOf } from "../shown.ts";
import { typeOf } from "./shape.ts";

export interface PlacedRecord {
  readonly place: TopicPartition;
  readonly record: RecordOutput;
}

export function canShowRecord({ key, value }: RecordOutput, format: Format): boolean {
  return canShow(key, format) && canShow(value, format);
}

function moreJson({ headers, timestampMs }: RecordOutput): string {
  const shown = headers.map(({ name, value }) => ({
    key: name,
    value: value === null ? null : toBase64(value),
  }));
  return `,"headers":${JSON.stringify(shown)},"timestamp":${timestampMs}`;
}

function recordJson({ place, record }: PlacedRecord, format: Format, hasMore: boolean): string {
  const { offset, key, value } = record;
  return `{"topic":${JSON.stringify(place.topic)},"key":${jsonOf(key, format)},` +
    `"value":${jsonOf(value, format)},"partition":${place.partition},"offset":${offset}` +
    `${hasMore ? moreJson(record) : ""}}`;
}

function* listOf(
  records: readonly PlacedRecord[],
  format: Format,
  hasMore: boolean,
): Generator<string, void> {
  yield "[";
  for (const [i, record] of records.entries()) {
    yield `${i === 0 ? "" : ","}${recordJson(record, format, hasMore)}`;
  }
  yield "]";
}

/** All of them can be shown. `hasMore`: with headers and timestamps. */
export function answerRecords(
  records: readonly PlacedRecord[],
  { format, hasMore, ...how }: {
    readonly format: Format;
    readonly hasMore: boolean;
    readonly request: Request;
    readonly clock: Clock;
    readonly release: () => void;
  },
): Response {
  return answerOf(chunksOf(listOf(records, format, hasMore)), {
    ...how,
    headers: { "content-type": typeOf(format), "cache-control": "no-store" },
  });
}
