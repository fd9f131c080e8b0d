/** A poll that is sent again finds what its lost answer had, under the same lease. */
import type { LeaseChange, LeasedPartition } from "../../broker/group/lease/leases.ts";
import { extend, heldBy, type LeaseWindow, type Range } from "../../broker/group/lease/window.ts";
import { HTTP_READ_BYTES_MAX } from "../../lib/limits.ts";
import { readMany, release } from "../read/many.ts";
import type { Delivered, Look, LookAsk, LookServices } from "./look.ts";

interface Held {
  readonly at: LeasedPartition;
  readonly window: LeaseWindow;
  readonly range: Range;
}

/** The first neighbours of its spans in each partition: one poll leased no others. */
function heldIn({ leases, clock }: LookServices, { partitions, holder }: LookAsk): Held[] {
  const nowMs = clock.nowMs();
  return partitions.flatMap((at) => {
    const window = leases.windowOf(at);
    const spans = window === null ? [] : heldBy(window, holder, nowMs);
    const [first] = spans;
    if (window === null || first === undefined) return [];
    let { last } = first;
    for (const span of spans) if (span.first === last + 1) last = span.last;
    return [{ at, window, range: { first: first.first, last } }];
  });
}

/** Null when nothing of it is leased any more: it is a poll like any other then. */
export async function lookAgain(services: LookServices, ask: LookAsk): Promise<Look | null> {
  const { gateway, leases, clock } = services;
  const held = heldIn(services, ask);
  if (held.length === 0) return null;
  const targets = held.map(({ at: { topic, topicId, partition }, range }) => ({
    topic,
    topicId,
    partition,
    offset: range.first,
    bytesMax: HTTP_READ_BYTES_MAX,
  }));
  const results = await readMany(gateway, clock, targets, ask.query);
  const delivered: Delivered[] = [];
  const changes: LeaseChange[] = [];
  const untilMs = clock.nowMs() + ask.leaseMs;
  for (const [i, { at, range: { first, last } }] of held.entries()) {
    const result = results[i];
    const window = leases.refusal === null ? leases.windowOf(at) : null;
    if (result?.ok !== true || window === null) continue;
    const { oversized } = result;
    const isOversized = oversized?.offset === first;
    const end = Math.min(last + 1, isOversized ? first + 1 : result.next);
    const range = { first, last: end - 1 };
    if (end <= first) continue;
    const extended = extend(window, ask.holder, range, untilMs);
    // Acknowledged or given to others meanwhile.
    if (extended.lost.length > 0) continue;
    const records = result.records.filter(({ offset }) => offset < end);
    changes.push({ at, window: extended.window, commit: false });
    delivered.push({ at, range, records, oversized: isOversized ? oversized : null, window });
  }
  if (delivered.length === 0 || ask.query.signal.aborted) {
    release(results);
    return null;
  }
  try {
    const durable = leases.change(changes);
    return {
      delivered,
      failures: [],
      durable,
      hasMoved: false,
      release: () => release(results),
    };
  } catch (error) {
    release(results);
    throw error;
  }
}
