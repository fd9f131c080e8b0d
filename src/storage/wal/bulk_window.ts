/**
 * Closed bulks on their way into the store: a window of parallel PUTs, acknowledged strictly in slot order.
 * A bulk has one body, ever, and is put until the store says that the slot holds it or something else;
 * there is no deadline. Something else in the slot means that this incarnation is over.
 */
import { assert } from "../../lib/assert.ts";
import { sleep } from "../../env/clock.ts";
import type { Env } from "../../env/env.ts";
import { DecodeError } from "../../lib/bytes.ts";
import { FaultError, isFault, messageOf } from "../../lib/errors.ts";
import {
  WAL_BULKS_IN_FLIGHT_MAX,
  WAL_IN_FLIGHT_BYTES_MAX,
  WAL_REFUSED_MS,
  WAL_STALLED_MS,
} from "../../lib/limits.ts";
import { backoffMs } from "../../object/backoff.ts";
import { createExactly, type CreateOutcome } from "../../object/create.ts";
import type { ObjectStore } from "../../object/object_store.ts";
import type { FinishedBulk } from "./bulk.ts";
import { createHedged, type HedgeOptions } from "./hedged_create.ts";
import { HedgePace } from "./hedge_pace.ts";
import { isTooOld, type Moment, newer } from "./evidence.ts";
import { readWalHeader } from "./wal_object.ts";

export interface WindowBulk extends FinishedBulk {
  /** Settles the promise that the bulk's appends wait for. */
  readonly resolve: () => void;
  readonly reject: (fault: FaultError) => void;
}

export interface WindowOptions {
  readonly store: ObjectStore;
  readonly env: Env;
  readonly keyOf: (slot: number) => string;
  readonly firstSlot: number;
  /** Send slow PUTs a second time: for stores where a PUT costs nothing. */
  readonly hedge: boolean;
  /** Whether this incarnation is still the current one; throws FaultError while that cannot be told. */
  readonly checkEpoch: (() => Promise<boolean>) | null;
  /** The store's clock at the first proof, or before; null when it is not known. */
  readonly storeMs: number | null;
  readonly onAcknowledged: (bulk: FinishedBulk) => void;
  /** `releasedTo` may have moved without an acknowledgement. */
  readonly onReleased: () => void;
  /** Called once; the window has stopped and its bulks have failed. */
  readonly onFenced: (reason: string) => void;
}

interface Entry {
  readonly bulk: WindowBulk;
  state: "waiting" | "sending" | "stored";
  /** Before the first attempt: the earliest time at which the object can have been created. */
  sentAt: Moment | null;
  /** The first answer that refused it, and what the newest one says; null while none did. */
  refused: { readonly sinceMs: number; readonly why: string } | null;
}

export function fencedFault(reason: string): FaultError {
  return new FaultError("fenced", `WAL is fenced: ${reason}`, { retriable: false });
}

/** What lies in our slot, for the log. */
function describeFound(bytes: Uint8Array): string {
  try {
    const header = readWalHeader(bytes);
    if (header.bodyLength === 0) return `the seal of recovery ${header.sticky}`;
    return `a bulk of node ${header.nodeId} epoch ${header.epoch}`;
  } catch (error) {
    if (error instanceof DecodeError) return `a foreign object of ${bytes.length} bytes`;
    throw error;
  }
}

export class BulkWindow {
  readonly #options: WindowOptions;
  readonly #stop = new AbortController();
  /** In slot order; the head is the oldest that is not acknowledged. */
  readonly #entries: Entry[] = [];
  readonly #pace: HedgePace | null;
  /** Stored slots whose slower PUT may still read the body. */
  readonly #unreleased = new Set<number>();
  #sending = 0;
  #sendingBytes = 0;
  #acknowledgedTo: number;
  #storeMs: number | null;
  #proof: Moment;
  #confirming = false;
  #idle: (() => void)[] = [];

  constructor(options: WindowOptions) {
    this.#options = options;
    this.#acknowledgedTo = options.firstSlot;
    this.#pace = options.hedge ? new HedgePace() : null;
    this.#storeMs = options.storeMs;
    this.#proof = this.#now();
  }

  /** Bulks that are not acknowledged. */
  get size(): number {
    return this.#entries.length;
  }
  /** First slot that is not acknowledged. */
  get acknowledgedTo(): number {
    return this.#acknowledgedTo;
  }

