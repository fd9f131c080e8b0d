/**
 * The leader epochs of a partition and where each began (KIP-101, KIP-320).
 * LEADER_EPOCH_CHECKPOINT: i32 version 0 · i32 count · count × (i32 epoch · i64 start offset).
 */
import type { Offset } from "../lib/brand.ts";
import { ByteReader, ByteWriter, DecodeError } from "../lib/bytes.ts";

export interface EpochEntry {
  readonly epoch: number;
  readonly startOffset: Offset;
}

const VERSION = 0;

export class LeaderEpochs {
  /** Both fields strictly increase. */
  #entries: EpochEntry[];

  constructor(entries: readonly EpochEntry[] = []) {
    this.#entries = [...entries];
  }

  get entries(): readonly EpochEntry[] {
    return this.#entries;
  }

  /** Learns that `epoch` wrote at `offset`. An epoch that had written nothing leaves no trace. */
  assign(epoch: number, offset: Offset): void {
    const last = this.#entries.at(-1);
    if (epoch < 0 || (last !== undefined && epoch <= last.epoch)) return;
    this.#entries = this.#entries.filter(({ startOffset }) => startOffset < offset);
    this.#entries.push({ epoch, startOffset: offset });
  }

  /** Forgets what began at or after the log's end; a checkpoint may know more than the log. */
  truncateFromEnd(end: Offset): void {
    this.#entries = this.#entries.filter(({ startOffset }) => startOffset < end);
  }

  /** The epoch that covers the log's new start begins there. */
  truncateFromStart(start: Offset): void {
    const kept = this.#entries.filter(({ startOffset }) => startOffset > start);
    const covering = this.#entries.findLast(({ startOffset }) => startOffset <= start);
    if (covering !== undefined) kept.unshift({ epoch: covering.epoch, startOffset: start });
    this.#entries = kept;
  }

  at(offset: Offset): number {
    return this.#entries.findLast(({ startOffset }) => startOffset <= offset)?.epoch ?? -1;
  }

  /** As Kafka's cache: the largest known epoch up to the asked one, ending where the next one starts. */
  endOf(epoch: number, logEnd: Offset): { leaderEpoch: number; endOffset: Offset } {
    if (this.#entries.at(-1)?.epoch === epoch) return { leaderEpoch: epoch, endOffset: logEnd };
    const next = this.#entries.find((entry) => entry.epoch > epoch);
    if (next === undefined || epoch < 0) return { leaderEpoch: -1, endOffset: -1 };
    const floor = this.#entries.findLast((entry) => entry.epoch <= epoch);
    return { leaderEpoch: floor?.epoch ?? epoch, endOffset: next.startOffset };
  }
}

export function encodeEpochs(entries: readonly EpochEntry[]): Uint8Array {
  const writer = new ByteWriter();
  writer.i32(VERSION);
  writer.i32(entries.length);
  for (const { epoch, startOffset } of entries) {
    writer.i32(epoch);
    writer.i64(startOffset);
  }
  return writer.view().slice();
}

/** Throws DecodeError. */
export function decodeEpochs(value: Uint8Array): readonly EpochEntry[] {
  const reader = new ByteReader(value);
  const version = reader.i32();
  if (version !== VERSION) throw new DecodeError(`Cannot read leader epochs: version ${version}`);
  const count = reader.i32();
  if (count < 0 || count * 12 !== reader.remaining) {
    throw new DecodeError(`Cannot read leader epochs: ${count} entries`);
  }
  return Array.from({ length: count }, () => ({ epoch: reader.i32(), startOffset: reader.i64() }));
}
