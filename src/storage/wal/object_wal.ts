/**
 * The WAL on an object store. Appends go into the open bulk; the batching policy closes it; the window
 * puts closed bulks into their slots and acknowledges them in order. One slot per bulk, one body per slot,
 * create-if-absent: whoever else writes into our next slot ends this incarnation, and only that does.
 */
import { assert } from "../../lib/assert.ts";
import type { Cancel } from "../../env/clock.ts";
import type { Env } from "../../env/env.ts";
import type { NodeEpoch, NodeId } from "../../lib/brand.ts";
import { FaultError } from "../../lib/errors.ts";
import {
  PAYLOAD_BYTES_MAX,
  WAL_UNACKNOWLEDGED_BYTES_MAX,
  WAL_WAITING_RECORD_BYTES,
} from "../../lib/limits.ts";
import { walKeys } from "../../object/object_key.ts";
import type { ObjectStore } from "../../object/object_store.ts";
import type { StreamRecord } from "../stream_record.ts";
import {
  decideSend,
  fullBucket,
  softCapBytes,
  spend,
  type TokenBucket,
  type WalPolicy,
} from "./batching.ts";
import { Bulk, type FinishedBulk } from "./bulk.ts";
import { BulkWindow, fencedFault } from "./bulk_window.ts";
import { SlotTrimmer } from "./slot_trimmer.ts";
import type { Appended, Wal, WalState } from "./wal.ts";
import { WalMemory } from "./wal_memory.ts";
import { trimOffsetOf, walRecordBytes } from "./wal_object.ts";

export interface ObjectWalOptions {
  readonly store: ObjectStore;
  readonly env: Env;
  readonly clusterId: string;
  readonly nodeId: NodeId;
  readonly epoch: NodeEpoch;
  /** Each epoch starts at slot 0. */
  readonly firstSlot?: number;
  readonly policy: WalPolicy;
  /**
   * Reads the metadata log to its end and says whether this incarnation is still current. Asked only when
   * no own PUT has proved it for T_ACK_WAL; without it such a WAL is fenced.
   */
  readonly checkEpoch?: () => Promise<boolean>;
  /**
   * The store's clock at the registration or before: without it a machine whose own clocks stood still is not
   * found out until the second bulk.
   */
  readonly storeMs?: number | null;
  /** Send slow PUTs a second time. By default where they cost nothing; a directory gains nothing by it. */
  readonly hedge?: boolean;
  /** Slots that may hold uncommitted records: bounds the time of a recovery. Past it appends are refused. */
  readonly slotsMax?: number;
}

/** The bulk that is being filled, and the promise that its appends share. */
interface Open {
  readonly bulk: Bulk;
  readonly openedAtMs: number;
  readonly durable: Promise<Uint8Array>;
  readonly resolve: (body: Uint8Array) => void;
  readonly reject: (fault: FaultError) => void;
}

/** Call it right after the registration: the construction counts as the first proof of ownership. */
export function createObjectWal(options: ObjectWalOptions): Wal {
  return new ObjectWal(options);
}

class ObjectWal implements Wal {
  readonly #options: ObjectWalOptions;
  readonly #env: Env;
  readonly #memory = new WalMemory();
  readonly #window: BulkWindow;
  readonly #trimmer: SlotTrimmer;
  readonly #softCapBytes: number;
  #open: Open | null = null;
  #nextSlot: number;
  #trimmedTo: number;
  #unacknowledgedBytes = 0;
  #unacknowledgedRecords = 0;
  #bucket: TokenBucket;
  #cancelTimer: Cancel | null = null;
  #lookScheduled = false;
  #closing: Promise<void> | null = null;
  #fenced: string | null = null;
  /** Why nothing is written any more: fenced, or given up. */
  #over: FaultError | null = null;
  readonly #listeners: ((reason: string) => void)[] = [];

