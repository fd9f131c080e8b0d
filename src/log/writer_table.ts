/**
 * What batches of named writers have left in a log: whether it is closed, the last order, and how far each writer is.
 * Learned from batches, live or replayed, and from a checkpoint; nothing here refuses anything. Nothing in it grows
 * old, but WRITERS_PER_PARTITION_MAX newer writers take the place of the one that wrote longest ago.
 */
import type { Offset } from "../lib/brand.ts";
import { WRITERS_PER_PARTITION_MAX } from "../lib/limits.ts";
import { type BatchHeader, lastOffset } from "../protocol/record_batch.ts";
import type { NamedWriter, WriterStep } from "./writer_step.ts";

export interface WriterEntry extends NamedWriter {
  /** Behind its last batch. */
  readonly end: Offset;
}

/** The last batch, after which there is none. */
export interface Closing {
  readonly end: Offset;
  readonly by: NamedWriter | null;
}

export interface Writers {
  readonly closing: Closing | null;
  readonly order: string | null;
  writer(name: string): WriterEntry | undefined;
}

export class WriterTable implements Writers {
  /** By last batch, oldest first. */
  readonly #entries = new Map<string, WriterEntry>();
  #closing: Closing | null = null;
  #order: string | null = null;

  get closing(): Closing | null {
    return this.#closing;
  }
  get order(): string | null {
    return this.#order;
  }
  get isEmpty(): boolean {
    return this.#closing === null && this.#order === null && this.#entries.size === 0;
  }

  writer(name: string): WriterEntry | undefined {
    return this.#entries.get(name);
  }

  entries(): Iterable<WriterEntry> {
    return this.#entries.values();
  }

  /** From a checkpoint, for a log that ends at `end`: what a lost tail said did not happen. */
  load(
    stored: Pick<Writers, "closing" | "order"> & { readonly entries: readonly WriterEntry[] },
    end: Offset,
  ): void {
    if (stored.closing !== null && stored.closing.end <= end) this.#closing = stored.closing;
    this.#order = stored.order;
    for (const entry of stored.entries) if (entry.end <= end) this.#put(entry);
  }

  apply({ closes, order, writer }: WriterStep, header: BatchHeader): void {
    const end = lastOffset(header) + 1;
    if (order !== null) this.#order = order;
    if (writer !== null) this.#put({ ...writer, end });
    if (closes) this.#closing = { end, by: writer };
  }

  #put(entry: WriterEntry): void {
    this.#entries.delete(entry.name);
    this.#entries.set(entry.name, entry);
    if (this.#entries.size <= WRITERS_PER_PARTITION_MAX) return;
    for (const name of this.#entries.keys()) return void this.#entries.delete(name);
  }
}
