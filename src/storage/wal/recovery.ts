/**
 * Recovery of a dead incarnation's WAL: check every slot from the trim point on, put our seal into the first
 * empty one, then replay. After the seal the old incarnation can acknowledge nothing more, so what was found is
 * final: all that was acknowledged, and perhaps a tail that was not. Strict: a damaged slot stops everything
 * before the seal. BeginRecovery must be committed first (it fixes the trim point and our token).
 */
import type { Env } from "../../env/env.ts";
import type { NodeId } from "../../lib/brand.ts";
import { DecodeError } from "../../lib/bytes.ts";
import { FaultError } from "../../lib/errors.ts";
import {
  WAL_BULKS_IN_FLIGHT_MAX,
  WAL_OBJECT_HEADER_BYTES,
  WAL_RECOVERY_KEPT_BYTES_MAX,
  WAL_RECOVERY_READ_AHEAD_SLOTS,
} from "../../lib/limits.ts";
import { createExactly } from "../../object/create.ts";
import type { ObjectStore } from "../../object/object_store.ts";
import type { WalToRecover } from "../ports.ts";
import type { StreamRecord } from "../stream_record.ts";
import { planSlot, type SlotState } from "./recovery_plan.ts";
import { checkWalObject, encodeSeal, readWalHeader, walRecords } from "./wal_object.ts";
import { listWalSlots, slotKey } from "./wal_slots.ts";

export interface RecoverWalOptions {
  readonly store: ObjectStore;
  readonly env: Env;
  readonly clusterId: string;
  readonly wal: Pick<WalToRecover, "nodeId" | "epoch" | "recovery" | "walTrim">;
  /** For the log only: the seal names the owner and the recovery entry. */
  readonly recovererNodeId?: NodeId;
  readonly signal?: AbortSignal;
}

export interface RecoveredWal {
  /** From the trim point to the seal, in the order of the WAL; may be read once. Payloads are views. */
  readonly records: AsyncIterable<StreamRecord>;
  readonly sealedSlot: number;
}

/**
 * Throws FaultError: `data-loss` (a damaged or lost slot, named by key; nothing was sealed), `fenced` (a later
 * recoverer is at work), and what the store throws. Safe to repeat after any of them, and after a crash.
 */
export function recoverWal(options: RecoverWalOptions): Promise<RecoveredWal> {
  return new Recovery(options).run();
}

/** The recovery position if these first bytes of an object are those of a seal. */
function sealIn(bytes: Uint8Array): number | null {
  try {
    const { bodyLength, sticky } = readWalHeader(bytes);
    return bodyLength === 0 ? sticky : null;
  } catch (error) {
    if (error instanceof DecodeError) return null;
    throw error;
  }
}

class Recovery {
  readonly #options: RecoverWalOptions;
  readonly #reading = new Map<number, Promise<Uint8Array | null>>();
  /** The first slots, kept from the check for the replay. */
  readonly #kept = new Map<number, Uint8Array>();
  #keptBytes = 0;
  #highestSlot = -1;

  constructor(options: RecoverWalOptions) {
    this.#options = options;
  }

