/**
 * What a group has leased of one partition, as a value: spans that stand side by side from the start on, each
 * acknowledged, leased to a holder, or given back; what comes behind the last one was never given out. Times
 * are wall times, and a lease whose time has passed is free, though its holder may still end it.
 */
import { assert } from "../../../lib/assert.ts";
import type { Uuid } from "../../../lib/uuid.ts";

export type SpanState = "done" | "leased" | "returned";

export interface Range {
  readonly first: number;
  readonly last: number;
}

export interface Span extends Range {
  readonly state: SpanState;
  /** Of the lease; 0 for what is done. */
  readonly holder: number;
  /** Nobody else gets it before. */
  readonly untilMs: number;
  readonly deliveries: number;
}

export interface LeaseWindow {
  readonly topicId: Uuid;
  /** The committed offset that it belongs to; -1 without one. */
  readonly committed: number;
  /** All before it is done. Above `committed` where records are gone. */
  readonly start: number;
  /** The first one is not done. */
  readonly spans: readonly Span[];
}

/** Offsets that one poll may take: up to and without `end`. */
export interface FreeRun {
  readonly first: number;
  readonly end: number;
}

/** What became of a request about a range. */
export interface Settled {
  readonly window: LeaseWindow;
  /** Not the holder's any more. */
  readonly lost: readonly Range[];
}

export function windowAt(topicId: Uuid, committed: number, start = committed): LeaseWindow {
  return { topicId, committed, start, spans: [] };
}

/** Behind all that was ever given out. */
export function nextOf({ spans, start }: LeaseWindow): number {
  const last = spans.at(-1);
  return last === undefined ? start : last.last + 1;
}

/** Nothing is under way, and the committed offset says it all. */
export function isTrivial({ spans, start, committed }: LeaseWindow): boolean {
  return spans.length === 0 && start === committed;
}

function isFree({ state, untilMs }: Span, nowMs: number): boolean {
  return state !== "done" && untilMs <= nowMs;
}

/** The first records that may be given out; null when there may be none. At `spansMax` nothing new is. */
export function firstFree(
  window: LeaseWindow,
  nowMs: number,
  spansMax: number,
): FreeRun | null {
  const { spans } = window;
  const from = spans.findIndex((span) => isFree(span, nowMs));
  const first = from < 0 ? nextOf(window) : spans[from]!.first;
  const behind = from < 0
    ? spans.length
    : spans.findIndex((span, at) => at > from && !isFree(span, nowMs));
  if (from >= 0 && behind >= 0) return { first, end: spans[behind]!.first };
  // All that is free from there on is what comes next, too.
  if (spans.length < spansMax) return { first, end: Infinity };
  return from < 0 ? null : { first, end: nextOf(window) };
}

/** Nothing is leased or waits: what is given out next comes behind all that was. */
export function isQuiet({ spans }: LeaseWindow, nowMs: number): boolean {
  return spans.every((span) => span.state === "done" || isFree(span, nowMs));
}

/** When the next one of its spans becomes free; Infinity without any. */
export function freeAtMs({ spans }: LeaseWindow, nowMs: number): number {
  let first = Infinity;
  for (const { state, untilMs } of spans) {
    if (state !== "done" && untilMs > nowMs) first = Math.min(first, untilMs);
  }
  return first;
}

/** What a holder still has. */
export function heldBy({ spans }: LeaseWindow, holder: number, nowMs: number): Span[] {
  return spans.filter((span) =>
    span.state === "leased" && span.holder === holder && span.untilMs > nowMs
  );
}

/** How often the record at an offset was delivered. */
export function deliveriesOf({ spans }: LeaseWindow, offset: number): number {
  return spans.find(({ first, last }) => first <= offset && offset <= last)?.deliveries ?? 0;
}

function isAlike(a: Span, b: Span): boolean {
  return a.state === b.state && a.holder === b.holder && a.untilMs === b.untilMs &&
    a.deliveries === b.deliveries;
}

/** Whether nothing is to be written. */
export function isSame(a: LeaseWindow, b: LeaseWindow): boolean {
  return a.start === b.start && a.spans.length === b.spans.length &&
    a.spans.every((span, at) => span.last === b.spans[at]!.last && isAlike(span, b.spans[at]!));
}

