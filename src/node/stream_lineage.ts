/**
 * Forks of durable streams. A fork holds its own records; what lies before them is read in the stream that it was
 * forked from, at the same offsets, so a fork costs a topic and nothing else. Whatever has forks stays until the last
 * of them is gone, and is only hidden before.
 */
import { STREAM_FORKS_DEEP_MAX } from "../lib/limits.ts";
import type { Uuid } from "../lib/uuid.ts";
import type { TopicRow } from "../controller/image.ts";
import type { MetadataStore } from "../controller/metadata_store.ts";
import type { StreamPlace } from "../http/mounts/durable_streams/port.ts";
import type { ReadAnswer, ReadQuery, RecordOutput } from "../http/port.ts";

const SOURCE = "skerry.stream.fork.source";
const START = "skerry.stream.fork.offset";
export const DELETED = "skerry.stream.deleted";

/** A stream whose records are part of another one, or the stream itself. */
export interface Kin {
  readonly row: TopicRow;
  readonly partition: number;
  /** Where its own records begin, in the offsets of all its kin. */
  readonly start: number;
}

/** Who has an offset, and where the next kin begins. */
export interface Holder extends Kin {
  readonly end: number;
}

export function isDeleted({ configs }: TopicRow): boolean {
  return configs[DELETED] === "true";
}

export function sourceOf({ configs }: TopicRow): StreamPlace | null {
  const [topicId = "", partition = ""] = (configs[SOURCE] ?? "").split("/");
  return topicId === "" ? null : { topicId, partition: Number(partition) };
}

/** In the offsets of its kin. */
export function startOf(row: TopicRow): number {
  return sourceOf(row) === null ? 0 : Math.max(0, Number(row.configs[START] ?? 0));
}

export class StreamLineage {
  readonly #metadata: Pick<MetadataStore, "view">;

  constructor(metadata: Pick<MetadataStore, "view">) {
    this.#metadata = metadata;
  }

  /** The stream, what it was forked from, and so on; ends early where one is gone. */
  of(row: TopicRow, partition: number): readonly Kin[] {
    const { topics } = this.#metadata.view();
    const kin: Kin[] = [{ row, partition, start: startOf(row) }];
    for (let source = sourceOf(row); source !== null && kin.length <= STREAM_FORKS_DEEP_MAX;) {
      const older = topics.get(source.topicId);
      if (older === undefined) break;
      kin.push({ row: older, partition: source.partition, start: startOf(older) });
      source = sourceOf(older);
    }
    return kin;
  }

  hasForks(topicId: Uuid): boolean {
    const prefix = `${topicId}/`;
    for (const { configs } of this.#metadata.view().topics.values()) {
      if (configs[SOURCE]?.startsWith(prefix) === true) return true;
    }
    return false;
  }
}

/** Null where it lies in a stream that is gone. */
export function holderOf(kin: readonly Kin[], offset: number): Holder | null {
  let end = Infinity;
  for (const one of kin) {
    if (offset >= one.start) return { ...one, end };
    end = Math.min(end, one.start);
  }
  return null;
}

function shiftedRecord(record: RecordOutput, by: number): RecordOutput {
  return { ...record, offset: record.offset + by };
}

/** What a kin answered, in the offsets of all, and nothing from the next one's beginning on. */
export function shifted(answer: ReadAnswer, { start, end }: Holder, topicId: Uuid): ReadAnswer {
  if (!answer.ok) {
    const { logStart, highWatermark, next } = answer;
    return {
      ...answer,
      ...(logStart === undefined ? {} : { logStart: logStart + start }),
      ...(highWatermark === undefined ? {} : { highWatermark: highWatermark + start }),
      ...(next === undefined ? {} : { next: next + start }),
    };
  }
  const { records, oversized } = answer;
  const within = oversized !== null && oversized.offset + start < end;
  return {
    ...answer,
    topicId,
    records: records.map((record) => shiftedRecord(record, start))
      .filter(({ offset }) => offset < end),
    next: Math.min(end, answer.next + start),
    oversized: within ? { ...oversized, offset: oversized.offset + start } : null,
    highWatermark: answer.highWatermark + start,
    logStart: answer.logStart + start,
    fixedBelow: answer.fixedBelow === 0 ? 0 : answer.fixedBelow + start,
  };
}

export type Page = Extract<ReadAnswer, { ok: true }>;

/** What else fits on a page; null for nothing. */
export function roomIn(
  records: readonly RecordOutput[],
  { recordsMax, bytesMax }: Pick<ReadQuery, "recordsMax" | "bytesMax">,
): Pick<ReadQuery, "recordsMax" | "bytesMax"> | null {
  const bytes = records.reduce((sum, { value }) => sum + (value?.length ?? 0), 0);
  return records.length < recordsMax && bytes < bytesMax
    ? { recordsMax: recordsMax - records.length, bytesMax: bytesMax - bytes }
    : null;
}

/** The second one goes on where the first one ends. */
export function joined(first: Page, second: Page): Page {
  return {
    ...second,
    records: [...first.records, ...second.records],
    release: () => {
      first.release();
      second.release();
    },
  };
}
