/**
 * Incremental fetch sessions (KIP-227): what a consumer reads is remembered, so that requests carry
 * only changes and answers only news. Pure but for ids and the clock, which are arguments. What all
 * sessions remember is bounded: without room a client goes on without a session, and is told all.
 */
import {
  FETCH_SESSION_IDLE_MS,
  FETCH_SESSION_PARTITIONS_MAX,
  FETCH_SESSIONS_PARTITIONS_MAX,
} from "../lib/limits.ts";
import type { Uuid } from "../lib/uuid.ts";
import type { Clock } from "../env/clock.ts";
import { type Random, randomInt } from "../env/random.ts";
import type { ErrorName } from "../protocol/error_code.ts";
import { NAME_LENGTH_MAX } from "./topic_name.ts";

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
  /** Partitions that all sessions remember together. */
  readonly partitions: number;
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
  readonly slots: Slots;
  expectedEpoch: number;
  usedMs: number;
}

const NO_SESSION = 0;
const FULL = 0;
const FINAL = -1;
const INT32_MAX = 2_147_483_647;

/** What forgotten and wanted partitions call their topic: by its name or by its id, never both. */
function topicOf({ topic, topicId }: ForgottenTarget): string {
  return topic === "" ? topicId : topic;
}

/** The partitions of a session by short keys: names are long, and most partitions share theirs. */
class Slots {
  /** Only of topics that have a partition here. */
  readonly #topics = new Map<string, { readonly number: number; partitions: number }>();
  readonly #slots = new Map<string, Slot>();
  #nextNumber = 0;

  get size(): number {
    return this.#slots.size;
  }
  values(): IterableIterator<Slot> {
    return this.#slots.values();
  }
  get(target: ForgottenTarget): Slot | undefined {
    const topic = this.#topics.get(topicOf(target));
    return topic === undefined ? undefined : this.#slots.get(`${topic.number}/${target.partition}`);
  }

  /** Takes the place of one for the same partition; a new one goes to the back. */
  put(slot: Slot): void {
    const name = topicOf(slot.target);
    const topic = this.#topics.get(name) ?? { number: this.#nextNumber++, partitions: 0 };
    const before = this.#slots.size;
    this.#slots.set(`${topic.number}/${slot.target.partition}`, slot);
    topic.partitions += this.#slots.size - before;
    this.#topics.set(name, topic);
  }

  delete(target: ForgottenTarget): void {
    const name = topicOf(target);
    const topic = this.#topics.get(name);
    if (topic === undefined || !this.#slots.delete(`${topic.number}/${target.partition}`)) return;
    topic.partitions -= 1;
    if (topic.partitions === 0) this.#topics.delete(name);
  }
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
  const slot = session.slots.get(news.target);
  if (slot === undefined) return true;
  const isNew = isNews(slot, news);
  slot.highWatermark = news.error === "NONE" ? news.highWatermark : -1;
  slot.logStartOffset = news.logStartOffset;
  if (news.bytes > 0) {
    session.slots.delete(news.target);
    session.slots.put(slot);
  }
  return isNew;
}

export interface FetchSessionsOptions {
  readonly clock: Clock;
  readonly random: Random;
  readonly slotsMax: number;
}

/** What no topic can be called is not remembered: a name on the wire may have 32 KiB. */
function isLegal({ topic }: FetchTarget): boolean {
  return topic.length <= NAME_LENGTH_MAX;
}

class SessionTable implements FetchSessions {
  readonly #options: FetchSessionsOptions;
  /** Least recently used first. */
  readonly #sessions = new Map<number, Session>();
  #partitions = 0;

  constructor(options: FetchSessionsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#sessions.size;
  }
  get partitions(): number {
    return this.#partitions;
  }

