/**
 * I17: a create without an answer holds up its writer. It creates no later entry of the metadata log before it
 * knows what stands at the earlier position, and no WAL slot further away than its window.
 */
import { WAL_BULKS_IN_FLIGHT_MAX } from "../../../src/lib/limits.ts";
import { parseLogKey, parseWalKey } from "../../../src/object/object_key.ts";
import type { SimProcess } from "../process.ts";
import type { SimStore } from "../sim_store.ts";
import type { World } from "../world.ts";

interface Names {
  /** Positions that were asked for and not found out about. */
  readonly entries: Set<number>;
  readonly slots: Set<number>;
}

export function watchNames(world: World, store: SimStore, clusterId: string): void {
  const byProcess = new Map<SimProcess, Names>();

  function namesOf(process: SimProcess): Names {
    let names = byProcess.get(process);
    if (names === undefined) {
      names = { entries: new Set(), slots: new Set() };
      byProcess.set(process, names);
    }
    return names;
  }

  store.onAsked((op, key, process) => {
    if (op !== "create") return;
    const { entries, slots } = namesOf(process);
    const at = parseLogKey(clusterId, key);
    const slot = parseWalKey(clusterId, key)?.slot;
    if (at !== null) {
      const open = [...entries].find((one) => one < at);
      if (open !== undefined) {
        world.violated(`I17: ${process.name} creates entry ${at}, does not know entry ${open}`);
      }
      entries.add(at);
    } else if (slot !== undefined) {
      const open = [...slots].find((one) => one + WAL_BULKS_IN_FLIGHT_MAX <= slot);
      if (open !== undefined) {
        world.violated(`I17: ${process.name} creates slot ${slot}, does not know slot ${open}`);
      }
      slots.add(slot);
    }
  });
  store.onAnswered(({ op, key, process, found }) => {
    if (op !== "create" && !(op === "get" && found)) return;
    const { entries, slots } = namesOf(process);
    const at = parseLogKey(clusterId, key);
    const slot = parseWalKey(clusterId, key);
    if (at !== null) entries.delete(at);
    if (slot !== null) slots.delete(slot.slot);
  });
}
