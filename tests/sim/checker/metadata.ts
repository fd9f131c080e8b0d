/**
 * A replica of its own, fed with each entry in the moment in which it lands: I2 to I4, I7, I8, I10, I13 after
 * every entry, and what lies in the store against what the entry says: committed objects are there (I9), a
 * snapshot is what the entries up to it make (I15).
 */
import {
  chainHolds,
  commandsAppliedOnce,
  epochsIncrease,
  idsMoveForward,
  objectsCover,
  type Problem,
  rangesHold,
  summaryOf,
} from "../../../src/controller/invariants.ts";
import { decodeSnapshot, dumpTables, encodeSnapshot } from "../../../src/controller/snapshot.ts";
import { Replica } from "../../../src/controller/replica.ts";
import type { State } from "../../../src/controller/state.ts";
import { type ObjectId, type Position } from "../../../src/lib/brand.ts";
import { equalBytes } from "../../../src/lib/bytes.ts";
import { crc32c } from "../../../src/lib/crc32c.ts";
import { messageOf } from "../../../src/lib/errors.ts";
import type { Uuid } from "../../../src/lib/uuid.ts";
import { dataKey } from "../../../src/object/object_key.ts";
import { readIndex } from "../../../src/storage/format/object_reader.ts";
import type { StreamRange } from "../../../src/storage/ports.ts";
import { parseLogKey, parseSnapshotKey } from "./keys.ts";
import { codecs, type SimProcess } from "../process.ts";
import type { Landed, SimStore } from "../sim_store.ts";
import type { World } from "../world.ts";

/** Rows may name their fields in any order. */
function textOf(state: State): string {
  const sorted = (_: string, value: unknown) =>
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).toSorted(([a], [b]) => a < b ? -1 : 1))
      : value;
  return JSON.stringify(dumpTables(state), sorted);
}

export class MetadataChecker {
  readonly #world: World;
  readonly #store: SimStore;
  readonly #clusterId: string;
  readonly #replica: Replica;
  readonly #entries: Uint8Array[] = [];
  /** The last command of each incarnation that is in the log. */
  readonly #commands = new Map<Uuid, number>();
  /** Goes on from a snapshot of the first, taken at the last look. */
  #restored: Replica;
  /** Snapshots that nodes wrote. */
  snapshots = 0;
  readonly #ranges = new Map<ObjectId, readonly StreamRange[]>();
  /** Objects whose bytes were compared with their row. */
  readonly #checked = new Set<ObjectId>();

