/**
 * One look of a poll: reads what is free of its partitions, and leases what it got in the stretch that ends it. The
 * partitions are locked for others meanwhile; whatever else has changed by then is looked at again.
 */
import type { GroupLeases } from "../../broker/group/lease/group_leases.ts";
import type { LeaseChange, LeasedPartition } from "../../broker/group/lease/leases.ts";
import {
  finish,
  firstFree,
  type FreeRun,
  isQuiet,
  lease,
  type LeaseWindow,
  type Range,
  trimTo,
  windowAt,
} from "../../broker/group/lease/window.ts";
import type { Clock } from "../../env/clock.ts";
import { HTTP_LEASE_SPANS_MAX, HTTP_READ_BYTES_MAX } from "../../lib/limits.ts";
import type { Oversized, RecordOutput } from "../port.ts";
import { type ManyQuery, readMany, release, type Results, type Target } from "../read/many.ts";
import type { Found, NotFound } from "../read/page.ts";
import type { ReadGateway } from "../read_port.ts";

export interface LookAsk {
  readonly partitions: readonly LeasedPartition[];
  readonly query: ManyQuery;
  readonly holder: number;
  readonly leaseMs: number;
  readonly autoCommit: boolean;
  readonly isOrdered: boolean;
  readonly from: "earliest" | "latest";
}

export interface LookServices {
  readonly gateway: ReadGateway;
  readonly leases: GroupLeases;
  readonly clock: Clock;
}

/** What was given out of one partition. */
export interface Delivered {
  readonly at: LeasedPartition;
  readonly range: Range;
  readonly records: readonly RecordOutput[];
  /** The record at the range's only offset, which no answer can show. */
  readonly oversized: Oversized | null;
  /** By which each record's deliveries are counted. */
  readonly window: LeaseWindow;
}

export interface Look {
  readonly delivered: readonly Delivered[];
  readonly failures: readonly (NotFound & { readonly at: LeasedPartition })[];
  /** Of what was leased or acknowledged; a lease may count before that. */
  readonly durable: Promise<void>;
  /** Something was passed over, so that another look may find more. */
  readonly hasMoved: boolean;
  readonly release: () => void;
}

export const NOTHING_FOUND: Look = {
  delivered: [],
  failures: [],
  durable: Promise.resolve(),
  hasMoved: false,
  release: () => {},
};

interface Candidate {
  readonly at: LeasedPartition;
  readonly window: LeaseWindow;
  readonly run: FreeRun;
}

/** A group without an offset begins at the beginning, wherever that is: reads tell. */
function windowOf({ leases }: LookServices, at: LeasedPartition): LeaseWindow {
  return leases.windowOf(at) ?? windowAt(at.topicId, -1, 0);
}

function freeRun(
  window: LeaseWindow,
  nowMs: number,
  { isOrdered }: Pick<LookAsk, "isOrdered">,
): FreeRun | null {
  return isOrdered && !isQuiet(window, nowMs)
    ? null
    : firstFree(window, nowMs, HTTP_LEASE_SPANS_MAX);
}

function inTurn<T>(list: readonly T[], turn: number): readonly T[] {
  return [...list.slice(turn), ...list.slice(0, turn)];
}

/** Those that may have something, locked. */
function candidatesOf(services: LookServices, ask: LookAsk): Candidate[] {
  const { gateway, leases, clock } = services;
  const nowMs = clock.nowMs();
  const turn = leases.polled(ask.partitions.length);
  return inTurn(ask.partitions, turn).flatMap((at) => {
    const window = windowOf(services, at);
    const run = freeRun(window, nowMs, ask);
    if (run === null) return [];
    const end = gateway.peekEnd(at.topicId, at.partition, ask.query.isolation);
    if (end === run.first) return [];
    return leases.tryLock(at) ? [{ at, window, run }] : [];
  });
}

function targetsOf(candidates: readonly Candidate[]): Target[] {
  return candidates.map(({ at: { topic, topicId, partition }, run }) => ({
    topic,
    topicId,
    partition,
    offset: run.first,
    bytesMax: HTTP_READ_BYTES_MAX,
  }));
}

/** The window of a partition whose log holds nothing at its place. */
function movedTo(window: LeaseWindow, failure: NotFound, from: LookAsk["from"]): LeaseWindow {
  const { logStart = 0, highWatermark = 0 } = failure;
  if (window.start < logStart) return trimTo(window, logStart);
  // It is behind the end: of a log that was lost, or that somebody has set.
  return windowAt(window.topicId, window.committed, from === "latest" ? highWatermark : logStart);
}

