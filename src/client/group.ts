/** A group of scripts that share topics: records are leased by a poll, and done once they are acknowledged. */
import { isObject, type Problem, SkerryError, wrongAnswer } from "./errors.ts";
import { type ConsumeOptions, skip, type Skipped } from "./follow.ts";
import { type Ask, type Http, postJson, segment } from "./http.ts";
import { type Data, recordOf, type StoredRecord } from "./records.ts";
import { retrying } from "./retry.ts";

export interface Place {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
}

export interface LeasedRecord<V = Data> extends StoredRecord<V> {
  readonly topic: string;
  /** 1 the first time. */
  readonly deliveryCount: number;
}

/** Offsets that somebody else has now, or that were given back. */
export interface LostRange {
  readonly topic: string;
  readonly partition: number;
  readonly from: number;
  readonly to: number;
}

export interface PollOptions {
  readonly topics: readonly string[];
  /** Records. Default 100. */
  readonly max?: number;
  readonly maxBytes?: number;
  /** How long to wait for a first record, up to 30,000; `consume` waits 20,000, `poll` not at all. */
  readonly waitMs?: number;
  /** After which the records are given to others. */
  readonly leaseMs?: number;
  /** Acknowledges at once: at most once. */
  readonly autoCommit?: boolean;
  readonly isolation?: "read_uncommitted" | "read_committed";
  /** Where a group begins that has no offset yet. Default `earliest`. */
  readonly from?: "earliest" | "latest";
  /** `none`: several may work on one partition at a time. */
  readonly order?: "partition" | "none";
  readonly encoding?: "auto" | "json";
  readonly signal?: AbortSignal;
}

export interface GroupConsumeOptions
  extends Omit<PollOptions, "autoCommit">, Pick<ConsumeOptions, "onSkip" | "onRetry"> {}

export interface AckOptions {
  /** Up to and with these only; without it all records of the poll but those in `nack`. */
  readonly upTo?: readonly Place[];
  /** To be delivered again. */
  readonly nack?: readonly (Place & { readonly delayMs?: number })[];
}

/** Who polls; the broker knows a poll again by it when its answer was lost. */
export interface GroupOptions {
  readonly member?: string;
  /** How long a poll or an acknowledgement is tried again. Default 2 min. */
  readonly retryForMs?: number;
}

const CONSUME_WAIT_MS = 20_000;
/** The shortest lease that the broker takes: after it, others have the records. */
const GIVE_BACK_MS = 1_000;

function placeOf({ topic, partition, offset }: Place): Place {
  return { topic, partition, offset };
}

function lostOf({ lost }: Problem): readonly LostRange[] {
  return Array.isArray(lost) ? lost as readonly LostRange[] : [];
}

/** What one poll got. */
export class Batch<V = Data> {
  readonly records: readonly LeasedRecord<V>[];
  /** Those that JSON is too small for: their place, and where their value can be had. */
  readonly skipped: readonly Skipped[];
  /** For a later `ack`, in another program too; null where nothing is leased. */
  readonly token: string | null;
  /** All of it was acknowledged by `ack`. */
  isDone = false;
  readonly #group: Group;

  constructor(group: Group, { ack, records }: Problem) {
    if (!Array.isArray(records)) throw wrongAnswer("records are missing");
    const shown = records.filter(isObject);
    this.#group = group;
    this.token = typeof ack === "string" ? ack : null;
    this.records = shown.filter((record) => !("omitted" in record))
      .map((record) => ({ deliveryCount: 1, ...recordOf(record) }) as LeasedRecord<V>);
    this.skipped = shown.filter((record) => "omitted" in record)
      .map((details) => ({ reason: "problem", details, cursor: null }));
  }

  /** The records are done; resolves with those that were somebody else's by then. */
  async ack(options: AckOptions = {}): Promise<readonly LostRange[]> {
    if (this.token === null) return [];
    const lost = await this.#group.ack(this.token, options);
    if (options.upTo === undefined) this.isDone = true;
    return lost;
  }

  /** Gives these back, to be delivered again after a delay; nothing is acknowledged. */
  async nack(
    records: readonly Place[] = this.records,
    delayMs = 0,
  ): Promise<readonly LostRange[]> {
    return await this.ack({ upTo: [], nack: records.map((at) => ({ ...placeOf(at), delayMs })) });
  }

  /** The lease lasts so long from now on. */
  async extend(leaseMs: number): Promise<readonly LostRange[]> {
    return this.token === null ? [] : await this.#group.extend(this.token, leaseMs);
  }
}

