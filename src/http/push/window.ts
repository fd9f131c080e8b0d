/**
 * What is read of a partition and not behind its committed position: which records may be sent now, which wait, and
 * how far everything is done. Records of one key are sent one after the other, those without a key as they come.
 */
import { assert } from "../../lib/assert.ts";
import { toHex } from "../../lib/bytes.ts";
import { sha256 } from "../../lib/sha256.ts";
import type { RecordOutput } from "../port.ts";
import { rawBytes } from "../record_json.ts";

const KEY_BYTES_MAX = 64;

export interface Held {
  readonly offset: number;
  /** Null once it is done: nothing but its place is kept. */
  record: RecordOutput | null;
  readonly bytes: number;
  readonly key: string | null;
  /** Why it cannot be sent at all. */
  readonly unsendable: string | null;
  attempts: number;
  dueMs: number;
  isAlone: boolean;
  state: "waiting" | "sent" | "done";
}

export interface TakeLimits {
  readonly records: number;
  readonly bytes: number;
}

/** Long keys by what they hash to; two that collide only wait for each other. */
function keyOf({ key }: RecordOutput): string | null {
  if (key === null) return null;
  return toHex(key.length <= KEY_BYTES_MAX ? key : sha256(key));
}

export class PartitionWindow {
  readonly #held: Held[] = [];
  #end: number;
  #bytes = 0;
  #waiting = 0;

  constructor(position: number) {
    this.#end = position;
  }

  /** Everything below it is done. */
  get position(): number {
    return this.#held[0]?.offset ?? this.#end;
  }

  /** What is to be read next. */
  get end(): number {
    return this.#end;
  }

  /** Of records that are not done. */
  get bytes(): number {
    return this.#bytes;
  }

  get count(): number {
    return this.#held.length;
  }

  /** Records that wait to be sent, now or later. */
  get waiting(): number {
    return this.#waiting;
  }

  /** What was read from the end on; offsets in between are none. */
  add(records: readonly RecordOutput[], next: number, unsendable: string | null = null): void {
    assert(next >= this.#end, "a window grows forward");
    for (const record of records) {
      const bytes = rawBytes(record);
      this.#held.push({
        offset: record.offset,
        record,
        bytes,
        key: keyOf(record),
        unsendable,
        attempts: 0,
        dueMs: 0,
        isAlone: unsendable !== null,
        state: "waiting",
      });
      this.#bytes += bytes;
      this.#waiting += 1;
    }
    this.#end = next;
  }

  /** The records of one delivery, in order; empty when nothing may be sent now. */
  take(nowMs: number, limits: TakeLimits): readonly Held[] {
    if (this.#waiting === 0) return [];
    const busy = new Set<string>();
    const taken: Held[] = [];
    let bytes = 0;
    for (const held of this.#held) {
      if (held.state === "done") continue;
      const isBehind = held.key !== null && busy.has(held.key);
      const isFree = held.state === "waiting" && held.dueMs <= nowMs && !isBehind;
      if (!isFree || (held.isAlone && taken.length > 0)) {
        if (held.key !== null) busy.add(held.key);
        continue;
      }
      if (taken.length > 0 && bytes + held.bytes > limits.bytes) break;
      taken.push(held);
      bytes += held.bytes;
      if (held.isAlone || taken.length === limits.records) break;
    }
    for (const held of taken) held.state = "sent";
    this.#waiting -= taken.length;
    return taken;
  }

  done(taken: readonly Held[]): void {
    for (const held of taken) {
      assert(held.state === "sent", "only what was sent is done");
      held.state = "done";
      held.record = null;
      this.#bytes -= held.bytes;
    }
    const first = this.#held.findIndex(({ state }) => state !== "done");
    this.#held.splice(0, first < 0 ? this.#held.length : first);
  }

  /** To be sent again, not before a time. */
  again(taken: readonly Held[], dueMs: number, isAlone: boolean): void {
    for (const held of taken) {
      assert(held.state === "sent", "only what was sent comes back");
      held.state = "waiting";
      held.dueMs = dueMs;
      held.isAlone ||= isAlone;
    }
    this.#waiting += taken.length;
  }

  /** When the next record is due that waits for its time; null where none does. */
  nextDueMs(nowMs: number): number | null {
    let next: number | null = null;
    for (const { state, dueMs } of this.#held) {
      if (state === "waiting" && dueMs > nowMs && (next === null || dueMs < next)) next = dueMs;
    }
    return next;
  }
}
