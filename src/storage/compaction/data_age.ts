/**
 * How old the data of a stream set object is: the age of the metadata entry that committed its oldest
 * part, by the store's clock. So it survives compactions, restarts and clock jumps.
 */
import type { Clock } from "../../env/clock.ts";
import type { Position } from "../../lib/brand.ts";
import { Lru } from "../../lib/lru.ts";
import { logKey } from "../../object/object_key.ts";
import type { ObjectStore } from "../../object/object_store.ts";
import type { StreamSetRef } from "../ports.ts";
import type { CompactionOptions } from "./options.ts";

type AgeLimits = Pick<CompactionOptions, "forceSplitMs" | "waitObjectsMax" | "setBytesMax">;

interface Seen {
  readonly ageMs: number;
  readonly atMs: number;
}

const POSITIONS_MAX = 1_000;
/** What has this share of the age of a forced split goes along with an object that has all of it. */
const OLD_SHARE = 0.5;

export class DataAge {
  readonly #store: ObjectStore;
  readonly #clusterId: string;
  readonly #clock: Clock;
  readonly #seen = new Lru<Position, Seen>(POSITIONS_MAX, () => 1);

  constructor(store: ObjectStore, clusterId: string, clock: Clock) {
    this.#store = store;
    this.#clusterId = clusterId;
    this.#clock = clock;
  }

  /** One request for each position. An entry that was trimmed is older than any age that is asked for. */
  async ageMs(at: Position): Promise<number> {
    const nowMs = this.#clock.monotonicMs();
    let seen = this.#seen.get(at);
    if (seen === undefined) {
      const entry = await this.#store.get(logKey(this.#clusterId, at));
      const ageMs = entry === null ? Infinity : entry.storeNowMs - entry.lastModifiedMs;
      seen = { ageMs, atMs: nowMs };
      this.#seen.set(at, seen);
    }
    return seen.ageMs + nowMs - seen.atMs;
  }

  /**
   * Of a node's objects, the oldest first: those to split up. Each would come to that age, and its streams
   * would get an object of every one of them; so what is half as old goes along.
   */
  async tooOld(
    objects: readonly StreamSetRef[],
    { forceSplitMs, waitObjectsMax, setBytesMax }: AgeLimits,
  ): Promise<readonly StreamSetRef[]> {
    const old: StreamSetRef[] = [];
    let bytes = 0;
    for (const object of objects.slice(0, waitObjectsMax)) {
      bytes += object.size;
      if (old.length > 0 && bytes > setBytesMax) break;
      const share = old.length === 0 ? 1 : OLD_SHARE;
      if (await this.ageMs(object.order) < forceSplitMs * share) break;
      old.push(object);
    }
    return old;
  }
}
