/**
 * WALs that are not recovered yet, by the rules of recovery itself: what it would refuse is damage, what it
 * would cut off is a note. Reads one slot at a time.
 */
import type { WalRow } from "../controller/image.ts";
import { type Position, position } from "../lib/brand.ts";
import { DecodeError } from "../lib/bytes.ts";
import { isFault } from "../lib/errors.ts";
import { WAL_BULKS_IN_FLIGHT_MAX } from "../lib/limits.ts";
import { walEpochPrefix } from "../object/object_key.ts";
import { Replay } from "../storage/recover_replay.ts";
import type { StreamView } from "../storage/ports.ts";
import type { StreamRecord } from "../storage/stream_record.ts";
import { planSlot, type SlotState } from "../storage/wal/recovery_plan.ts";
import { readWalObject } from "../storage/wal/wal_object.ts";
import { slotKey } from "../storage/wal/wal_slots.ts";
import { damage } from "./finding.ts";
import { type ObjectCheckOptions, recordProblem } from "./fsck_object.ts";

/** A WAL that keeps its node from starting, and the first slot that recovery cannot use. */
export interface BrokenWal {
  readonly row: WalRow;
  readonly firstBad: number;
  readonly highest: number;
}

export interface WalCheckOptions extends ObjectCheckOptions {
  readonly row: WalRow;
  readonly slots: ReadonlyMap<number, number>;
}

/** Null when recovery would succeed. */
export async function checkWal(options: WalCheckOptions): Promise<BrokenWal | null> {
  return await new WalCheck(options).run();
}

function streamsOf({ state, row }: WalCheckOptions): StreamView[] {
  return [...state.streams.values()].filter(({ open, owner }) =>
    open && owner.nodeId === row.nodeId && owner.epoch === row.epoch
  );
}

class WalCheck {
  readonly #options: WalCheckOptions;
  /** Any recoverer to come has a later entry than all that exist. */
  readonly #recovery: Position;
  readonly #replay: Replay;
  readonly #highest: number;
  #firstBad: number | null = null;

  constructor(options: WalCheckOptions) {
    this.#options = options;
    this.#recovery = position(options.state.at + 1);
    const { clusterId, row } = options;
    this.#replay = new Replay(walEpochPrefix(clusterId, row.nodeId, row.epoch), streamsOf(options));
    this.#highest = Math.max(-1, ...options.slots.keys());
  }

  #key(slot: number): string {
    return slotKey(this.#options.clusterId, this.#options.row, slot);
  }

  #refused(slot: number, detail: string): void {
    this.#firstBad ??= slot;
    this.#options.report(damage("wal", this.#key(slot), detail));
  }

  async run(): Promise<BrokenWal | null> {
    const { row } = this.#options;
    if (row.state.kind === "sealed") {
      await this.#checkSeal(row.state.slot);
      return null;
    }
    for (let slot = row.walTrim; slot <= this.#highest; slot++) {
      if (await this.#slot(slot)) continue;
      this.#noteTail(slot);
      break;
    }
    return this.#firstBad === null
      ? null
      : { row, firstBad: this.#firstBad, highest: this.#highest };
  }

  /** False at the end of the WAL. Behind damage the walk goes on, to name the rest of it. */
  async #slot(slot: number): Promise<boolean> {
    const { state, records } = await this.#read(slot);
    const plan = planSlot({ slot, state, recovery: this.#recovery, highestSlot: this.#highest });
    switch (plan.step) {
      case "continue":
        this.#take(slot, records);
        return true;
      case "data-loss":
        this.#refused(slot, plan.detail);
        return true;
      case "superseded":
        this.#refused(slot, `sealed at ${plan.by}: the end of the metadata log is lost`);
        return false;
      case "adopt":
        return false;
      case "seal":
        return await this.#isEmptyBelowSeal(slot);
    }
  }

  async #read(slot: number): Promise<{ state: SlotState; records: readonly StreamRecord[] }> {
    const { store, slots, row } = this.#options;
    const got = slots.has(slot) ? await store.get(this.#key(slot)) : null;
    if (got === null) return { state: { kind: "empty" }, records: [] };
    try {
      const object = readWalObject(got.bytes, row, slot);
      return object.kind === "data"
        ? { state: { kind: "data" }, records: object.records }
        : { state: { kind: "seal", recovery: object.recovery }, records: [] };
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error;
      return { state: { kind: "damaged", detail: error.message }, records: [] };
    }
  }

  #take(slot: number, records: readonly StreamRecord[]): void {
    const wrong = records.map((record) => recordProblem(this.#options, record))
      .find((problem) => problem !== null);
    if (wrong !== undefined) this.#options.report(damage("batch", this.#key(slot), wrong));
    // Behind a loss every stream is broken: that says nothing new.
    if (this.#firstBad !== null) return;
    try {
      for (const record of records) this.#replay.add(record);
    } catch (error) {
      if (!isFault(error, "data-loss")) throw error;
      this.#refused(slot, error.message);
    }
    // Only the place in each stream is wanted, not the records.
    this.#replay.takeBlock();
  }

  /** A seal stands in the first empty slot: an empty one below it was full once. */
  async #isEmptyBelowSeal(slot: number): Promise<boolean> {
    const first = Math.max(slot + 1, this.#highest - WAL_BULKS_IN_FLIGHT_MAX);
    for (let above = first; above <= this.#highest; above++) {
      if ((await this.#read(above)).state.kind !== "seal") continue;
      this.#refused(slot, `empty below the seal in slot ${above}`);
      return true;
    }
    return false;
  }

  /** Slots above the end: writes that were under way at a crash, or the rest after a lost slot. */
  #noteTail(end: number): void {
    const above = [...this.#options.slots.keys()].filter((slot) => slot > end).length;
    if (above === 0) return;
    const detail =
      `the WAL ends here, ${above} slots lie above: writes that were never acknowledged` +
      ", unless this object was lost";
    this.#options.report({ severity: "note", kind: "wal-tail", key: this.#key(end), detail });
  }

  async #checkSeal(slot: number): Promise<void> {
    if (!this.#options.slots.has(slot)) return;
    const { state } = await this.#read(slot);
    if (state.kind === "seal" || state.kind === "empty") return;
    const detail = state.kind === "damaged" ? state.detail : "it holds records instead of a seal";
    this.#options.report(damage("wal", this.#key(slot), detail));
  }
}
