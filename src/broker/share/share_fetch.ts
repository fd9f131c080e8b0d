/**
 * A fetch of a share group: reads from where each partition has something to give, and takes it for the member.
 * Nothing is taken before there are enough bytes or the time is up, and never for a client that has left. It waits
 * for new records, for records that others give back, and for another fetch that reads the same partition.
 */
import { FETCH_WAIT_MS_MAX } from "../../lib/limits.ts";
import type { ErrorName } from "../../protocol/error_code.ts";
import { faultToCode } from "../fault_to_code.ts";
import { type FetchResult, type Pass, readPass } from "../fetch_read.ts";
import { createFetchWait, type FetchWait } from "../fetch_wait.ts";
import type { BrokerServices, RequestContext } from "../handler.ts";
import type { Acquired } from "./acquire.ts";
import type { ShareGroups } from "./share_groups.ts";
import { type SharePartition, STATE_UNAVAILABLE } from "./share_partition.ts";
import type { ShareMember, SharePlace } from "./share_sessions.ts";

export interface ShareFetchAsk extends ShareMember {
  readonly places: readonly SharePlace[];
  readonly maxWaitMs: number;
  readonly minBytes: number;
  readonly maxBytes: number;
  readonly recordsMax: number;
  readonly batchSize: number;
  readonly isRecordLimit: boolean;
}

export interface ShareFetched {
  readonly place: SharePlace;
  readonly error: ErrorName;
  readonly acquired: readonly Acquired[];
  readonly batches: readonly Uint8Array[];
}

export interface ShareFetchServices
  extends Pick<BrokerServices, "env" | "config" | "permits" | "partitions" | "topics"> {
  readonly shareGroups: ShareGroups;
}

/** What one look found. */
interface Look {
  readonly results: readonly ShareFetched[];
  readonly pass: Pass | null;
  /** Something was taken, or there is an error to be told now. */
  readonly isAnswer: boolean;
  /** Looking again at once may find more. */
  readonly hasMoved: boolean;
}

interface OpenPlace {
  readonly place: SharePlace;
  readonly partition: SharePartition;
  readonly fetchOffset: number;
}

interface FailedPlace {
  readonly place: SharePlace;
  readonly error: ErrorName;
}

function failed({ place, error }: FailedPlace): ShareFetched {
  return { place, error, acquired: [], batches: [] };
}

class ShareFetch {
  readonly #services: ShareFetchServices;
  readonly #ask: ShareFetchAsk;
  readonly #context: RequestContext;
  readonly #wait: FetchWait;
  readonly #wake: () => void;
  readonly #waitMs: number;
  /** By the places asked for: what looks have opened. */
  readonly #opened: (SharePartition | FailedPlace | undefined)[] = [];

  constructor(services: ShareFetchServices, ask: ShareFetchAsk, context: RequestContext) {
    this.#services = services;
    this.#ask = ask;
    this.#context = context;
    this.#waitMs = Math.max(0, Math.min(ask.maxWaitMs, FETCH_WAIT_MS_MAX));
    this.#wait = createFetchWait(services.env.clock, this.#waitMs, context.signal);
    this.#wake = () => this.#wait.wake();
  }