  constructor(options: ObjectWalOptions) {
    const { store, env, clusterId, firstSlot = 0, policy, checkEpoch = null } = options;
    const keyOf = walKeys(clusterId, options.nodeId, options.epoch);
    this.#options = options;
    this.#env = env;
    this.#nextSlot = firstSlot;
    this.#trimmedTo = firstSlot;
    env.metrics.gauge("skerry_wal_unacknowledged_bytes", 0);
    this.#softCapBytes = softCapBytes(policy);
    this.#bucket = fullBucket(env.clock.monotonicMs());
    this.#trimmer = new SlotTrimmer(store, env, keyOf, firstSlot);
    this.#window = new BulkWindow({
      store,
      env,
      keyOf,
      firstSlot,
      hedge: options.hedge ?? policy.kind === "unmetered",
      checkEpoch,
      storeMs: options.storeMs ?? null,
      onReleased: () => this.#deleteSlots(),
      onAcknowledged: (bulk) => this.#onAcknowledged(bulk),
      onFenced: (reason) => this.#onFenced(reason),
    });
  }

  append(record: StreamRecord): Appended {
    const bytes = this.#admit(record);
    if (this.#open !== null && this.#open.bulk.bodyBytes + bytes > this.#softCapBytes) this.#send();
    const open = this.#open ?? this.#openBulk();
    const stored = open.bulk.append(record);
    this.#unacknowledgedBytes += bytes;
    this.#unacknowledgedRecords += 1;
    const { slot } = open.bulk;
    if (open.bulk.bodyBytes >= this.#softCapBytes) this.#send();
    else this.#lookSoon();
    return { record: stored, slot, durable: open.durable };
  }

  trim(slot: number): void {
    assert(
      slot <= this.#window.acknowledgedTo,
      `Trim to slot ${slot}, but only slots below ${this.#window.acknowledgedTo} are acknowledged`,
    );
    this.#trimmedTo = Math.max(this.#trimmedTo, slot);
    this.#deleteSlots();
  }

  forget(slot: number, isViewed: (buffer: ArrayBufferLike) => boolean): void {
    // The window gave up its bulks, but their PUTs may still be under way.
    if (this.#over !== null) return;
    this.#memory.forget(Math.min(slot, this.#window.releasedTo), isViewed);
  }

  state(): WalState {
    return {
      unacknowledgedBytes: this.#unacknowledgedBytes,
      trimmedTo: this.#trimmedTo,
      nextSlot: this.#nextSlot,
      fenced: this.#fenced !== null,
      problem: this.#window.problem,
    };
  }

  onFenced(listener: (reason: string) => void): void {
    if (this.#fenced === null) this.#listeners.push(listener);
    else listener(this.#fenced);
  }

  abandon(fault: FaultError): void {
    if (this.#over !== null) return;
    this.#window.abandon(fault);
    this.#end(fault);
  }

  close(): Promise<void> {
    this.#closing ??= this.#shutDown();
    return this.#closing;
  }

  async #shutDown(): Promise<void> {
    if (this.#open !== null) this.#send();
    await this.#window.drained();
    await this.#trimmer.close();
  }

  /** Checks everything that can refuse a record, before any state changes. */
  #admit(record: StreamRecord): number {
    const { length } = record.payload;
    assert(length <= PAYLOAD_BYTES_MAX, `Record of ${length} bytes does not fit a WAL slot`);
    if (this.#over !== null) throw this.#over;
    if (this.#closing !== null) {
      throw new FaultError("closed", "WAL is closed", { retriable: false });
    }
    const bytes = walRecordBytes(record);
    const after = this.#unacknowledgedBytes + bytes;
    const records = this.#unacknowledgedRecords + 1;
    const memory = after + records * WAL_WAITING_RECORD_BYTES;
    if (this.#unacknowledgedBytes > 0 && memory > WAL_UNACKNOWLEDGED_BYTES_MAX) {
      const problem = `WAL has ${after} unacknowledged bytes in ${records} records`;
      throw new FaultError("overloaded", problem, { retriable: true });
    }
    const { slotsMax = Infinity } = this.#options;
    if (this.#open === null && this.#nextSlot - this.#trimmedTo >= slotsMax) {
      throw new FaultError("overloaded", `WAL has ${slotsMax} slots that are not committed`, {
        retriable: true,
      });
    }
    return bytes;
  }

  #openBulk(): Open {
    let resolve: (body: Uint8Array) => void = () => {};
    let reject: (fault: FaultError) => void = () => {};
    const durable = new Promise<Uint8Array>((onResolve, onReject) => {
      resolve = onResolve;
      reject = onReject;
    });
    // Whoever does not wait for the outcome must not crash the process with it.
    durable.catch(() => {});
    const bulk = new Bulk(this.#options, this.#nextSlot, this.#memory);
    this.#open = { bulk, openedAtMs: this.#env.clock.monotonicMs(), durable, resolve, reject };
    this.#nextSlot += 1;
    return this.#open;
  }

  /** Looks after the current turn, so that all records of one request share the bulk. */
  #lookSoon(): void {
    if (this.#lookScheduled || this.#cancelTimer !== null) return;
    this.#lookScheduled = true;
    queueMicrotask(() => {
      this.#lookScheduled = false;
      this.#look();
    });
  }

  #look(): void {
    if (this.#open === null) return;
    const nowMs = this.#env.clock.monotonicMs();
    const decision = decideSend(this.#options.policy, this.#bucket, {
      nowMs,
      openedAtMs: this.#open.openedAtMs,
      inFlight: this.#window.size,
    });
    if (decision.send) return this.#send();
    if (decision.waitMs === null || this.#cancelTimer !== null) return;
    this.#cancelTimer = this.#env.clock.after(decision.waitMs, () => {
      this.#cancelTimer = null;
      this.#look();
    });
  }

  #send(): void {
    const open = this.#open;
    assert(open !== null, "An open bulk is sent");
    this.#open = null;
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    this.#bucket = spend(this.#options.policy, this.#bucket, this.#env.clock.monotonicMs());
    const finished = open.bulk.finish(trimOffsetOf(this.#trimmedTo));
    const { metrics } = this.#env;
    metrics.observe("skerry_wal_bulk_bytes", finished.body.length);
    metrics.count("skerry_wal_records_total", {}, finished.records);
    metrics.gauge("skerry_wal_unacknowledged_bytes", this.#unacknowledgedBytes);
    const resolve = () => open.resolve(finished.body);
    this.#window.push({ ...finished, resolve, reject: open.reject });
  }

  #onAcknowledged(bulk: FinishedBulk): void {
    this.#unacknowledgedBytes -= bulk.bodyBytes;
    this.#unacknowledgedRecords -= bulk.records;
    this.#env.metrics.gauge("skerry_wal_unacknowledged_bytes", this.#unacknowledgedBytes);
    this.#deleteSlots();
    this.#lookSoon();
  }

  #onFenced(reason: string): void {
    this.#fenced = reason;
    this.#env.log.log("error", "wal-fenced", { epoch: this.#options.epoch, reason });
    this.#end(fencedFault(reason));
    for (const listener of this.#listeners.splice(0)) listener(reason);
  }

  #end(fault: FaultError): void {
    this.#over = fault;
    this.#cancelTimer?.();
    this.#cancelTimer = null;
    this.#open?.reject(fault);
    this.#open = null;
    this.#unacknowledgedBytes = 0;
    this.#unacknowledgedRecords = 0;
    this.#env.metrics.gauge("skerry_wal_unacknowledged_bytes", 0);
  }

  /**
   * The newest acknowledged slot stays until a later one is acknowledged: a retransmitted PUT of it may
   * still be on its way, and must find the slot occupied. So may the slower of two hedged PUTs.
   */
  #deleteSlots(): void {
    if (this.#over !== null) return;
    const { acknowledgedTo, releasedTo } = this.#window;
    this.#trimmer.trimTo(Math.min(this.#trimmedTo, acknowledgedTo - 1, releasedTo));
  }
}