  async run(): Promise<RecoveredWal> {
    const { store, clusterId, wal, env, recovererNodeId } = this.#options;
    for await (const { slot } of listWalSlots(store, clusterId, wal)) {
      this.#highestSlot = Math.max(this.#highestSlot, slot);
    }
    const sealedSlot = await this.#findEnd();
    env.log.log("info", "wal-sealed", {
      node: wal.nodeId,
      epoch: wal.epoch,
      recovery: wal.recovery,
      recoverer: recovererNodeId,
      walTrim: wal.walTrim,
      sealedSlot,
    });
    return { records: this.#replay(sealedSlot), sealedSlot };
  }

  #key(slot: number): string {
    return slotKey(this.#options.clusterId, this.#options.wal, slot);
  }

  /** Reads a slot, and starts reading the next ones; nothing is read beyond the last that is known to exist. */
  #read(slot: number, lastSlot: number): Promise<Uint8Array | null> {
    const { store, signal } = this.#options;
    const options = signal === undefined ? {} : { signal };
    const end = Math.min(slot + WAL_RECOVERY_READ_AHEAD_SLOTS, lastSlot + 1);
    for (let ahead = slot; ahead < end; ahead++) {
      if (this.#reading.has(ahead) || this.#kept.has(ahead)) continue;
      const read = store.get(this.#key(ahead), options).then((got) => got?.bytes ?? null);
      // A read ahead may fail before anybody waits for it; its turn reports the error.
      read.catch(() => {});
      this.#reading.set(ahead, read);
    }
    const wanted = this.#reading.get(slot) ?? Promise.resolve(null);
    this.#reading.delete(slot);
    return wanted;
  }

  #check(slot: number, bytes: Uint8Array | null): SlotState {
    if (bytes === null) return { kind: "empty" };
    try {
      return checkWalObject(bytes, this.#options.wal, slot);
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error;
      return { kind: "damaged", detail: error.message };
    }
  }

  #keep(slot: number, bytes: Uint8Array): void {
    if (this.#keptBytes + bytes.length > WAL_RECOVERY_KEPT_BYTES_MAX) return;
    this.#keptBytes += bytes.length;
    this.#kept.set(slot, bytes);
  }

  /** Walks to the end of the WAL and makes sure that it stays the end. */
  async #findEnd(): Promise<number> {
    for (let slot = this.#options.wal.walTrim;; slot++) {
      const found = await this.#read(slot, this.#highestSlot);
      if (!(await this.#settle(slot, found))) return slot;
    }
  }

  /** Does what the plan says about a slot; true when it holds data. One that gets filled while we seal it is planned again. */
  async #settle(slot: number, bytes: Uint8Array | null): Promise<boolean> {
    const { recovery } = this.#options.wal;
    const state = this.#check(slot, bytes);
    const plan = planSlot({ slot, state, recovery, highestSlot: this.#highestSlot });
    switch (plan.step) {
      case "continue":
        if (bytes !== null) this.#keep(slot, bytes);
        return true;
      case "adopt":
        return false;
      case "superseded":
        throw this.#superseded(plan.by);
      case "data-loss":
        if (bytes === null) await this.#refuseSealAbove(slot);
        throw this.#dataLoss(slot, plan.detail);
      case "seal": {
        await this.#refuseSealAbove(slot);
        const found = await this.#putSeal(slot);
        return found !== null && this.#settle(slot, found);
      }
    }
  }

  /** Null when the seal is in the slot, else what is there instead. */
  async #putSeal(slot: number): Promise<Uint8Array | null> {
    const { store, env, wal, signal } = this.#options;
    const { clock, random, log } = env;
    const seal = encodeSeal(wal, slot, wal.recovery);
    const outcome = await createExactly(store, this.#key(slot), seal, {
      clock,
      random,
      log,
      ...(signal === undefined ? {} : { signal }),
    });
    return outcome.created ? null : outcome.found;
  }

  #superseded(by: number): FaultError {
    const { nodeId, epoch, recovery } = this.#options.wal;
    return new FaultError(
      "fenced",
      `Recovery ${recovery} of node ${nodeId} epoch ${epoch} is superseded by ${by}`,
      { retriable: false },
    );
  }

  #dataLoss(slot: number, detail: string): FaultError {
    return new FaultError("data-loss", `WAL object ${this.#key(slot)}: ${detail}`, {
      retriable: false,
    });
  }

  /**
   * A seal goes into the first empty slot, so a slot below one was full once. It is empty now because a later
   * recoverer has finished and deleted it, or because it was lost. A seal stands among the last slots.
   */
  async #refuseSealAbove(slot: number): Promise<void> {
    const { store, wal } = this.#options;
    const range = { start: 0, end: WAL_OBJECT_HEADER_BYTES };
    const first = Math.max(slot + 1, this.#highestSlot - WAL_BULKS_IN_FLIGHT_MAX);
    for (let above = first; above <= this.#highestSlot; above++) {
      const got = await store.get(this.#key(above), { range });
      const by = got === null ? null : sealIn(got.bytes);
      if (by === null) continue;
      if (by > wal.recovery) throw this.#superseded(by);
      throw this.#dataLoss(slot, `empty below the seal in slot ${above}`);
    }
  }

  async *#replay(sealedSlot: number): AsyncGenerator<StreamRecord> {
    this.#reading.clear();
    for (let slot = this.#options.wal.walTrim; slot < sealedSlot; slot++) {
      const kept = this.#kept.get(slot);
      this.#kept.delete(slot);
      yield* walRecords(kept ?? (await this.#readAgain(slot, sealedSlot - 1)));
    }
  }

  async #readAgain(slot: number, lastSlot: number): Promise<Uint8Array> {
    const bytes = await this.#read(slot, lastSlot);
    if (bytes !== null && this.#check(slot, bytes).kind === "data") return bytes;
    if (bytes === null) {
      throw new FaultError(
        "object-missing",
        `WAL object ${this.#key(slot)} vanished during recovery`,
        {
          retriable: true,
        },
      );
    }
    throw new FaultError("corrupt", `WAL object ${this.#key(slot)} reads differently now`, {
      retriable: true,
    });
  }
}