  async run(): Promise<readonly ShareFetched[]> {
    let isOver = this.#waitMs === 0;
    try {
      for (;;) {
        if (this.#context.signal.aborted) return [];
        const look = await this.#look(isOver);
        if (look.isAnswer || (isOver && !look.hasMoved)) return this.#answer(look);
        look.pass?.release();
        look.pass?.forget();
        if (!look.hasMoved) isOver = await this.#wait.next() === "over";
      }
    } finally {
      this.#wait.stop();
    }
  }

  #answer({ results, pass }: Look): readonly ShareFetched[] {
    this.#context.afterAnswer((left) => {
      pass?.release();
      if (left) pass?.forget();
      else this.#giveBack(results);
    });
    return results;
  }

  /** What never reached the member is free for others at once; its session may be alive. */
  #giveBack(results: readonly ShareFetched[]): void {
    const places = results.filter(({ acquired }) => acquired.length > 0).map(({ place }) => place);
    void this.#services.shareGroups.release(this.#ask, places);
  }

  /** Sessions may be wide and are looked at often: what is open is not opened again, nor tried again what failed. */
  async #openAll(): Promise<readonly (SharePartition | FailedPlace)[]> {
    const { topics, shareGroups } = this.#services;
    const { places } = this.#ask;
    const known = places.map((_, at) => {
      const opened = this.#opened[at];
      if (opened === undefined || "error" in opened) return opened;
      return shareGroups.mayServe(opened) ? opened : undefined;
    });
    const missing = places.filter((_, at) => known[at] === undefined);
    if (missing.length > 0) await topics.lookById(missing.map(({ topicId }) => topicId));
    return await Promise.all(
      places.map(async (place, at) => known[at] ?? (this.#opened[at] = await this.#open(place))),
    );
  }

  async #open(place: SharePlace): Promise<SharePartition | FailedPlace> {
    const { topics, shareGroups } = this.#services;
    const topic = topics.findById(place.topicId);
    if (topic === undefined) return { place, error: "UNKNOWN_TOPIC_ID" };
    if (place.partition < 0 || place.partition >= topic.partitions) {
      return { place, error: "UNKNOWN_TOPIC_OR_PARTITION" };
    }
    const opened = await shareGroups.open({ groupId: this.#ask.groupId, ...place });
    return opened.ok ? opened.partition : { place, error: opened.error };
  }

  async #look(isOver: boolean): Promise<Look> {
    const failures: FailedPlace[] = [];
    const open: { readonly place: SharePlace; readonly partition: SharePartition }[] = [];
    for (const [at, found] of (await this.#openAll()).entries()) {
      if ("error" in found) failures.push(found);
      else open.push({ place: this.#ask.places[at]!, partition: found });
    }
    if (open.length === 0) {
      // A state that cannot be had now may be had soon: no client is to ask without a pause.
      const isAnswer = failures.some(({ error }) => error !== STATE_UNAVAILABLE);
      return { results: failures.map(failed), pass: null, isAnswer, hasMoved: false };
    }
    const locked = this.#lock(open);
    try {
      return await this.#take(locked, failures, isOver);
    } finally {
      for (const { partition } of locked) partition.unlock();
    }
  }

  /** Those that have something, as far as their logs know, and that nobody else reads now. */
  #lock(
    open: readonly { readonly place: SharePlace; readonly partition: SharePartition }[],
  ): OpenPlace[] {
    const isCommitted = this.#isolation === "committed";
    return open.flatMap(({ place, partition }) => {
      // Before anything is looked at, so that no move is missed.
      this.#wait.watch(partition.log);
      this.#wait.watch(partition);
      const { fetchOffset } = partition;
      const { highWatermark, lastStableOffset } = partition.log;
      const end = isCommitted ? lastStableOffset : highWatermark;
      if (fetchOffset === null || fetchOffset >= end) return [];
      return partition.tryLock(this.#wake) ? [{ place, partition, fetchOffset }] : [];
    });
  }

  get #isolation(): "committed" | "uncommitted" {
    const { isolation } = this.#services.shareGroups.settingsOf(this.#ask.groupId);
    return isolation === "read_committed" ? "committed" : "uncommitted";
  }

  async #read(locked: readonly OpenPlace[]): Promise<Pass> {
    const { permits, config } = this.#services;
    const bytesMax = Math.max(0, Math.min(this.#ask.maxBytes, config.integer("fetch.max.bytes")));
    const partitionMaxBytes = Math.max(1, Math.floor(bytesMax / locked.length));
    const targets = locked.map(({ place, partition, fetchOffset }) => ({
      log: partition.log,
      target: {
        topic: "",
        ...place,
        currentLeaderEpoch: -1,
        fetchOffset,
        lastFetchedEpoch: -1,
        partitionMaxBytes,
      },
    }));
    return await readPass(targets, {
      bytesMin: this.#bytesMin(bytesMax),
      bytesMax,
      isolation: this.#isolation,
      signal: this.#context.signal,
      hotPermits: permits.hotFetch,
      coldPermits: permits.coldFetch,
      onFault: (error) => faultToCode(error, "fetch"),
    });
  }

  #bytesMin(bytesMax: number): number {
    return Math.min(this.#ask.minBytes, bytesMax);
  }

  async #take(
    locked: readonly OpenPlace[],
    failures: readonly FailedPlace[],
    isOver: boolean,
  ): Promise<Look> {
    const results = failures.map(failed);
    if (locked.length === 0) return { results, pass: null, isAnswer: false, hasMoved: false };
    const pass = await this.#read(locked);
    const hasFailed = pass.results.some(({ error }) => isFailure(error));
    const isEnough = isOver || hasFailed || pass.bytes >= Math.max(1, this.#ask.minBytes);
    if (!isEnough || this.#context.signal.aborted) {
      return { results, pass, isAnswer: false, hasMoved: false };
    }
    let left = this.#ask.recordsMax;
    let hasMoved = false;
    for (const [at, { place, partition, fetchOffset }] of locked.entries()) {
      const taken = this.#acquire(partition, fetchOffset, pass.results[at]!, left);
      left -= taken.acquired.reduce((sum, { first, last }) => sum + last - first + 1, 0);
      hasMoved ||= partition.fetchOffset !== fetchOffset && !partition.closed;
      results.push({ place, ...taken });
    }
    const isAnswer = hasFailed || results.some(({ acquired }) => acquired.length > 0);
    return { results, pass, isAnswer, hasMoved };
  }

  #acquire(
    partition: SharePartition,
    fetchOffset: number,
    { error, batches, aborted }: FetchResult,
    recordsMax: number,
  ): Omit<ShareFetched, "place"> {
    if (isFailure(error)) return { error, acquired: [], batches: [] };
    const { memberId: member, batchSize, isRecordLimit } = this.#ask;
    const request = { member, batchSize, isRecordLimit, recordsMax };
    const taken = partition.acquire(request, { fetchOffset, batches, aborted });
    const records = taken.acquired.reduce((sum, { first, last }) => sum + last - first + 1, 0);
    this.#services.env.metrics.count("skerry_share_records_acquired_total", {}, records);
    return { error: "NONE", ...taken };
  }
}

/** An offset that the log does not have any more, or not yet, is no error of the client's: it named none. */
function isFailure(error: ErrorName): boolean {
  return error !== "NONE" && error !== "OFFSET_OUT_OF_RANGE";
}

/** Partitions that had nothing to say are left out. */
export async function shareFetch(
  services: ShareFetchServices,
  ask: ShareFetchAsk,
  context: RequestContext,
): Promise<readonly ShareFetched[]> {
  const isEmpty = ask.places.length === 0 || ask.recordsMax <= 0 || ask.maxBytes <= 0;
  return isEmpty ? [] : await new ShareFetch(services, ask, context).run();
}