export class Group {
  readonly name: string;
  readonly #http: Http;
  readonly #path: string;
  readonly #member: string;
  readonly #retryForMs: number;

  constructor(http: Http, name: string, { member, retryForMs }: GroupOptions) {
    this.name = name;
    this.#http = http;
    this.#path = `groups/${segment(name)}`;
    this.#member = member ?? http.host.token();
    this.#retryForMs = retryForMs ?? 120_000;
  }

  /** Leases records, maybe none. */
  poll<V = unknown>(options: PollOptions & { readonly encoding: "json" }): Promise<Batch<V>>;
  poll(options: PollOptions): Promise<Batch>;
  async poll(options: PollOptions): Promise<Batch> {
    return await this.#poll<Data>(options, null, this.#retryForMs);
  }

  /** Acknowledges a poll by its token. */
  async ack(token: string, { upTo, nack = [] }: AckOptions = {}): Promise<readonly LostRange[]> {
    return await this.#acknowledge({
      ack: token,
      upTo: upTo?.map(placeOf),
      nack: nack.map((at) => ({ ...placeOf(at), delay: at.delayMs ?? 0 })),
    });
  }

  /** Acknowledges nothing: the lease of what a poll got lasts so long from now on. */
  async extend(token: string, leaseMs: number): Promise<readonly LostRange[]> {
    return await this.#acknowledge({ ack: token, extend: leaseMs });
  }

  /**
   * Batches as they come, for ever; the next step of the loop acknowledges the one before. Leaving the loop, by
   * `break` or an error, gives back what it was at work on, unless `ack` was called: at least once. Ends when the
   * signal aborts.
   */
  consume<V = unknown>(
    options: GroupConsumeOptions & { readonly encoding: "json" },
  ): AsyncGenerator<Batch<V>, void, void>;
  consume(options: GroupConsumeOptions): AsyncGenerator<Batch, void, void>;
  async *consume(options: GroupConsumeOptions): AsyncGenerator<Batch, void, void> {
    const { signal } = options;
    let done: string | null = null;
    while (signal?.aborted !== true) {
      const batch = await this.#next({ waitMs: CONSUME_WAIT_MS, ...options }, done);
      if (batch === null) break;
      done = null;
      if (batch.token === null) continue;
      let isLeft = true;
      try {
        for (const skipped of batch.skipped) skip(skipped, options);
        if (batch.records.length > 0) yield batch;
        isLeft = false;
      } finally {
        if (isLeft && !batch.isDone) await this.#giveBack(batch.token);
      }
      if (!batch.isDone) done = batch.token;
    }
    if (done !== null) await this.ack(done);
  }

  /** Null when the signal has aborted. */
  async #next(options: GroupConsumeOptions, done: string | null): Promise<Batch | null> {
    try {
      return await this.#poll<Data>(options, done, Infinity);
    } catch (error) {
      if (options.signal?.aborted === true) return null;
      throw error;
    }
  }

  async #poll<V>(
    options: PollOptions & Pick<ConsumeOptions, "onRetry" | "onSkip">,
    done: string | null,
    forMs: number,
  ): Promise<Batch<V>> {
    const { waitMs = 0, leaseMs, signal, onRetry, onSkip: _, ...rest } = options;
    const isRepeatable = options.autoCommit !== true;
    const body = {
      ...rest,
      wait: waitMs,
      lease: leaseMs,
      member: this.#member,
      retry: isRepeatable ? this.#http.host.token() : undefined,
      ack: done ?? undefined,
    };
    const ask: Ask = { ...postJson(`${this.#path}/poll`, body), signal, waitMs };
    const retry = { forMs, isRepeatable, signal, onRetry };
    const { json } = await retrying(this.#http.host, retry, () => this.#http.request(ask));
    return new Batch<V>(this, json);
  }

  async #acknowledge(body: Problem): Promise<readonly LostRange[]> {
    const ask = postJson(`${this.#path}/ack`, body);
    const retry = { forMs: this.#retryForMs, isRepeatable: true };
    try {
      const { json } = await retrying(this.#http.host, retry, () => this.#http.request(ask));
      return lostOf(json);
    } catch (error) {
      // All of it is: then the broker calls it a conflict.
      if (!(error instanceof SkerryError) || lostOf(error.problem).length === 0) throw error;
      return lostOf(error.problem);
    }
  }

  /** Sooner than by the end of the lease; what was acknowledged stays so. */
  async #giveBack(token: string): Promise<void> {
    try {
      await this.#http.request(
        postJson(`${this.#path}/ack`, { ack: token, extend: GIVE_BACK_MS }),
      );
    } catch {
      // The lease ends by itself.
    }
  }
}
