/** POST /v1/groups/{group}/poll: looks until something is found, or the wait is over. */
import type { GroupLeases } from "../../broker/group/lease/group_leases.ts";
import type { LeasedPartition } from "../../broker/group/lease/leases.ts";
import { freeAtMs } from "../../broker/group/lease/window.ts";
import { sleep } from "../../env/clock.ts";
import { randomUuid } from "../../env/random.ts";
import { toUtf8 } from "../../lib/bytes.ts";
import { isFault, messageOf } from "../../lib/errors.ts";
import { HTTP_MERGE_MS_MAX } from "../../lib/limits.ts";
import { sha256 } from "../../lib/sha256.ts";
import { uuidOf } from "../../lib/uuid.ts";
import { ProblemError } from "../problem.ts";
import { readProblem } from "../read/page.ts";
import { isolationNamed } from "../read/parameters.ts";
import type { HttpServices } from "../services.ts";
import { acknowledgeToken, type LostRange, tokenOf } from "./acknowledge.ts";
import { lookAgain } from "./again.ts";
import { answerPoll } from "./answer_poll.ts";
import type { PollBody } from "./bodies.ts";
import { type Look, look, type LookAsk, NOTHING_FOUND } from "./look.ts";
import { beginAtEnd, partitionsOf } from "./partitions.ts";
import { expectUsable, faultOf, openGroup } from "./refused.ts";

/** So many bytes of a digest are a safe integer. */
const HOLDER_BYTES = 6;
const MEMBER_CHARS = 16;
/** What a lease takes up in the memory of groups, about. */
const LEASE_BYTES = 512;

function holderOf(bytes: Uint8Array): number {
  let holder = 0;
  for (const byte of bytes.subarray(0, HOLDER_BYTES)) holder = holder * 256 + byte;
  // None is 0, which stands for nobody.
  return holder + 1;
}

interface Caller {
  readonly member: string;
  readonly holder: number;
}

function callerOf({ env }: HttpServices, { member, retry }: PollBody): Caller {
  const random = randomUuid(env.random);
  return {
    member: member ?? uuidOf(random).slice(0, MEMBER_CHARS),
    holder: holderOf(retry === undefined ? random : sha256(toUtf8(`${member}\0${retry}`))),
  };
}

function askOf(
  { gateway }: HttpServices,
  request: Request,
  body: PollBody,
  { holder }: Caller,
): LookAsk {
  const { encoding } = body;
  return {
    partitions: partitionsOf(gateway, body.topics),
    query: {
      recordsMax: body.max,
      bytesMax: body.maxBytes,
      isolation: isolationNamed(body.isolation),
      signal: request.signal,
      shown: { encoding, isInLine: false },
      filter: null,
    },
    holder,
    leaseMs: body.lease,
    autoCommit: body.autoCommit,
    isOrdered: body.order === "partition",
    from: body.from,
  };
}

/** What the log says of leases that nobody waits for: they are given out again if they are lost. */
function unwaited({ env }: HttpServices, durable: Promise<void>): void {
  durable.catch((error: unknown) => {
    env.log.log("warn", "group-leases-not-stored", { reason: messageOf(error) });
  });
}

/** Until when nothing can become free by itself. */
function nextFreeMs(leases: GroupLeases, partitions: readonly LeasedPartition[], nowMs: number) {
  let first = Infinity;
  for (const at of partitions) {
    const window = leases.windowOf(at);
    if (window !== null) first = Math.min(first, freeAtMs(window, nowMs));
  }
  return first - nowMs;
}

/** Watches what a look cannot know yet; what it tells counts from before the look on. */
class Watching {
  readonly #stops: (() => void)[];
  readonly #wake = new AbortController();
  /** A log that is not open cannot be listened to: a look that opens it is followed by another one. */
  readonly #unopened: readonly LeasedPartition[];
  readonly #isOpen: (at: LeasedPartition) => boolean;

  constructor({ gateway }: HttpServices, leases: GroupLeases, { partitions, query }: LookAsk) {
    const wake = () => this.#wake.abort();
    this.#isOpen = ({ topicId, partition }) =>
      gateway.peekEnd(topicId, partition, query.isolation) !== null;
    this.#unopened = partitions.filter((at) => !this.#isOpen(at));
    const topics = new Set(partitions.map(({ topicId }) => topicId));
    this.#stops = [
      leases.onFree(wake),
      ...[...topics].map((topicId) => gateway.watch(topicId, null, wake)),
    ];
  }

  get signal(): AbortSignal {
    return this.#wake.signal;
  }

  get hasOpened(): boolean {
    return this.#unopened.some(this.#isOpen);
  }

  stop(): void {
    for (const stop of this.#stops) stop();
  }
}

