/**
 * What a reader makes of batches, in two ways that must agree: as Kafka's consumers do, by the broker's list of
 * aborted transactions, and by the markers in the log, which no list can belie.
 */
import type { BatchRecord } from "../../../src/protocol/record.ts";

/** A record has one identity for ever: it travels in a header, since a deletion has no value. */
const IDENTITY = "id";

export interface SeenRecord {
  readonly offset: number;
  /** Null for a marker. */
  readonly id: string | null;
  readonly key: string;
  readonly isDeletion: boolean;
  readonly text: string;
}

export interface SeenBatch {
  readonly baseOffset: number;
  readonly lastOffset: number;
  readonly leaderEpoch: number;
  readonly producerId: number;
  readonly producerEpoch: number;
  readonly isTransactional: boolean;
  readonly isControl: boolean;
  readonly marker: "commit" | "abort" | null;
  readonly records: readonly SeenRecord[];
}

const decoder = new TextDecoder();

export function identityHeader(id: string) {
  return [{ key: IDENTITY, value: new TextEncoder().encode(id) }];
}

export function shown({ offset, key, value, headers }: BatchRecord): SeenRecord {
  const header = headers.find((one) => one.key === IDENTITY)?.value;
  const id = header === undefined || header === null ? null : decoder.decode(header);
  if (id === null) {
    const text = `marker ${key?.join(".")}`;
    return { offset, id, key: "", isDeletion: false, text };
  }
  const text = `${id} ${decoder.decode(key!)}=${value === null ? "" : decoder.decode(value)}`;
  return { offset, id, key: decoder.decode(key!), isDeletion: value === null, text };
}

export interface AbortedRange {
  readonly producerId: number;
  readonly firstOffset: number;
}

/** As a consumer with isolation.level=read_committed: one answer's batches by one answer's list. */
export function committedByList(
  batches: readonly SeenBatch[],
  aborted: readonly AbortedRange[],
): readonly SeenRecord[] {
  const waiting = aborted.toSorted((a, b) => a.firstOffset - b.firstOffset);
  const skipped = new Set<number>();
  const found: SeenRecord[] = [];
  for (const batch of batches) {
    while (waiting[0] !== undefined && waiting[0].firstOffset <= batch.lastOffset) {
      skipped.add(waiting.shift()!.producerId);
    }
    if (batch.isControl) {
      if (batch.marker === "abort") skipped.delete(batch.producerId);
    } else if (!batch.isTransactional || !skipped.has(batch.producerId)) {
      found.push(...batch.records);
    }
  }
  return found;
}

/** By the markers of a whole log. What has none yet is not committed. */
export function committedByMarkers(batches: readonly SeenBatch[]): readonly SeenRecord[] {
  const open = new Map<number, SeenRecord[]>();
  const found: SeenRecord[] = [];
  for (const { producerId, isControl, isTransactional, marker, records } of batches) {
    if (isControl) {
      if (marker === "commit") found.push(...open.get(producerId) ?? []);
      open.delete(producerId);
    } else if (isTransactional) {
      open.set(producerId, [...open.get(producerId) ?? [], ...records]);
    } else found.push(...records);
  }
  return found.toSorted((a, b) => a.offset - b.offset);
}
