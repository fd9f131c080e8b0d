/**
 * Which offsets of each stream the committed objects hold: every offset from its start to its committed end
 * exactly once. Spans are merged as they come, so memory grows with the holes, not with the objects.
 */
import type { StreamRow } from "../controller/image.ts";
import type { Span } from "../controller/ranges.ts";
import type { State } from "../controller/state.ts";
import type { StreamId } from "../lib/brand.ts";
import { partitionPoint } from "../lib/partition_point.ts";
import type { StreamRange } from "../storage/ports.ts";
import { damage, type Report } from "./finding.ts";

/** Disjoint spans, ascending; touching ones are merged. */
export class SpanSet {
  readonly #spans: Span[] = [];

  get spans(): readonly Span[] {
    return this.#spans;
  }

  /** Adds a span; answers the part that was there before, if any. */
  add(start: number, end: number): Span | null {
    const from = this.#firstEndingAtOrAfter(start);
    let to = from;
    let merged = { start, end };
    let twice: Span | null = null;
    for (; to < this.#spans.length && this.#spans[to]!.start <= end; to++) {
      const span = this.#spans[to]!;
      const both = { start: Math.max(start, span.start), end: Math.min(end, span.end) };
      if (both.start < both.end) twice ??= both;
      merged = { start: Math.min(merged.start, span.start), end: Math.max(merged.end, span.end) };
    }
    this.#spans.splice(from, to - from, merged);
    return twice;
  }

  #firstEndingAtOrAfter(offset: number): number {
    return partitionPoint(this.#spans.length, (i) => this.#spans[i]!.end < offset);
  }
}

export class Coverage {
  readonly #state: State;
  readonly #report: Report;
  readonly #held = new Map<StreamId, SpanSet>();

  constructor(state: State, report: Report) {
    this.#state = state;
    this.#report = report;
  }

  /** Ranges of one object; what lies below a stream's start, or is of a deleted stream, is dead. */
  async add(key: string, ranges: readonly StreamRange[]): Promise<void> {
    for (const { streamId, start, end } of ranges) {
      const row = this.#state.streams.get(streamId);
      if (row === undefined) continue;
      if (end > row.end && end > row.start) {
        const detail = `holds [${start}, ${end}) of stream ${streamId}, whose end is ${row.end}`;
        await this.#report(damage("range", key, detail));
      }
      const from = Math.max(start, row.start);
      if (from < Math.min(end, row.end)) {
        await this.#hold(key, streamId, from, Math.min(end, row.end));
      }
    }
  }

  async #hold(key: string, stream: StreamId, start: number, end: number): Promise<void> {
    const held = this.#held.get(stream) ?? new SpanSet();
    this.#held.set(stream, held);
    const twice = held.add(start, end);
    if (twice === null) return;
    const detail =
      `holds [${twice.start}, ${twice.end}) of stream ${stream}, as does another object`;
    await this.#report(damage("range", key, detail));
  }

  /** After the last object: what is nowhere. */
  async finish(): Promise<void> {
    for (const row of this.#state.streams.values()) {
      for (const { start, end } of this.#holes(row)) {
        const partition = row.tag === null ? "" : ` of partition ${row.tag}`;
        const detail = `[${start}, ${end})${partition} is in no readable object`;
        await this.#report(damage("range", `stream ${row.streamId}`, detail));
      }
    }
  }

  #holes({ streamId, start, end }: StreamRow): Span[] {
    const holes: Span[] = [];
    let next = start;
    for (const span of this.#held.get(streamId)?.spans ?? []) {
      if (span.start > next) holes.push({ start: next, end: span.start });
      next = span.end;
    }
    if (next < end) holes.push({ start: next, end });
    return holes;
  }
}