  constructor(world: World, store: SimStore, clusterId: string) {
    this.#world = world;
    this.#store = store;
    this.#clusterId = clusterId;
    this.#replica = new Replica(clusterId);
    this.#restored = new Replica(clusterId);
    store.onLanded((landed) => this.#onLanded(landed));
  }

  get state(): State {
    return this.#replica.state;
  }

  lastCommand(incarnation: Uuid): number | undefined {
    return this.#commands.get(incarnation);
  }

  /** Called with the process behind each registration, in the order of the log. */
  onRegistered: ((process: SimProcess, at: number) => void) | null = null;

  #onLanded({ op, key, created, bytes, process }: Landed): void {
    if (op !== "create" || !created || bytes === null) return;
    const snapshotAt = parseSnapshotKey(this.#clusterId, key);
    if (snapshotAt !== null) return this.#checkSnapshot(snapshotAt, bytes);
    const at = parseLogKey(this.#clusterId, key);
    if (at === null) return;
    // A late duplicate of an entry that was trimmed, or of the last one: the protocol's to survive.
    if (at <= this.state.at) return;
    const before = summaryOf(this.state);
    this.#entries.push(bytes);
    try {
      const { entry } = this.#replica.take(bytes);
      this.#restored.take(bytes);
      this.#commands.set(entry.writer.incarnation, entry.writer.lastCommand);
      const types = entry.records.map(({ type }) => type).join(" ");
      this.#world.note(`metadata ${at}: ${types}`);
      if (types.includes("node-registered")) this.onRegistered?.(process, at);
    } catch (error) {
      return this.#world.violated(`I2: entry ${at}: ${messageOf(error)}`);
    }
    this.#report(epochsIncrease(before, this.state));
    this.#report(idsMoveForward(before, this.state));
    this.#report(rangesHold(this.state));
  }

  #report(problem: Problem): void {
    if (problem !== null) this.#world.violated(problem);
  }

  /** I15: what a node wrote is the fold of the entries up to there. */
  #checkSnapshot(at: Position, bytes: Uint8Array): void {
    this.snapshots++;
    this.#world.note(`snapshot ${at}`);
    const folded = new Replica(this.#clusterId);
    for (const entry of this.#entries.slice(0, at)) folded.take(entry);
    try {
      const { state, lastHash } = decodeSnapshot(bytes, at, codecs);
      const isSame = folded.state.at === at && equalBytes(lastHash, folded.lastHash) &&
        textOf(state) === textOf(folded.state);
      if (!isSame) this.#world.violated(`I15: snapshot ${at} differs from the entries up to it`);
    } catch (error) {
      this.#world.violated(`I15: snapshot ${at}: ${messageOf(error)}`);
    }
  }

  /** I15, the other way round: entries make the same of a snapshot as of what it was taken of. */
  #checkRestored(): void {
    if (textOf(this.#restored.state) !== textOf(this.state)) {
      const [mine, theirs] = [textOf(this.state), textOf(this.#restored.state)];
      let at = 0;
      while (mine[at] === theirs[at]) at += 1;
      this.#world.violated(
        `I15: at ${this.state.at} a replica from a snapshot has ${
          theirs.slice(at - 60, at + 40)
        }, ` +
          `the other ${mine.slice(at - 60, at + 40)}`,
      );
    }
    const { state, lastHash } = this.#replica;
    if (state.at === 0) return;
    const bytes = encodeSnapshot({ state, lastHash }, codecs);
    this.#restored = new Replica(this.#clusterId);
    this.#restored.adopt(decodeSnapshot(bytes, state.at, codecs));
  }

  /** The checks that read the store; call it between events. */
  async check(): Promise<void> {
    this.#checkRestored();
    this.#report(chainHolds(this.#entries));
    this.#report(commandsAppliedOnce(this.#entries));
    for (const { objectId, state, kind, size, bytesCrc, indexCrc } of this.state.objects.values()) {
      if (state !== "committed" || this.#checked.has(objectId)) continue;
      const key = dataKey(this.#clusterId, objectId);
      const got = await this.#store.bucket.get(key);
      if (got === null) return this.#world.violated(`I9: object ${objectId} is not in the store`);
      // A composite's size is that of the data behind its links.
      const isWhole = kind === "composite" || got.bytes.length === size;
      if (!isWhole || crc32c(got.bytes) !== bytesCrc) {
        return this.#world.violated(`I9: object ${objectId} differs from its row`);
      }
      this.#checked.add(objectId);
      if (kind !== "stream-set") continue;
      const index = await readIndex(this.#store.bucket, key, {
        size,
        checksums: { bytesCrc, indexCrc },
      });
      if (index === null) return this.#world.violated(`I9: object ${objectId} has no index`);
      const entries = Array.from({ length: index.count }, (_, i) => index.entry(i));
      this.#ranges.set(objectId, entries);
    }
    await this.#checkPresence();
    this.#report(objectsCover(this.state, this.#ranges));
  }

  async #checkPresence(): Promise<void> {
    for (const { objectId, state } of this.state.objects.values()) {
      if (state !== "committed") continue;
      if (await this.#store.bucket.head(dataKey(this.#clusterId, objectId)) === null) {
        this.#world.violated(`I9: object ${objectId} is gone from the store`);
      }
    }
  }
}
