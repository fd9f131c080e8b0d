/**
 * I16: nothing is believed on old proof. A node that has not seen the end of the metadata log for T_ACK lists the
 * snapshots, and for an entry of its own reads it back, before it goes on to the next position. One that has not
 * proved the ownership of its WAL for T_ACK_WAL acknowledges nothing before it has read the log to its end.
 * Judged by what a process asks the store, by true time, and by the gauge of bytes that it has not acknowledged.
 */
import { METADATA_EVIDENCE_AGE_MS_MAX, WAL_EVIDENCE_AGE_MS_MAX } from "../../../src/lib/limits.ts";
import { parseLogKey, parseWalKey, snapshotPrefix } from "../../../src/object/object_key.ts";
import type { SimProcess } from "../process.ts";
import type { Answered, SimStore } from "../sim_store.ts";
import type { World } from "../world.ts";

const UNACKNOWLEDGED = "skerry_wal_unacknowledged_bytes";

/** A create whose answer came on old proof. */
interface Doubt {
  readonly at: number;
  readonly isMine: boolean;
  isListed: boolean;
  isReadBack: boolean;
}

interface Knowledge {
  /** True time for which the process knows the end of the log; −1 before it does. */
  logMs: number;
  /** True time for which it knows that its WAL is its own. */
  walMs: number;
  unacknowledged: number;
  doubt: Doubt | null;
}

export class EvidenceChecker {
  readonly #world: World;
  readonly #clusterId: string;
  readonly #known = new Map<SimProcess, Knowledge>();
  /** Acknowledgements that were looked at. */
  acknowledgements = 0;

  constructor(world: World, store: SimStore, clusterId: string) {
    this.#world = world;
    this.#clusterId = clusterId;
    store.onAsked((op, key, process) => this.#onAsked(op, key, process));
    store.onAnswered((answered) => this.#onAnswered(answered));
  }

  watch(process: SimProcess): void {
    const known: Knowledge = { logMs: -1, walMs: -1, unacknowledged: 0, doubt: null };
    this.#known.set(process, known);
    process.onGauge = (name, value) => {
      if (name !== UNACKNOWLEDGED) return;
      // A fenced WAL says so, and gives up all that it holds.
      const isGivenUp = process.lastEvent === "wal-fenced";
      if (value < known.unacknowledged && !isGivenUp) this.#acknowledges(process, known);
      known.unacknowledged = value;
    };
  }

  #acknowledges(process: SimProcess, { walMs }: Knowledge): void {
    this.acknowledgements++;
    const ageMs = this.#world.nowMs - walMs;
    if (ageMs <= WAL_EVIDENCE_AGE_MS_MAX) return;
    this.#world.violated(
      `I16: ${process.name} acknowledges on proof that is ${
        Math.round(ageMs / 60_000)
      } minutes old`,
    );
  }

  #onAsked(op: Answered["op"], key: string, process: SimProcess): void {
    const doubt = this.#known.get(process)?.doubt ?? null;
    if (doubt === null) return;
    if (op === "list" && key === snapshotPrefix(this.#clusterId)) doubt.isListed = true;
    if (op !== "create") return;
    const at = parseLogKey(this.#clusterId, key);
    if (at === null || at <= doubt.at) return;
    const isProved = doubt.isListed && (doubt.isReadBack || !doubt.isMine);
    if (!isProved) {
      this.#world.violated(`I16: ${process.name} believes entry ${doubt.at} on old proof`);
    }
    this.#known.get(process)!.doubt = null;
  }

  #onAnswered({ op, key, process, askedMs, landedMs, found }: Answered): void {
    const known = this.#known.get(process);
    if (known === undefined) return;
    if (op === "create" && found && parseWalKey(this.#clusterId, key) !== null) {
      known.walMs = Math.max(known.walMs, askedMs);
    }
    const at = parseLogKey(this.#clusterId, key);
    if (at === null) return;
    if (op === "create") this.#created(known, at, { askedMs, landedMs, found });
    else if (op === "get") this.#got(known, at, askedMs, found);
  }

  /** What counts is how old the proof was when the entry came to be; hearing of it late makes it no less true. */
  #created(
    known: Knowledge,
    at: number,
    { askedMs, landedMs, found }: Pick<Answered, "askedMs" | "landedMs" | "found">,
  ): void {
    const isOld = known.logMs < 0 || landedMs - known.logMs > METADATA_EVIDENCE_AGE_MS_MAX;
    if (isOld) known.doubt = { at, isMine: found, isListed: false, isReadBack: false };
    else if (found) known.logMs = Math.max(known.logMs, askedMs);
  }

  #got(known: Knowledge, at: number, askedMs: number, found: boolean): void {
    const { doubt } = known;
    if (!found) {
      // Nothing stands there: the log ended here, and nobody had registered behind its end.
      known.logMs = Math.max(known.logMs, askedMs);
      known.walMs = Math.max(known.walMs, askedMs);
    } else if (doubt !== null && doubt.at === at && doubt.isListed) {
      doubt.isReadBack = true;
      known.logMs = Math.max(known.logMs, askedMs);
    }
  }
}
