/**
 * WALs that are not recovered yet, by the rules of recovery itself: what it would refuse is damage, what it
 * would cut off is a note. Reads one slot at a time.
 */
import type { WalRow } from "../controller/image.ts";
import type { Position } from "../lib/brand.ts";
import { DecodeError } from "../lib/bytes.ts";
import { isFault } from "../lib/errors.ts";
import { SLOT_BYTES, WAL_BULKS_IN_FLIGHT_MAX, WAL_OBJECT_HEADER_BYTES } from "../lib/limits.ts";
import { walEpochPrefix } from "../object/object_key.ts";
import { Replay } from "../storage/recover_replay.ts";
import type { StreamView } from "../storage/ports.ts";
import { endOffset, type StreamRecord } from "../storage/stream_record.ts";
import { planSlot, type SlotState } from "../storage/wal/recovery_plan.ts";
import { readWalHeader, readWalObject } from "../storage/wal/wal_object.ts";
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

/** What the header of a slot near the end says. */
interface TopSlot {
  readonly slot: number;
  /** The recovery entry's position, when it is a seal. */
  readonly sealedBy: number | null;
  /** The first slot that was not uploaded yet when it was written. */
  readonly walTrim: number;
}

/** Null when recovery would succeed, and when its metadata is too old to tell. */
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
  /** The last entry there is: the seal of a later one is by a recoverer that the metadata does not know. */
  readonly #known: Position;
  readonly #replay: Replay;
  readonly #highest: number;
  #firstBad: number | null = null;
  #isAhead = false;

  constructor(options: WalCheckOptions) {
    this.#options = options;
    this.#known = options.state.at;
    const { clusterId, row } = options;
    this.#replay = new Replay(walEpochPrefix(clusterId, row.nodeId, row.epoch), streamsOf(options));
    this.#highest = Math.max(-1, ...options.slots.keys());
  }

  #key(slot: number): string {
    return slotKey(this.#options.clusterId, this.#options.row, slot);
  }

  async #refused(slot: number, detail: string): Promise<void> {
    this.#firstBad ??= slot;
    await this.#options.report(damage("wal", this.#key(slot), detail));
  }

  async #ahead(slot: number, detail: string): Promise<void> {
    this.#isAhead = true;
    const text = `${detail}: the end of the metadata log is lost`;
    await this.#options.report(damage("ahead", this.#key(slot), text));
  }

  async run(): Promise<BrokenWal | null> {
    const { row } = this.#options;
    if (row.state.kind === "sealed") {
      await this.#checkSeal(row.state.slot);
      return null;
    }
    const top = await this.#readTop();
    for (let slot = await this.#begin(top); slot <= this.#highest; slot++) {
      if (await this.#slot(slot, top)) continue;
      if (!this.#isAhead) await this.#noteTail(slot);
      break;
    }
    return this.#firstBad === null || this.#isAhead
      ? null
      : { row, firstBad: this.#firstBad, highest: this.#highest };
  }

  /** Headers of the last slots, as far as they can be read: a seal is among them, as is the newest trim. */
  async #readTop(): Promise<TopSlot[]> {
    const { store, slots, row } = this.#options;
    const range = { start: 0, end: WAL_OBJECT_HEADER_BYTES };
    const top: TopSlot[] = [];
    const first = Math.max(row.walTrim, this.#highest - WAL_BULKS_IN_FLIGHT_MAX);
    for (let slot = first; slot <= this.#highest; slot++) {
      const got = slots.has(slot) ? await store.get(this.#key(slot), { range }) : null;
      if (got !== null) top.push(...this.#topSlot(slot, got.bytes));
    }
    return top;
  }

  /** None when the header is damaged or foreign: the walk names it. */
  #topSlot(slot: number, bytes: Uint8Array): TopSlot[] {
    const { row } = this.#options;
    try {
      const header = readWalHeader(bytes);
      const { nodeId, epoch, startOffset, bodyLength, sticky, trimOffset } = header;
      const isOwn = nodeId === row.nodeId && epoch === row.epoch &&
        startOffset === slot * SLOT_BYTES && trimOffset < startOffset;
      const walTrim = Math.ceil((trimOffset + 1) / SLOT_BYTES);
      return isOwn ? [{ slot, sealedBy: bodyLength === 0 ? sticky : null, walTrim }] : [];
    } catch (error) {
      if (!(error instanceof DecodeError)) throw error;
      return [];
    }
  }

  /** A writer trims once its upload is in the metadata: one that trimmed further saw more of it than there is. */
  async #begin(top: readonly TopSlot[]): Promise<number> {
    const { walTrim } = this.#options.row;
    const newest = top.findLast((one) => one.walTrim > walTrim);
    if (newest === undefined) return walTrim;
    const detail = `slots below ${newest.walTrim} were uploaded, the metadata says ${walTrim}`;
    await this.#ahead(newest.slot, detail);
    return newest.walTrim;
  }

  /** False at the end of the WAL. Behind damage the walk goes on, to name the rest of it. */
  async #slot(slot: number, top: readonly TopSlot[]): Promise<boolean> {
    const { state, records } = await this.#read(slot);
    const plan = planSlot({ slot, state, recovery: this.#known, highestSlot: this.#highest });
    switch (plan.step) {
      case "continue":
        await this.#take(slot, records);
        return true;
      case "data-loss":
        await this.#refused(slot, plan.detail);
        return true;
      case "superseded":
        await this.#ahead(slot, `sealed by entry ${plan.by}`);
        return false;
      case "adopt":
        return false;
      case "seal":
        return await this.#isEmptyBelowSeal(slot, top);
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

  async #take(slot: number, records: readonly StreamRecord[]): Promise<void> {
    const wrong = records.map((record) => recordProblem(this.#options, record))
      .find((problem) => problem !== null);
    if (wrong !== undefined) await this.#options.report(damage("batch", this.#key(slot), wrong));
    const unknown = this.#isAhead ? undefined : records.find((record) => this.#isUnknown(record));
    if (unknown !== undefined) {
      await this.#ahead(slot, `stream ${unknown.streamId} was never opened for it`);
    }
    // Behind a loss, and by old ends, every stream is broken: that says nothing new.
    if (this.#firstBad !== null || this.#isAhead) return;
    try {
      for (const record of records) this.#replay.add(record);
    } catch (error) {
      if (!isFault(error, "data-loss")) throw error;
      await this.#refused(slot, error.message);
    }
    // Only the place in each stream is wanted, not the records.
    this.#replay.takeBlock();
  }

  /** Who writes to a stream has opened it: whoever holds it since has a later epoch, or it was deleted. */
  #isUnknown(record: StreamRecord): boolean {
    const { state, row } = this.#options;
    const stream = state.streams.get(record.streamId);
    if (stream === undefined) return record.streamId >= state.nextStreamId;
    return stream.owner.epoch < row.epoch && endOffset(record) > stream.end;
  }

  /** A seal stands in the first empty slot: an empty one below it was full once. */
  async #isEmptyBelowSeal(slot: number, top: readonly TopSlot[]): Promise<boolean> {
    const seal = top.find((one) => one.slot > slot && one.sealedBy !== null);
    if (seal === undefined) return false;
    if (seal.sealedBy !== null && seal.sealedBy > this.#known) {
      await this.#ahead(seal.slot, `sealed by entry ${seal.sealedBy}`);
      return false;
    }
    await this.#refused(slot, `empty below the seal in slot ${seal.slot}`);
    return true;
  }

  /** Slots above the end: writes that were under way at a crash, or the rest after a lost slot. */
  async #noteTail(end: number): Promise<void> {
    const above = [...this.#options.slots.keys()].filter((slot) => slot > end).length;
    if (above === 0) return;
    const detail =
      `the WAL ends here, ${above} slots lie above: writes that were never acknowledged` +
      ", unless this object was lost";
    await this.#options.report({ severity: "note", kind: "wal-tail", key: this.#key(end), detail });
  }

  async #checkSeal(slot: number): Promise<void> {
    if (!this.#options.slots.has(slot)) return;
    const { state } = await this.#read(slot);
    if (state.kind === "seal" || state.kind === "empty") return;
    const detail = state.kind === "damaged" ? state.detail : "it holds records instead of a seal";
    await this.#options.report(damage("wal", this.#key(slot), detail));
  }
}
