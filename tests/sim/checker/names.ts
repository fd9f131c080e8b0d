/**
 * I17: a create without an answer holds up its writer. It creates no later entry of the metadata log before it
 * knows what stands at the earlier position, and no WAL slot further away than its window.
 */
import { WAL_BULKS_IN_FLIGHT_MAX } from "../../../src/lib/limits.ts";
import { parseLogKey, parseSnapshotKey, parseWalKey } from "./keys.ts";
import type { SimProcess } from "../process.ts";
import type { SimStore } from "../sim_store.ts";
import type { World } from "../world.ts";

interface Names {
  /** Positions that were asked for and not found out about. */
  readonly entries: Set<number>;
  /** By WAL: a recoverer seals others' beside writing its own. */
  readonly slots: Map<number, Set<number>>;
}

function slotsOf({ slots }: Names, epoch: number): Set<number> {
  let found = slots.get(epoch);
  if (found === undefined) {
    found = new Set();
    slots.set(epoch, found);
  }
  return found;
}

export function watchNames(world: World, store: SimStore, clusterId: string): void {
  const byProcess = new Map<SimProcess, Names>();

  function namesOf(process: SimProcess): Names {
    let names = byProcess.get(process);
    if (names === undefined) {
      names = { entries: new Set(), slots: new Map() };
      byProcess.set(process, names);
    }
    return names;
  }

  store.onAsked((op, key, process) => {
    if (op !== "create") return;
    const names = namesOf(process);
    const { entries } = names;
    const at = parseLogKey(clusterId, key);
    const wal = parseWalKey(clusterId, key);
    if (at !== null) {
      const open = [...entries].find((one) => one < at);
      if (open !== undefined) {
        world.violated(`I17: ${process.name} creates entry ${at}, does not know entry ${open}`);
      }
      entries.add(at);
    } else if (wal !== null) {
      const { slot } = wal;
      const slots = slotsOf(names, wal.nodeEpoch);
      const open = [...slots].find((one) => one + WAL_BULKS_IN_FLIGHT_MAX <= slot);
      if (open !== undefined) {
        world.violated(`I17: ${process.name} creates slot ${slot}, does not know slot ${open}`);
      }
      slots.add(slot);
    }
  });
  store.onAnswered(({ op, key, process, found }) => {
    if (op !== "create" && !(op === "get" && found)) return;
    const names = namesOf(process);
    const at = parseLogKey(clusterId, key);
    const wal = parseWalKey(clusterId, key);
    if (at !== null) names.entries.delete(at);
    // A snapshot says what all positions below it have become.
    const upTo = parseSnapshotKey(clusterId, key);
    for (const open of upTo === null ? [] : names.entries) {
      if (open <= upTo!) names.entries.delete(open);
    }
    if (wal !== null) slotsOf(names, wal.nodeEpoch).delete(wal.slot);
  });
}
