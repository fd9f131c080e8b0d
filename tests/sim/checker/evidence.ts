/**
 * I16: nothing is believed on old proof. A node that has not seen the end of the metadata log for T_ACK lists the
 * snapshots, and for an entry of its own reads it back, before it goes on to the next position. One that has not
 * proved the ownership of its WAL for T_ACK_WAL acknowledges nothing before it has read the log to its end.
 * Judged by what a process asks the store, by true time, and by the gauge of bytes that it has not acknowledged.
 */
import { METADATA_EVIDENCE_AGE_MS_MAX, WAL_EVIDENCE_AGE_MS_MAX } from "../../../src/lib/limits.ts";
import { snapshotPrefix } from "../../../src/object/object_key.ts";
import { parseLogKey, parseSnapshotKey, parseWalKey } from "./keys.ts";
import type { SimProcess } from "../process.ts";
import type { Answered, SimStore } from "../sim_store.ts";
import type { World } from "../world.ts";

const UNACKNOWLEDGED = "skerry_wal_unacknowledged_bytes";

/** A create whose answer came on old proof. */
interface Doubt {
  readonly at: number;
  /** This attempt made the entry. What was there before is read as it stands, whoever wrote it. */
  readonly isMine: boolean;
  /** When the attempt left: until then nobody had registered, if the entry is true. */
  readonly askedMs: number;
  isListed: boolean;
  isReadBack: boolean;
}

type Times = Pick<Answered, "askedMs" | "landedMs" | "found">;

interface Knowledge {
  /** True time for which the process knows the end of the log; −1 before it does. */
  logMs: number;
  /** True time for which it knows that its WAL is its own. */
  walMs: number;
  unacknowledged: number;
  doubt: Doubt | null;
}

/** The end of the log was seen, and nobody had registered behind it: good for the log and for the WAL. */
function atEnd(known: Knowledge, askedMs: number): void {
  known.logMs = Math.max(known.logMs, askedMs);
  known.walMs = Math.max(known.walMs, askedMs);
}

export class EvidenceChecker {
  readonly #world: World;
  readonly #clusterId: string;
  readonly #known = new Map<SimProcess, Knowledge>();
  /** Who made an entry, and when. */
  readonly #made = new Map<number, { readonly process: SimProcess; readonly atMs: number }>();
  /** Acknowledgements that were looked at. */
  acknowledgements = 0;

  constructor(world: World, store: SimStore, clusterId: string) {
    this.#world = world;
    this.#clusterId = clusterId;
    store.onLanded(({ op, key, process, created }) => {
      const at = op === "create" && created ? parseLogKey(clusterId, key) : null;
      if (at !== null) this.#made.set(at, { process, atMs: world.nowMs });
    });
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
    const snapshotAt = parseSnapshotKey(this.#clusterId, key);
    if (snapshotAt !== null && op === "get" && found) this.#gotSnapshot(known, snapshotAt);
    const at = parseLogKey(this.#clusterId, key);
    if (at === null) return;
    if (op === "create") this.#created(known, at, { askedMs, landedMs, found });
    else if (op === "get") {
      if (found) this.#gotOwn(known, at, process);
      this.#got(known, at, { askedMs, landedMs, found });
    }
  }

  /** "Exists" may be the echo of an own attempt, which is known once it is read: the log ended there then. */
  #gotOwn(known: Knowledge, at: number, process: SimProcess): void {
    const made = this.#made.get(at);
    if (made?.process !== process) return;
    if (made.atMs - known.logMs <= METADATA_EVIDENCE_AGE_MS_MAX) atEnd(known, made.atMs);
  }

  /** What counts is how old the proof was when the entry came to be; hearing of it late makes it no less true. */
  #created(
    known: Knowledge,
    at: number,
    { askedMs, landedMs, found }: Times,
  ): void {
    const isOld = known.logMs < 0 || landedMs - known.logMs > METADATA_EVIDENCE_AGE_MS_MAX;
    if (isOld) {
      known.doubt = { at, isMine: found, askedMs, isListed: false, isReadBack: false };
    } else if (found) atEnd(known, askedMs);
  }

  /** It says what the position has become, so nothing is believed of the answer. */
  #gotSnapshot(known: Knowledge, upTo: number): void {
    if (known.doubt?.isListed === true && known.doubt.at <= upTo) known.doubt = null;
  }

  #got(known: Knowledge, at: number, { askedMs, landedMs, found }: Times): void {
    const { doubt } = known;
    if (!found) {
      // Nothing stands there: the log ended here, unless the entry was trimmed, which proves nothing.
      const wasTrimmed = (this.#made.get(at)?.atMs ?? Infinity) <= landedMs;
      if (!wasTrimmed) atEnd(known, askedMs);
    } else if (doubt !== null && doubt.at === at && doubt.isListed) {
      doubt.isReadBack = true;
      // Not trimmed by now; but others may have gone on since, and only the create knows that they had not.
      known.logMs = Math.max(known.logMs, askedMs);
      if (doubt.isMine) known.walMs = Math.max(known.walMs, doubt.askedMs);
    }
  }
}