  /**
   * Of slots below, the store is done with the bodies: their memory may be used again, and the objects be
   * deleted without a PUT under way that would create them anew.
   */
  get releasedTo(): number {
    return Math.min(this.#acknowledgedTo, ...this.#unreleased);
  }

  /**
   * Asked for by probes, so it costs no timer: the age of what waits longest tells. A store that refuses is
   * reported sooner than one that is only slow.
   */
  get problem(): string | null {
    const head = this.#entries[0];
    if (head === undefined || head.sentAt === null) return null;
    const nowMs = this.#options.env.clock.monotonicMs();
    const waitedMs = nowMs - head.sentAt.monotonicMs;
    const { refused } = head;
    const isRefused = refused !== null && nowMs - refused.sinceMs >= WAL_REFUSED_MS;
    if (!isRefused && waitedMs < WAL_STALLED_MS) return null;
    const why = refused?.why ?? "no answer yet";
    return `WAL waits for the store since ${Math.round(waitedMs / 1_000)} s: ${why}`;
  }

  push(bulk: WindowBulk): void {
    assert(!this.#stop.signal.aborted, "No bulk is sent after the end");
    this.#entries.push({ bulk, state: "waiting", sentAt: null, refused: null });
    this.#pump();
  }

  /** Resolves when nothing is unacknowledged any more, or all of it has failed. */
  drained(): Promise<void> {
    if (this.#entries.length === 0) return Promise.resolve();
    return new Promise((resolve) => this.#idle.push(resolve));
  }

  #now(): Moment {
    const { clock } = this.#options.env;
    return { monotonicMs: clock.monotonicMs(), wallMs: clock.nowMs(), storeMs: this.#storeMs };
  }

  #hasRoom(bytes: number): boolean {
    if (this.#sending === 0) return true;
    return this.#sending < WAL_BULKS_IN_FLIGHT_MAX &&
      this.#sendingBytes + bytes <= WAL_IN_FLIGHT_BYTES_MAX;
  }

  /** The window is a span of slots, not a count of open requests: recovery relies on its width. */
  #pump(): void {
    for (const entry of this.#entries.slice(0, WAL_BULKS_IN_FLIGHT_MAX)) {
      if (entry.state !== "waiting") continue;
      if (!this.#hasRoom(entry.bulk.body.length)) return;
      entry.state = "sending";
      entry.sentAt = this.#now();
      this.#sending += 1;
      this.#sendingBytes += entry.bulk.body.length;
      this.#send(entry).catch((error: unknown) => this.#fail(`bug: ${messageOf(error)}`));
    }
  }

  async #send(entry: Entry): Promise<void> {
    const { env } = this.#options;
    const { slot, body } = entry.bulk;
    const startedMs = env.clock.monotonicMs();
    const outcome = await this.#create(entry);
    if (outcome === null || this.#stop.signal.aborted) return;
    this.#sending -= 1;
    this.#sendingBytes -= body.length;
    this.#storeMs = Math.max(this.#storeMs ?? 0, outcome.storeNowMs);
    if (!outcome.created) {
      return this.#fail(`slot ${slot} holds ${describeFound(outcome.found)}`);
    }
    const tookMs = env.clock.monotonicMs() - startedMs;
    env.metrics.observe("skerry_wal_put_seconds", tookMs / 1_000);
    // Its own refusals and their pauses say nothing about what is usual.
    if (entry.refused === null) this.#pace?.observe(body.length, tookMs);
    entry.state = "stored";
    this.#acknowledge();
    this.#pump();
  }

  /** Even a refusal by the store (credentials, space) can end; only the abort stops the attempts. */
  async #create(entry: Entry): Promise<CreateOutcome | null> {
    const { store, env, keyOf } = this.#options;
    const { clock, random, log, metrics } = env;
    const { signal } = this.#stop;
    const { slot, body } = entry.bulk;
    const key = keyOf(slot);
    const onRetry = (error: unknown) => {
      const sinceMs = entry.refused?.sinceMs ?? clock.monotonicMs();
      entry.refused = { sinceMs, why: messageOf(error) };
      metrics.count("skerry_object_store_retries_total", { op: "put", class: "wal" });
    };
    for (let attempt = 1; !signal.aborted; attempt++) {
      try {
        const options = { clock, random, log, signal, onRetry };
        const hedgeAfterMs = attempt === 1 ? this.#pace?.delayMs(body.length) ?? null : null;
        if (hedgeAfterMs === null) return await createExactly(store, key, body, options);
        return await this.#createHedged(entry, { ...options, hedgeAfterMs });
      } catch (error) {
        if (!isFault(error)) throw error;
        if (signal.aborted) return null;
        onRetry(error);
        log.log("error", "wal-put-refused", { key, attempt, error: error.message });
        await sleep(clock, backoffMs(attempt, random), signal);
      }
    }
    return null;
  }

  async #createHedged(
    { bulk: { slot, body } }: Entry,
    options: Omit<HedgeOptions, "mayHedge">,
  ): Promise<CreateOutcome> {
    const { store, env, keyOf } = this.#options;
    const mayHedge = () => {
      if (this.#pace?.take() !== true) return false;
      env.metrics.count("skerry_wal_hedges_total", { outcome: "sent" });
      this.#unreleased.add(slot);
      return true;
    };
    const release = () => {
      if (this.#unreleased.delete(slot)) this.#options.onReleased();
    };
    try {
      const hedged = await createHedged(store, keyOf(slot), body, { ...options, mayHedge });
      if (hedged.byHedge) env.metrics.count("skerry_wal_hedges_total", { outcome: "won" });
      hedged.released.then(release, (error: unknown) => this.#fail(`bug: ${messageOf(error)}`));
      return hedged.outcome;
    } catch (error) {
      release();
      throw error;
    }
  }

  #acknowledge(): void {
    for (let head = this.#entries[0]; head?.state === "stored"; head = this.#entries[0]) {
      if (isTooOld(this.#proof, this.#now())) return this.#confirm();
      this.#entries.shift();
      this.#acknowledgedTo = head.bulk.slot + 1;
      if (head.sentAt !== null) this.#proof = newer(head.sentAt, this.#proof);
      this.#options.onAcknowledged(head.bulk);
      head.bulk.resolve();
    }
    if (this.#entries.length === 0) this.#notifyIdle();
  }

  /** Asks the metadata log before anything is acknowledged on old proof. */
  #confirm(): void {
    if (this.#confirming) return;
    const { checkEpoch } = this.#options;
    if (checkEpoch === null) return this.#fail("ownership was not confirmed for too long");
    this.#confirming = true;
    this.#confirmUntilKnown(checkEpoch).then(
      (current) => {
        this.#confirming = false;
        if (this.#stop.signal.aborted) return;
        if (!current) return this.#fail("a later incarnation or a recovery is in the metadata log");
        this.#acknowledge();
        this.#pump();
      },
      (error: unknown) => this.#fail(`bug: ${messageOf(error)}`),
    );
  }

  async #confirmUntilKnown(checkEpoch: () => Promise<boolean>): Promise<boolean> {
    const { clock, random, log } = this.#options.env;
    for (let attempt = 1; !this.#stop.signal.aborted; attempt++) {
      const asked = this.#now();
      try {
        if (!(await checkEpoch())) return false;
        this.#proof = newer(this.#proof, asked);
        return true;
      } catch (error) {
        if (!isFault(error)) throw error;
        if (error.code === "fenced") return false;
        log.log("warn", "wal-ownership-unknown", { attempt, error: error.message });
        await sleep(clock, backoffMs(attempt, random), this.#stop.signal);
      }
    }
    return false;
  }

  #fail(reason: string): void {
    if (this.#stop.signal.aborted) return;
    this.#giveUp(fencedFault(reason));
    this.#options.onFenced(reason);
    this.#notifyIdle();
  }

  /** Sends and acknowledges nothing any more; a PUT under way may still land. */
  abandon(fault: FaultError): void {
    if (this.#stop.signal.aborted) return;
    this.#giveUp(fault);
    this.#notifyIdle();
  }

  #giveUp(fault: FaultError): void {
    this.#stop.abort();
    for (const { bulk } of this.#entries.splice(0)) bulk.reject(fault);
  }

  #notifyIdle(): void {
    for (const resolve of this.#idle.splice(0)) resolve();
  }
}
