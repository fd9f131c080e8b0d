/** Arithmetic on half-open spans of offsets or ids, and the digest of a stream set object's ranges. */
import type { StreamId } from "../lib/brand.ts";
import { ByteWriter, toHex } from "../lib/bytes.ts";
import { md5 } from "../lib/md5.ts";
import type { StreamRange } from "../storage/ports.ts";

export interface Span {
  readonly start: number;
  readonly end: number;
}

/** Sorted, with touching and overlapping spans merged. */
export function mergeSpans(spans: readonly Span[]): Span[] {
  const merged: Span[] = [];
  for (const { start, end } of spans.toSorted((a, b) => a.start - b.start)) {
    const last = merged.at(-1);
    if (last === undefined || start > last.end) merged.push({ start, end });
    else if (end > last.end) merged[merged.length - 1] = { start: last.start, end };
  }
  return merged;
}

export function overlaps(spans: readonly Span[]): boolean {
  const sorted = spans.toSorted((a, b) => a.start - b.start);
  return sorted.some((span, i) => i > 0 && span.start < sorted[i - 1]!.end);
}

/** The parts at or above `from`. */
export function clipBelow(spans: readonly Span[], from: number): Span[] {
  return spans.filter(({ end }) => end > from)
    .map(({ start, end }) => ({ start: Math.max(start, from), end }));
}

/** Whether every part of `inner` lies in `outer`. */
export function covers(outer: readonly Span[], inner: readonly Span[]): boolean {
  const whole = mergeSpans(outer);
  return inner.every(({ start, end }) => whole.some((o) => o.start <= start && end <= o.end));
}

export function sameSpans(a: readonly Span[], b: readonly Span[]): boolean {
  const left = mergeSpans(a);
  const right = mergeSpans(b);
  return left.length === right.length &&
    left.every((span, i) => span.start === right[i]!.start && span.end === right[i]!.end);
}

export function spanContains(spans: readonly Span[], value: number): boolean {
  return spans.some(({ start, end }) => start <= value && value < end);
}

export function spansOfIds(ids: readonly number[]): Span[] {
  return mergeSpans(ids.map((id) => ({ start: id, end: id + 1 })));
}

export function rangesByStream(ranges: readonly StreamRange[]): Map<StreamId, Span[]> {
  const byStream = new Map<StreamId, Span[]>();
  for (const { streamId, start, end } of ranges) {
    const spans = byStream.get(streamId);
    if (spans === undefined) byStream.set(streamId, [{ start, end }]);
    else spans.push({ start, end });
  }
  return byStream;
}

/**
 * Digest of a range list, whatever its order and wherever touching ranges were cut: an uploader lists
 * streams, a compactor lists what it found in index blocks.
 */
export function rangesDigest(ranges: readonly StreamRange[]): string {
  const writer = new ByteWriter(ranges.length * 24);
  const streams = [...rangesByStream(ranges)].toSorted(([a], [b]) => a - b);
  for (const [stream, spans] of streams) {
    for (const { start, end } of mergeSpans(spans)) {
      writer.i64(stream);
      writer.i64(start);
      writer.i64(end);
    }
  }
  return toHex(md5(writer.view()));
}
