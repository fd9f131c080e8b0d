/**
 * Share sessions (KIP-932): which partitions a member of a share group reads from this node. One for each member,
 * opened by epoch 0, counted up by each request, ended by epoch -1 or with the connection that opened it. What all
 * of them remember is bounded.
 */
import { FETCH_SESSION_PARTITIONS_MAX, FETCH_SESSIONS_PARTITIONS_MAX } from "../../lib/limits.ts";
import type { ErrorName } from "../../protocol/error_code.ts";

/** A partition of a session. */
export interface SharePlace {
  readonly topicId: string;
  readonly partition: number;
}

export interface ShareMember {
  readonly groupId: string;
  readonly memberId: string;
}

export interface ShareOpening extends ShareMember {
  readonly epoch: number;
  readonly hasAcknowledgements: boolean;
  readonly places: readonly SharePlace[];
  readonly forgotten: readonly SharePlace[];
  /** Of the connection. */
  readonly ended: AbortSignal;
}

/** What decides whether a partition stands in an answer that tells news only. */
export interface ShareNews {
  readonly place: SharePlace;
  readonly hasRecords: boolean;
  readonly hasError: boolean;
}

export interface ShareScope {
  readonly ok: true;
  /** To be read now; none when the session ends. */
  readonly places: readonly SharePlace[];
  select<N extends ShareNews>(results: readonly N[]): readonly N[];
}

export type ShareOpened = ShareScope | { readonly ok: false; readonly error: ErrorName };

export interface ShareSessionsOptions {
  readonly sessionsMax: () => number;
  /** A session ended without its member's request. */
  readonly onLost: (member: ShareMember, places: readonly SharePlace[]) => void;
}

interface Slot {
  readonly place: SharePlace;
  /** It has to stand in the next answer whatever there is to say. */
  isOwed: boolean;
}

interface Session extends ShareMember {
  readonly slots: Map<string, Slot>;
  epoch: number;
  readonly forget: () => void;
}

const OPENING = 0;
export const FINAL_EPOCH = -1;
const INT32_MAX = 2_147_483_647;

function placeKey({ topicId, partition }: SharePlace): string {
  return `${topicId}/${partition}`;
}

/** Both may hold any character. */
function memberKey({ groupId, memberId }: ShareMember): string {
  return `${memberId.length}:${memberId}${groupId}`;
}

function nextEpoch(epoch: number): number {
  return epoch >= INT32_MAX ? 1 : epoch + 1;
}

export class ShareSessions {
  readonly #options: ShareSessionsOptions;
  readonly #sessions = new Map<string, Session>();
  #partitions = 0;

  constructor(options: ShareSessionsOptions) {
    this.#options = options;
  }

  get size(): number {
    return this.#sessions.size;
  }
  /** Partitions that all sessions remember together. */
  get partitions(): number {
    return this.#partitions;
  }

  /** For a fetch. */
  open(request: ShareOpening): ShareOpened {
    const { epoch } = request;
    if (epoch === OPENING) return this.#start(request);
    const session = this.#sessions.get(memberKey(request));
    if (session === undefined) return { ok: false, error: "SHARE_SESSION_NOT_FOUND" };
    if (epoch === FINAL_EPOCH) return { ok: true, places: [], select: () => [] };
    return this.#advance(session, request);
  }

  /** For an acknowledgement by itself; null when it may go on. */
  acknowledge(member: ShareMember, epoch: number): ErrorName | null {
    if (epoch === OPENING) return "INVALID_SHARE_SESSION_EPOCH";
    const session = this.#sessions.get(memberKey(member));
    if (session === undefined) return "SHARE_SESSION_NOT_FOUND";
    if (epoch === FINAL_EPOCH) return null;
    if (epoch !== session.epoch) return "INVALID_SHARE_SESSION_EPOCH";
    session.epoch = nextEpoch(session.epoch);
    return null;
  }

  /** Returns what the session had; nothing when there is none. */
  end(member: ShareMember): readonly SharePlace[] {
    const session = this.#sessions.get(memberKey(member));
    if (session === undefined) return [];
    session.forget();
    this.#partitions -= session.slots.size;
    this.#sessions.delete(memberKey(member));
    return [...session.slots.values()].map(({ place }) => place);
  }

  close(): void {
    for (const session of this.#sessions.values()) this.end(session);
  }

  #hasRoomFor(more: number, has = 0): boolean {
    return has + more <= FETCH_SESSION_PARTITIONS_MAX &&
      this.#partitions + more <= FETCH_SESSIONS_PARTITIONS_MAX;
  }

  #start(request: ShareOpening): ShareOpened {
    if (request.hasAcknowledgements) return { ok: false, error: "INVALID_REQUEST" };
    this.end(request);
    const { groupId, memberId, places, ended } = request;
    const isFull = this.#sessions.size >= this.#options.sessionsMax();
    if (isFull || !this.#hasRoomFor(places.length)) {
      return { ok: false, error: "SHARE_SESSION_LIMIT_REACHED" };
    }
    const lost = () => {
      if (this.#sessions.get(memberKey(session)) !== session) return;
      this.#options.onLost(session, this.end(session));
    };
    const session: Session = {
      groupId,
      memberId,
      slots: new Map(places.map((place) => [placeKey(place), { place, isOwed: false }])),
      epoch: nextEpoch(OPENING),
      forget: () => ended.removeEventListener("abort", lost),
    };
    this.#sessions.set(memberKey(session), session);
    this.#partitions += session.slots.size;
    ended.addEventListener("abort", lost, { once: true });
    const select: ShareScope["select"] = (results) => results;
    return { ok: true, places: [...session.slots.values()].map(({ place }) => place), select };
  }

  #advance(session: Session, request: ShareOpening): ShareOpened {
    if (request.epoch !== session.epoch) {
      return { ok: false, error: "INVALID_SHARE_SESSION_EPOCH" };
    }
    const { slots } = session;
    const before = slots.size;
    const added = request.places.filter((place) => !slots.has(placeKey(place)));
    if (!this.#hasRoomFor(added.length, before)) {
      return { ok: false, error: "SHARE_SESSION_LIMIT_REACHED" };
    }
    for (const place of added) slots.set(placeKey(place), { place, isOwed: true });
    for (const place of request.forgotten) slots.delete(placeKey(place));
    this.#partitions += slots.size - before;
    session.epoch = nextEpoch(session.epoch);
    const places = [...slots.values()].map(({ place }) => place);
    // Another one begins each time, so that none starves the others.
    const turn = places.length === 0 ? 0 : request.epoch % places.length;
    return {
      ok: true,
      places: [...places.slice(turn), ...places.slice(0, turn)],
      select: (results) => results.filter((news) => this.#isNews(session, news)),
    };
  }

  #isNews({ slots }: Session, { place, hasRecords, hasError }: ShareNews): boolean {
    const slot = slots.get(placeKey(place));
    if (slot === undefined) return true;
    const isNews = hasRecords || hasError || slot.isOwed;
    slot.isOwed = hasError;
    return isNews;
  }
}