  open(request: FetchOpening): FetchOpened {
    this.#endIdle();
    const { sessionId, epoch } = request;
    if (epoch === FINAL || epoch === FULL) {
      this.#end(sessionId);
      return epoch === FULL ? this.#start(request) : sessionless(request.targets);
    }
    const session = this.#sessions.get(sessionId);
    if (session === undefined) return { ok: false, error: "FETCH_SESSION_ID_NOT_FOUND" };
    return this.#advance(session, request);
  }

  #end(sessionId: number): void {
    const session = this.#sessions.get(sessionId);
    if (session === undefined) return;
    this.#partitions -= session.slots.size;
    this.#sessions.delete(sessionId);
  }

  #endIdle(): void {
    const nowMs = this.#options.clock.monotonicMs();
    for (const { id, usedMs } of this.#sessions.values()) {
      if (nowMs - usedMs < FETCH_SESSION_IDLE_MS) return;
      this.#end(id);
    }
  }

  /** Moves a session to the end of the queue; one that has ended in the meantime stays away. */
  #touch(session: Session): void {
    if (!this.#sessions.delete(session.id)) return;
    session.usedMs = this.#options.clock.monotonicMs();
    this.#sessions.set(session.id, session);
  }

  #freshId(): number {
    for (;;) {
      const id = 1 + randomInt(this.#options.random, INT32_MAX - 1);
      if (!this.#sessions.has(id)) return id;
    }
  }

  #hasRoomFor(targets: readonly FetchTarget[], has = 0): boolean {
    return has + targets.length <= FETCH_SESSION_PARTITIONS_MAX &&
      this.#partitions + targets.length <= FETCH_SESSIONS_PARTITIONS_MAX &&
      targets.every(isLegal);
  }

  #start({ targets, usesIds }: FetchOpening): FetchScope {
    const isFull = this.#sessions.size >= this.#options.slotsMax;
    if (targets.length === 0 || isFull || !this.#hasRoomFor(targets)) return sessionless(targets);
    const slots = new Slots();
    for (const target of targets) slots.put(slotOf(target));
    const usedMs = this.#options.clock.monotonicMs();
    const session = { id: this.#freshId(), usesIds, slots, expectedEpoch: 1, usedMs };
    this.#sessions.set(session.id, session);
    this.#partitions += slots.size;
    return {
      ok: true,
      sessionId: session.id,
      targets,
      select: (results) => {
        for (const news of results) remember(session, news);
        this.#touch(session);
        return results;
      },
    };
  }

  /** False when there is no room for what the request adds. */
  #change({ slots }: Session, { forgotten, targets }: FetchOpening): boolean {
    const before = slots.size;
    for (const one of forgotten) slots.delete(one);
    this.#partitions += slots.size - before;
    const added = targets.filter((target) => {
      const slot = slots.get(target);
      if (slot !== undefined) slot.target = target;
      return slot === undefined;
    });
    if (!this.#hasRoomFor(added, slots.size)) return false;
    const kept = slots.size;
    for (const target of added) slots.put(slotOf(target));
    this.#partitions += slots.size - kept;
    return true;
  }

  #advance(session: Session, request: FetchOpening): FetchOpened {
    if (request.epoch !== session.expectedEpoch) {
      return { ok: false, error: "INVALID_FETCH_SESSION_EPOCH" };
    }
    if (request.usesIds !== session.usesIds) {
      return { ok: false, error: "FETCH_SESSION_TOPIC_ID_ERROR" };
    }
    session.expectedEpoch = nextEpoch(session.expectedEpoch);
    this.#touch(session);
    if (!this.#change(session, request)) {
      // The client asks for all again, and then goes on without a session.
      this.#end(session.id);
      return { ok: false, error: "FETCH_SESSION_ID_NOT_FOUND" };
    }
    return {
      ok: true,
      sessionId: session.id,
      targets: [...session.slots.values()].map(({ target }) => target),
      select: (results) => {
        this.#touch(session);
        return results.filter((news) => remember(session, news));
      },
    };
  }
}

export function createFetchSessions(options: FetchSessionsOptions): FetchSessions {
  return new SessionTable(options);
}
