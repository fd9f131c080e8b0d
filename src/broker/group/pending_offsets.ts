/**
 * Offsets that were committed inside a transaction, until its marker: a commit publishes them, an abort drops
 * them. Each has its place in the log, because a plain commit behind it wins whenever the marker comes.
 */
import { offsetBytes } from "./memory.ts";
import type { OffsetEntry, TopicPartition } from "./offset_table.ts";

export interface PendingOffset {
  readonly groupId: string;
  readonly entry: OffsetEntry;
  /** Of its record in the log. */
  readonly position: number;
}

/** Group and partition to what stands there; the newest one only. */
type Batch = Map<string, PendingOffset>;

function keyOf({ topic, partition }: TopicPartition): string {
  return `${partition}/${topic}`;
}

function placeOf(groupId: string, at: TopicPartition): string {
  return `${groupId.length}:${groupId}${keyOf(at)}`;
}

/** Estimated; its place in a transaction has the name of the group. */
export function pendingBytes(
  { groupId, entry }: Pick<PendingOffset, "groupId" | "entry">,
): number {
  return offsetBytes(entry) + groupId.length;
}

export class PendingOffsets {
  /** What open transactions have, by producer. */
  readonly #open = new Map<number, Batch>();
  /** What belongs to markers that are written and not durable, by their places in the log. */
  readonly #ending = new Map<number, Batch>();
  /** How many transactions have a pending offset of a partition, by group. */
  readonly #counts = new Map<string, Map<string, number>>();
  #bytes = 0;

  get isEmpty(): boolean {
    return this.#counts.size === 0;
  }
  /** What the entries take up, estimated. */
  get bytes(): number {
    return this.#bytes;
  }

  add(producerId: number, pending: PendingOffset): void {
    const batch = this.#open.get(producerId) ?? new Map<string, PendingOffset>();
    const place = placeOf(pending.groupId, pending.entry);
    const earlier = batch.get(place);
    if (earlier !== undefined) this.#count(earlier, -1);
    batch.set(place, pending);
    this.#count(pending, 1);
    this.#open.set(producerId, batch);
  }

  /** The producer's marker has its place in the log: what comes behind it is of the next transaction. */
  seal(producerId: number, marker: number): void {
    const batch = this.#open.get(producerId);
    if (batch === undefined) return;
    this.#open.delete(producerId);
    this.#ending.set(marker, batch);
  }

  /** Takes what a marker ends, once it is durable. */
  end(marker: number): readonly PendingOffset[] {
    const ended = [...this.#ending.get(marker)?.values() ?? []];
    this.#ending.delete(marker);
    for (const pending of ended) this.#count(pending, -1);
    return ended;
  }

  /** The offset was deleted for all: no marker brings it back. */
  drop(groupId: string, at: TopicPartition): void {
    if (!this.has(groupId, at)) return;
    const place = placeOf(groupId, at);
    for (const batches of [this.#open, this.#ending]) {
      for (const [key, batch] of batches) {
        const pending = batch.get(place);
        if (pending !== undefined) this.#count(pending, -1);
        batch.delete(place);
        if (batch.size === 0) batches.delete(key);
      }
    }
  }

  has(groupId: string, at: TopicPartition): boolean {
    return this.#counts.get(groupId)?.has(keyOf(at)) === true;
  }

  hasGroup(groupId: string): boolean {
    return this.#counts.has(groupId);
  }

  /** Partitions of a group with a pending offset, each once. */
  of(groupId: string): TopicPartition[] {
    if (!this.hasGroup(groupId)) return [];
    const seen = new Map<string, TopicPartition>();
    for (const batch of [...this.#open.values(), ...this.#ending.values()]) {
      for (const one of batch.values()) {
        if (one.groupId === groupId) seen.set(keyOf(one.entry), one.entry);
      }
    }
    return [...seen.values()];
  }

  clear(): void {
    this.#open.clear();
    this.#ending.clear();
    this.#counts.clear();
    this.#bytes = 0;
  }

  #count(pending: PendingOffset, by: 1 | -1): void {
    const { groupId, entry } = pending;
    this.#bytes += by * pendingBytes(pending);
    const counts = this.#counts.get(groupId) ?? new Map<string, number>();
    const key = keyOf(entry);
    const count = (counts.get(key) ?? 0) + by;
    if (count === 0) counts.delete(key);
    else counts.set(key, count);
    if (counts.size === 0) this.#counts.delete(groupId);
    else this.#counts.set(groupId, counts);
  }
}