class Taking {
  readonly #services: LookServices;
  readonly #ask: LookAsk;
  readonly #nowMs: number;
  readonly changes: LeaseChange[] = [];
  readonly delivered: Delivered[] = [];
  readonly failures: (NotFound & { readonly at: LeasedPartition })[] = [];
  hasMoved = false;

  constructor(services: LookServices, ask: LookAsk) {
    this.#services = services;
    this.#ask = ask;
    this.#nowMs = services.clock.nowMs();
  }

  take(candidate: Candidate, result: Found | NotFound): void {
    const { at } = candidate;
    const window = windowOf(this.#services, at);
    const run = freeRun(window, this.#nowMs, this.#ask);
    // What is free now begins somewhere else: somebody has acknowledged, committed or given back.
    if (run === null || run.first !== candidate.run.first) this.hasMoved = true;
    else if (result.ok) this.#takePage(at, window, run, result);
    else if (result.error === "OFFSET_OUT_OF_RANGE") {
      this.#services.leases.remember({ at, window: movedTo(window, result, this.#ask.from) });
      this.hasMoved = true;
    } else this.failures.push({ ...result, at });
  }

  #takePage(at: LeasedPartition, window: LeaseWindow, run: FreeRun, page: Found): void {
    const { holder, leaseMs, autoCommit } = this.#ask;
    const records = page.records.filter(({ offset }) => offset < run.end);
    const isOversized = page.oversized?.offset === run.first;
    const oversized = isOversized ? page.oversized : null;
    const end = Math.min(isOversized ? run.first + 1 : page.next, run.end);
    if (end <= run.first) return;
    const range = { first: run.first, last: end - 1 };
    if (records.length === 0 && oversized === null) {
      this.#services.leases.remember({ at, window: finish(window, range) });
      this.hasMoved = true;
      return;
    }
    const leased = lease(window, range, holder, this.#nowMs + leaseMs);
    const next = autoCommit ? finish(window, range) : leased;
    const commit = autoCommit && next.start !== window.start;
    this.changes.push({ at, window: next, commit });
    this.delivered.push({ at, range, records, oversized, window: leased });
  }
}

/** The next poll begins with the partition that this one did not come to, or one further on. */
function nextTurn(ask: LookAsk, candidates: readonly Candidate[], results: Results): number {
  const left = results.findIndex((result) => result === null);
  const { at } = candidates[Math.max(0, left)]!;
  return ask.partitions.indexOf(at) + (left < 0 ? 1 : 0);
}

function take(
  services: LookServices,
  ask: LookAsk,
  candidates: readonly Candidate[],
  results: Results,
): Look {
  const { leases } = services;
  // A client that is gone has leased nothing.
  if (ask.query.signal.aborted || leases.refusal !== null) {
    release(results);
    return NOTHING_FOUND;
  }
  const taking = new Taking(services, ask);
  for (const [i, candidate] of candidates.entries()) {
    const result = results[i] ?? null;
    if (result !== null) taking.take(candidate, result);
  }
  const { changes, delivered, failures, hasMoved } = taking;
  try {
    const durable = leases.change([...changes, ...aging(services, ask, changes)]);
    leases.setTurn(nextTurn(ask, candidates, results));
    return { delivered, failures, durable, hasMoved, release: () => release(results) };
  } catch (error) {
    release(results);
    throw error;
  }
}

/** Offsets that would expire if they were not written again. */
function aging(
  { leases }: LookServices,
  { partitions }: LookAsk,
  changes: readonly LeaseChange[],
): LeaseChange[] {
  const changed = new Set(changes.map(({ at }) => at));
  return partitions.filter((at) => !changed.has(at) && leases.isAging(at)).flatMap((at) => {
    const window = leases.windowOf(at);
    return window === null ? [] : [{ at, window, commit: true }];
  });
}

/** Throws ProblemError, and FaultError when the group's log takes nothing. */
export async function look(services: LookServices, ask: LookAsk): Promise<Look> {
  const { gateway, leases, clock } = services;
  if (leases.refusal !== null) return NOTHING_FOUND;
  const candidates = candidatesOf(services, ask);
  const locked = candidates.map(({ at }) => at);
  try {
    if (candidates.length === 0) return idle(services, ask);
    const results = await readMany(gateway, clock, targetsOf(candidates), ask.query);
    return take(services, ask, candidates, results);
  } finally {
    leases.unlock(locked);
  }
}

function idle(services: LookServices, ask: LookAsk): Look {
  return { ...NOTHING_FOUND, durable: services.leases.change(aging(services, ask, [])) };
}