function push(spans: Span[], span: Span): void {
  const before = spans.at(-1);
  if (before !== undefined && isAlike(before, span)) {
    spans[spans.length - 1] = { ...before, last: span.last };
  } else spans.push(span);
}

function doneSpan({ first, last }: Range): Span {
  return { first, last, state: "done", holder: 0, untilMs: 0, deliveries: 0 };
}

function withSpans(window: LeaseWindow, spans: readonly Span[]): LeaseWindow {
  const at = spans.findIndex(({ state }) => state !== "done");
  const isOver = at < 0;
  const last = isOver ? spans.at(-1) : spans[at - 1];
  return {
    ...window,
    start: last === undefined ? window.start : last.last + 1,
    spans: isOver ? [] : spans.slice(at),
  };
}

/** Changes the spans of a range, which are cut at its ends. */
function mapped(window: LeaseWindow, { first, last }: Range, change: (span: Span) => Span): Span[] {
  const spans: Span[] = [];
  for (const span of window.spans) {
    if (span.last < first || span.first > last) {
      push(spans, span);
      continue;
    }
    if (span.first < first) push(spans, { ...span, last: first - 1 });
    const inside = { first: Math.max(span.first, first), last: Math.min(span.last, last) };
    push(spans, change({ ...span, ...inside }));
    if (span.last > last) push(spans, { ...span, first: last + 1 });
  }
  return spans;
}

/** Leases a range, all of which is free or new. */
export function lease(
  window: LeaseWindow,
  range: Range,
  holder: number,
  untilMs: number,
): LeaseWindow {
  const next = nextOf(window);
  assert(range.first <= next, "nothing between two spans is passed over");
  const spans = mapped(window, range, (span) => {
    assert(span.state !== "done", "what is done is not given out");
    return { ...span, state: "leased", holder, untilMs, deliveries: span.deliveries + 1 };
  });
  if (range.last >= next) {
    const first = Math.max(next, range.first);
    push(spans, { first, last: range.last, state: "leased", holder, untilMs, deliveries: 1 });
  }
  return withSpans(window, spans);
}

/** Done without a lease: there are no records, or they count as done once they are delivered. */
export function finish(window: LeaseWindow, range: Range): LeaseWindow {
  const next = nextOf(window);
  const spans = mapped(window, range, doneSpan);
  if (range.last >= next) push(spans, doneSpan({ first: next, last: range.last }));
  return withSpans(window, spans);
}

/** The log begins later now: what was before it is done. */
export function trimTo(window: LeaseWindow, logStart: number): LeaseWindow {
  return logStart <= window.start ? window : finish(window, {
    first: window.start,
    last: logStart - 1,
  });
}

/** What is asked for of a span that is the holder's; null where it is too late. */
function settle(
  window: LeaseWindow,
  { first, last }: Range,
  change: (span: Span) => Span | null,
): Settled {
  const lost: Range[] = [];
  const spans = mapped(window, { first, last }, (span) => {
    const changed = change(span);
    if (changed === null) lost.push({ first: span.first, last: span.last });
    return changed ?? span;
  });
  const next = nextOf(window);
  if (last >= next) lost.push({ first: Math.max(first, next), last });
  return { window: withSpans(window, spans), lost };
}

/** Twice is as once: what is done is not lost. */
export function acknowledge(window: LeaseWindow, holder: number, range: Range): Settled {
  return settle(window, range, (span) => {
    if (span.state === "done") return span;
    return span.state === "leased" && span.holder === holder ? doneSpan(span) : null;
  });
}

/** Gives records back, to be delivered again from a time on. What is before the window is done. */
export function giveBack(
  window: LeaseWindow,
  holder: number,
  range: Range,
  untilMs: number,
): Settled {
  const { start } = window;
  const settled = settle(
    window,
    range,
    (span) =>
      span.state !== "done" && span.holder === holder
        ? { ...span, state: "returned", untilMs }
        : null,
  );
  if (range.first >= start) return settled;
  const before = { first: range.first, last: Math.min(range.last, start - 1) };
  return { ...settled, lost: [before, ...settled.lost] };
}

export function extend(
  window: LeaseWindow,
  holder: number,
  range: Range,
  untilMs: number,
): Settled {
  return settle(window, range, (span) => {
    if (span.state === "done") return span;
    return span.state === "leased" && span.holder === holder ? { ...span, untilMs } : null;
  });
}
