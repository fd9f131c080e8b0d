/**
 * Which stream set objects to ask how much of them is dead: each once an hour, while anything changes, and
 * a few in one look. There may be thousands, and what else compaction has to do must not wait for them.
 */
import type { ObjectId, Position } from "../../lib/brand.ts";
import { COMPACTION_RUNS_MAX, COMPACTION_TIDY_MS } from "../../lib/limits.ts";
import type { StreamSetRef } from "../ports.ts";

export class TidyRound {
  #begun: { readonly at: Position; readonly atMs: number } | null = null;
  #left = new Set<ObjectId>();

  /** Whether some of this round are left for the next look. */
  get hasMore(): boolean {
    return this.#left.size > 0;
  }

  /** `at` is the end of the metadata. */
  next(
    objects: readonly StreamSetRef[],
    at: Position,
    nowMs: number,
  ): ReadonlySet<ObjectId> {
    if (this.#left.size === 0 && this.#isDue(at, nowMs)) {
      this.#begun = { at, atMs: nowMs };
      this.#left = new Set(objects.map(({ objectId }) => objectId));
    }
    const waiting = objects.filter(({ objectId }) => this.#left.has(objectId));
    const next = waiting.slice(0, COMPACTION_RUNS_MAX).map(({ objectId }) => objectId);
    for (const id of next) this.#left.delete(id);
    // The others were replaced meanwhile.
    if (next.length === waiting.length) this.#left.clear();
    return new Set(next);
  }

  #isDue(at: Position, nowMs: number): boolean {
    const last = this.#begun;
    return last === null || (last.at !== at && nowMs - last.atMs >= COMPACTION_TIDY_MS);
  }
}
