/** Committed offsets of one group, by topic and partition. Pure: the shard makes each change durable first. */
import { type Uuid, ZERO_UUID } from "../../lib/uuid.ts";
import { offsetBytes } from "./memory.ts";

export interface CommittedOffset {
  readonly offset: number;
  /** -1 when the client did not say. */
  readonly leaderEpoch: number;
  readonly metadata: string;
  readonly committedAtMs: number;
  /** Set by clients from before KIP-211; else NEVER, and the broker's retention counts. */
  readonly expireAtMs: number;
  /** Tells a topic from an earlier one of the same name; zero in records of older writers. */
  readonly topicId: Uuid;
}

export interface TopicPartition {
  readonly topic: string;
  readonly partition: number;
}

export type OffsetEntry = TopicPartition & CommittedOffset;

export const NEVER = -1;
/** Of its own retention: how much longer a repeat must live to be worth a write. */
const REFRESH_FRACTION = 10;

function keyOf(topic: string, partition: number): string {
  return `${partition}/${topic}`;
}

interface Placed {
  readonly entry: OffsetEntry;
  /** Of its record in the log. */
  readonly position: number;
}

export class OffsetTable {
  readonly #entries = new Map<string, Placed>();
  #bytes = 0;

  /** What the entries take up, estimated. */
  get bytes(): number {
    return this.#bytes;
  }
  get size(): number {
    return this.#entries.size;
  }

  /** Undefined as well when the commit was for a deleted topic of the same name. */
  get(topic: string, partition: number, topicId: Uuid): OffsetEntry | undefined {
    const entry = this.#entries.get(keyOf(topic, partition))?.entry;
    return entry === undefined || isOf(entry, topicId) ? entry : undefined;
  }

  /** The order of the log counts, not that of the calls: a marker may publish what stands before a known one. */
  set(entry: OffsetEntry, position = 0): void {
    const key = keyOf(entry.topic, entry.partition);
    if (position < (this.#entries.get(key)?.position ?? 0)) return;
    this.#bytes += this.growth(entry);
    this.#entries.set(key, { entry, position });
  }

  /** How much larger the table gets with the entry. */
  growth(entry: OffsetEntry): number {
    const known = this.#entries.get(keyOf(entry.topic, entry.partition))?.entry;
    return offsetBytes(entry) - (known === undefined ? 0 : offsetBytes(known));
  }

  /** Whether this very entry still stands: a later commit puts its own in its place. */
  holds(entry: OffsetEntry): boolean {
    return this.#entries.get(keyOf(entry.topic, entry.partition))?.entry === entry;
  }

  /** Of the record of the partition's offset in the log; -1 without one. */
  positionOf({ topic, partition }: TopicPartition): number {
    return this.#entries.get(keyOf(topic, partition))?.position ?? -1;
  }

  delete(topic: string, partition: number): void {
    const key = keyOf(topic, partition);
    const known = this.#entries.get(key);
    if (known !== undefined) this.#bytes -= offsetBytes(known.entry);
    this.#entries.delete(key);
  }

  *entries(): Generator<OffsetEntry, void> {
    for (const { entry } of this.#entries.values()) yield entry;
  }
}

function isOf(entry: CommittedOffset, topicId: Uuid): boolean {
  return entry.topicId === ZERO_UUID || entry.topicId === topicId;
}

/** A commit that changes nothing is answered without a write, until its time has to be refreshed. */
export function isRepeat(
  known: OffsetEntry | undefined,
  next: OffsetEntry,
  refreshMs: number,
): boolean {
  return known !== undefined &&
    known.offset === next.offset &&
    known.leaderEpoch === next.leaderEpoch &&
    known.metadata === next.metadata &&
    known.topicId === next.topicId &&
    next.committedAtMs - known.committedAtMs < refreshMs &&
    livesAsLong(known, next);
}

function livesAsLong(known: OffsetEntry, next: OffsetEntry): boolean {
  if (known.expireAtMs === NEVER || next.expireAtMs === NEVER) {
    return known.expireAtMs === next.expireAtMs;
  }
  const retentionMs = next.expireAtMs - next.committedAtMs;
  return Math.abs(next.expireAtMs - known.expireAtMs) * REFRESH_FRACTION < retentionMs;
}
