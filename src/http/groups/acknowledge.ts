/** Ends, extends or gives back what a poll has leased, durably. */
import type { GroupLeases } from "../../broker/group/lease/group_leases.ts";
import type { LeaseChange } from "../../broker/group/lease/leases.ts";
import {
  acknowledge,
  extend,
  giveBack,
  isSame,
  type LeaseWindow,
  type Range,
  type Settled,
  windowAt,
} from "../../broker/group/lease/window.ts";
import type { Env } from "../../env/env.ts";
import { HTTP_LEASE_SPANS_HARD_MAX } from "../../lib/limits.ts";
import { ZERO_UUID } from "../../lib/uuid.ts";
import { badRequest, ProblemError } from "../problem.ts";
import type { ReadGateway } from "../read_port.ts";
import { type AckRange, type AckToken, decodeAck } from "./ack_token.ts";
import type { AckBody } from "./bodies.ts";

export interface AckServices {
  readonly gateway: ReadGateway;
  readonly env: Env;
}

/** Offsets that somebody else has now, or that were given back. */
export interface LostRange {
  readonly topic: string;
  readonly partition: number;
  readonly from: number;
  readonly to: number;
}

export interface Acked {
  readonly lost: readonly LostRange[];
  readonly isAllLost: boolean;
  /** Where the partitions are committed now; null where nothing is. */
  readonly offsets: readonly {
    readonly topic: string;
    readonly partition: number;
    readonly committed: number | null;
  }[];
  readonly durable: Promise<void>;
}

type AckAsk = Omit<AckBody, "ack">;

function isIn({ topic, partition, first, last }: AckRange, at: {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
}): boolean {
  return at.topic === topic && at.partition === partition && first <= at.offset &&
    at.offset <= last;
}

function lengthOf({ first, last }: Range): number {
  return last - first + 1;
}

export function tokenOf(group: string, text: string): AckToken {
  const token = decodeAck(group, text);
  if (token !== null) return token;
  throw badRequest("Cannot use ack: it is damaged, or of another group");
}

function expectCovered({ ranges }: AckToken, { upTo = [], nack }: AckAsk): void {
  const other = [...upTo, ...nack].find((at) => !ranges.some((range) => isIn(range, at)));
  if (other === undefined) return;
  const { topic, partition, offset } = other;
  throw badRequest(
    `Cannot use ack: offset ${offset} of ${topic} ${partition} was not in its poll`,
  );
}

/** What is asked for of one range, piece by piece. */
class Settling {
  readonly #holder: number;
  readonly #nowMs: number;
  readonly #ask: AckAsk;
  readonly lost: Range[] = [];
  /** Offsets that something was asked for. */
  asked = 0;
  window: LeaseWindow;

  constructor(window: LeaseWindow, holder: number, nowMs: number, ask: AckAsk) {
    this.window = window;
    this.#holder = holder;
    this.#nowMs = nowMs;
    this.#ask = ask;
  }

  run(range: AckRange): void {
    const returned = this.#ask.nack.filter((at) => isIn(range, at))
      .toSorted((a, b) => a.offset - b.offset);
    const doneTo = this.#doneTo(range);
    let first = range.first;
    for (const { offset, delay } of returned) {
      // Named twice: the first one counts.
      if (offset < first) continue;
      this.#keepOrEnd({ first, last: offset - 1 }, doneTo);
      const untilMs = this.#nowMs + delay;
      const one = { first: offset, last: offset };
      this.#settle(one, giveBack(this.window, this.#holder, one, untilMs));
      first = offset + 1;
    }
    this.#keepOrEnd({ first, last: range.last }, doneTo);
  }

  /** The last offset that is acknowledged. */
  #doneTo(range: AckRange): number {
    const { upTo, extend: extendMs } = this.#ask;
    if (upTo === undefined) return extendMs === undefined ? range.last : range.first - 1;
    return upTo.find((at) => isIn(range, at))?.offset ?? range.first - 1;
  }

  #keepOrEnd({ first, last }: Range, doneTo: number): void {
    const done = { first, last: Math.min(last, doneTo) };
    if (done.first <= done.last) {
      this.#settle(done, acknowledge(this.window, this.#holder, done));
    }
    const { extend: extendMs } = this.#ask;
    const kept = { first: Math.max(first, doneTo + 1), last };
    if (extendMs === undefined || kept.first > kept.last) return;
    const untilMs = this.#nowMs + extendMs;
    this.#settle(kept, extend(this.window, this.#holder, kept, untilMs));
  }

  #settle(range: Range, { window, lost }: Settled): void {
    this.asked += lengthOf(range);
    this.window = window;
    this.lost.push(...lost);
  }
}

function tooScattered(): ProblemError {
  return new ProblemError({
    status: 409,
    title: "Too many pieces",
    detail: "Cannot cut the lease further: acknowledge what stands between the records first",
  });
}

/** Which ranges the request says something about. */
function concerned({ ranges }: AckToken, { upTo, nack, extend: extendMs }: AckAsk) {
  const isAll = upTo === undefined || extendMs !== undefined;
  return ranges.filter((range) => isAll || [...upTo, ...nack].some((at) => isIn(range, at)));
}

/**
 * In one stretch; throws ProblemError before anything has happened, FaultError when the group's log takes nothing.
 * The answer waits for `durable`.
 */
export function acknowledgeToken(
  { gateway, env }: AckServices,
  leases: GroupLeases,
  token: AckToken,
  ask: AckAsk,
): Acked {
  expectCovered(token, ask);
  const nowMs = env.clock.nowMs();
  const changes: LeaseChange[] = [];
  const lost: LostRange[] = [];
  const offsets: { topic: string; partition: number; committed: number | null }[] = [];
  let lostCount = 0;
  let count = 0;
  for (const range of concerned(token, ask)) {
    const { topic, partition } = range;
    const topicId = gateway.findTopic(topic)?.topicId ?? ZERO_UUID;
    const at = { topic, topicId, partition };
    const before = leases.windowOf(at);
    const settling = new Settling(
      before ?? windowAt(topicId, -1, 0),
      token.holder,
      nowMs,
      ask,
    );
    settling.run(range);
    const { window } = settling;
    if (window.spans.length > HTTP_LEASE_SPANS_HARD_MAX) throw tooScattered();
    const hasMoved = before !== null && window.start !== before.start;
    if (before !== null && !isSame(before, window)) changes.push({ at, window, commit: hasMoved });
    const committed = hasMoved ? window.start : window.committed;
    offsets.push({ topic, partition, committed: committed < 0 ? null : committed });
    lost.push(
      ...settling.lost.map(({ first: from, last: to }) => ({ topic, partition, from, to })),
    );
    for (const one of settling.lost) lostCount += lengthOf(one);
    count += settling.asked;
  }
  const durable = leases.change(changes);
  if (changes.length > 0) leases.wake();
  env.metrics.count("skerry_http_group_offsets_lost_total", {}, lostCount);
  return { lost, isAllLost: lostCount > 0 && lostCount === count, offsets, durable };
}
