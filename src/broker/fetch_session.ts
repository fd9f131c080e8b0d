/**
 * Incremental fetch sessions (KIP-227): what a consumer reads is remembered, so that requests carry
 * only changes and answers only news. Pure but for ids and the clock, which are arguments.
 */
import { FETCH_SESSION_IDLE_MS, FETCH_SESSION_PARTITIONS_MAX } from "../lib/limits.ts";
import type { Uuid } from "../lib/uuid.ts";
import type { Clock } from "../env/clock.ts";
import { type Random, randomInt } from "../env/random.ts";
import type { ErrorName } from "../protocol/error_code.ts";

/** One partition that a consumer reads; by name or by id, as its version does. */
export interface FetchTarget {
  readonly topic: string;
  readonly topicId: Uuid;
  readonly partition: number;
  readonly currentLeaderEpoch: number;
  readonly fetchOffset: number;
  readonly lastFetchedEpoch: number;
  readonly partitionMaxBytes: number;
}

export interface ForgottenTarget {
  readonly topic: string;
  readonly topicId: Uuid;
  readonly partition: number;
}

/** What decides whether a partition stands in an incremental answer. */
export interface FetchNews {
  readonly target: FetchTarget;
  readonly error: ErrorName;
  readonly highWatermark: number;
  readonly logStartOffset: number;
  readonly bytes: number;
  readonly diverging: boolean;
}

export interface FetchOpening {
  readonly sessionId: number;
  readonly epoch: number;
  readonly usesIds: boolean;
  readonly targets: readonly FetchTarget[];
  readonly forgotten: readonly ForgottenTarget[];
}

export interface FetchScope {
  readonly ok: true;
  /** For the answer; 0 when there is no session. */
  readonly sessionId: number;
  readonly targets: readonly FetchTarget[];
  /** Which results go into the answer; updates what the session knows of its client. */
  select<N extends FetchNews>(results: readonly N[]): readonly N[];
}

export type FetchOpened = FetchScope | { readonly ok: false; readonly error: ErrorName };

export interface FetchSessions {
  open(request: FetchOpening): FetchOpened;
  readonly size: number;
}

interface Slot {
  target: FetchTarget;
  /** As last told to the client; -1 for never. */
  highWatermark: number;
  logStartOffset: number;
}

interface Session {
  readonly id: number;
  readonly usesIds: boolean;
  /** In the order in which partitions are read. */
  readonly slots: Map<string, Slot>;
  expectedEpoch: number;
  usedMs: number;
}

const NO_SESSION = 0;
const FULL = 0;
const FINAL = -1;
const INT32_MAX = 2_147_483_647;

function keyOf({ topic, topicId, partition }: ForgottenTarget): string {
  return `${topic}/${topicId}/${partition}`;
}

/** 2147483647 is followed by 1: 0 and -1 have meanings of their own. */
function nextEpoch(epoch: number): number {
  return epoch >= INT32_MAX ? 1 : epoch + 1;
}

function slotOf(target: FetchTarget): Slot {
  return { target, highWatermark: -1, logStartOffset: -1 };
}

function sessionless(targets: readonly FetchTarget[]): FetchScope {
  return { ok: true, sessionId: NO_SESSION, targets, select: (results) => results };
}

function isNews(slot: Slot, news: FetchNews): boolean {
  return news.bytes > 0 || news.error !== "NONE" || news.diverging ||
    news.highWatermark !== slot.highWatermark || news.logStartOffset !== slot.logStartOffset;
}

/** Partitions that returned data move to the back, so that none starves the others. */
function remember(session: Session, news: FetchNews): boolean {
  const key = keyOf(news.target);
  const slot = session.slots.get(key);
  if (slot === undefined) return true;
  const isNew = isNews(slot, news);
  slot.highWatermark = news.error === "NONE" ? news.highWatermark : -1;
  slot.logStartOffset = news.logStartOffset;
  if (news.bytes > 0) {
    session.slots.delete(key);
    session.slots.set(key, slot);
  }
  return isNew;
}

export interface FetchSessionsOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly slotsMax: number;
}

class SessionTable implements FetchSessions {
  readonly #options: FetchSessionsOptions;
  /** Least recently used first. */
  readonly #sessions = new Map<number, Session>();

  constructor(options: FetchSessionsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#sessions.size;
  }

  open(request: FetchOpening): FetchOpened {
    const { sessionId, epoch } = request;
    if (epoch === FINAL || epoch === FULL) {
      if (epoch === FULL) return this.#start(request);
      this.#sessions.delete(sessionId);
      return sessionless(request.targets);
    }
    const session = this.#sessions.get(sessionId);
    if (session === undefined) return { ok: false, error: "FETCH_SESSION_ID_NOT_FOUND" };
    return this.#advance(session, request);
  }

  #makeRoom(nowMs: number): boolean {
    if (this.#sessions.size < this.#options.slotsMax) return true;
    const [oldest] = this.#sessions.values();
    if (oldest === undefined || nowMs - oldest.usedMs < FETCH_SESSION_IDLE_MS) return false;
    return this.#sessions.delete(oldest.id);
  }

  #freshId(): number {
    for (;;) {
      const id = 1 + randomInt(this.#options.random, INT32_MAX - 1);
      if (!this.#sessions.has(id)) return id;
    }
  }

  #start(request: FetchOpening): FetchScope {
    this.#sessions.delete(request.sessionId);
    const usedMs = this.#options.clock.monotonicMs();
    const { targets, usesIds } = request;
    const fits = targets.length > 0 && targets.length <= FETCH_SESSION_PARTITIONS_MAX;
    if (!fits || !this.#makeRoom(usedMs)) return sessionless(targets);
    const slots = new Map(targets.map((target) => [keyOf(target), slotOf(target)]));
    const session = { id: this.#freshId(), usesIds, slots, expectedEpoch: 1, usedMs };
    this.#sessions.set(session.id, session);
    return {
      ok: true,
      sessionId: session.id,
      targets,
      select(results) {
        for (const news of results) remember(session, news);
        return results;
      },
    };
  }

  #advance(session: Session, request: FetchOpening): FetchOpened {
    if (request.epoch !== session.expectedEpoch) {
      return { ok: false, error: "INVALID_FETCH_SESSION_EPOCH" };
    }
    if (request.usesIds !== session.usesIds) {
      return { ok: false, error: "FETCH_SESSION_TOPIC_ID_ERROR" };
    }
    session.expectedEpoch = nextEpoch(session.expectedEpoch);
    session.usedMs = this.#options.clock.monotonicMs();
    this.#sessions.delete(session.id);
    this.#sessions.set(session.id, session);
    for (const one of request.forgotten) session.slots.delete(keyOf(one));
    for (const target of request.targets) {
      const slot = session.slots.get(keyOf(target));
      if (slot !== undefined) slot.target = target;
      else if (session.slots.size < FETCH_SESSION_PARTITIONS_MAX) {
        session.slots.set(keyOf(target), slotOf(target));
      }
    }
    return {
      ok: true,
      sessionId: session.id,
      targets: [...session.slots.values()].map(({ target }) => target),
      select: (results) => results.filter((news) => remember(session, news)),
    };
  }
}

export function createFetchSessions(options: FetchSessionsOptions): FetchSessions {
  return new SessionTable(options);
}