async function firstLook(
  services: HttpServices,
  leases: GroupLeases,
  ask: LookAsk,
  body: PollBody,
): Promise<Look> {
  const { gateway, env } = services;
  const lookServices = { gateway, leases, clock: env.clock };
  const again = body.retry === undefined ? null : await lookAgain(lookServices, ask);
  return again ?? await look(lookServices, ask);
}

/** What a look came to that a poll answers with. */
function isOver({ delivered, failures }: Look): boolean {
  return delivered.length > 0 || failures.length > 0;
}

async function lookUntil(
  services: HttpServices,
  group: string,
  ask: LookAsk,
  body: PollBody,
): Promise<Look> {
  const { gateway, groups, env: { clock } } = services;
  const { signal } = ask.query;
  const endMs = clock.monotonicMs() + body.wait;
  for (;;) {
    const leases = await openGroup(groups, group);
    if (body.from === "latest") {
      await beginAtEnd(gateway, leases, ask.partitions, ask.query.isolation);
      expectUsable(leases, group);
    }
    const watching = new Watching(services, leases, ask);
    try {
      const found = await groups.polls.look(
        ask.partitions.length,
        signal,
        () => firstLook(services, leases, ask, body),
      );
      // Acknowledged is what is durable; a lease need not be.
      if (body.autoCommit || !isOver(found)) await settledOf(found);
      else unwaited(services, found.durable);
      const leftMs = endMs - clock.monotonicMs();
      // What was passed over says nothing of what comes behind it.
      const isLate = leftMs <= (found.hasMoved ? -HTTP_MERGE_MS_MAX : 0);
      if (isOver(found) || isLate || signal.aborted || groups.polls.isClosed) return found;
      found.release();
      // Others have their turn: much may have to be passed over.
      if (found.hasMoved || watching.hasOpened) await sleep(clock, 0);
      else {
        const freeMs = nextFreeMs(leases, ask.partitions, clock.nowMs());
        await groups.polls.wait(Math.min(leftMs, Math.max(1, freeMs)), [watching.signal, signal]);
      }
    } finally {
      watching.stop();
    }
  }
}

async function settledOf(found: Look): Promise<void> {
  try {
    await found.durable;
  } catch (error) {
    found.release();
    throw error;
  }
}

async function acknowledgeFirst(
  services: HttpServices,
  group: string,
  text: string,
): Promise<readonly LostRange[]> {
  const leases = await openGroup(services.groups, group);
  const acked = acknowledgeToken(services, leases, tokenOf(group, text), { nack: [] });
  await acked.durable;
  return acked.lost;
}

function failedProblem({ failures }: Look): ProblemError {
  const { at: { topic, partition }, ...failure } = failures[0]!;
  return new ProblemError(readProblem(failure, { topic, partition }));
}

export async function poll(
  services: HttpServices,
  request: Request,
  group: string,
  body: PollBody,
): Promise<Response> {
  const caller = callerOf(services, body);
  const ask = askOf(services, request, body, caller);
  try {
    const lost = body.ack === undefined ? [] : await acknowledgeFirst(services, group, body.ack);
    const leases = await openGroup(services.groups, group);
    if (!leases.hasRoom(LEASE_BYTES * ask.partitions.length)) throw tooMany(group);
    const found = await lookUntil(services, group, ask, body);
    const isGone = request.signal.aborted;
    if (isGone || found.delivered.length === 0) found.release();
    if (!isGone && found.delivered.length === 0 && found.failures.length > 0) {
      throw failedProblem(found);
    }
    const answered = isGone ? NOTHING_FOUND : found;
    return answerPoll({ services, request, group, body, caller, found: answered, lost });
  } catch (error) {
    throw isFault(error) ? faultOf(error) : error;
  }
}

function tooMany(group: string): ProblemError {
  return new ProblemError({
    status: 503,
    title: "Busy",
    detail: `Cannot lease to group ${group}: the memory for groups is in use`,
    headers: { "retry-after": "1" },
  });
}
