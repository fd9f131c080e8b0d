/** Rewrites of which nothing came, remembered by their inputs: which are not tried again, and which alone. */
import type { ObjectId } from "../../lib/brand.ts";
import { Lru } from "../../lib/lru.ts";
import type { WithoutEffect } from "./run.ts";

const REMEMBERED_MAX = 1_000;

export interface Input {
  readonly objectId: ObjectId;
  readonly size: number;
}

export function bytesIn(inputs: readonly Input[]): number {
  return inputs.reduce((sum, { size }) => sum + size, 0);
}

export function keyOf(kind: string, inputs: readonly Input[]): string {
  return `${kind} ${inputs.map(({ objectId }) => objectId).join(" ")}`;
}

export class Refusals {
  readonly #barren = new Lru<string, true>(REMEMBERED_MAX, () => 1);
  readonly #refused = new Lru<string, true>(REMEMBERED_MAX, () => 1);
  readonly #alone = new Lru<string, true>(REMEMBERED_MAX, () => 1);

  isBarren(key: string): boolean {
    return this.#barren.get(key) === true;
  }

  /** A commit that it shared was refused: whoever was to blame is found out one by one. */
  isAlone(key: string): boolean {
    return this.#alone.get(key) === true;
  }

  shared(key: string): void {
    this.#alone.set(key, true);
  }

  /** A second refusal of the same inputs is no race any more: metadata will never take it. */
  remember(kind: string, key: string, outcome: WithoutEffect["kind"]): "again" | "never" | "later" {
    if (outcome === "conflict" && this.#refused.get(key) === undefined) {
      this.#refused.set(key, true);
      return "again";
    }
    // A cleanup waits for its stream's start to move, and keeps account of that by itself.
    if (outcome === "nothing" && kind === "cleanup") return "later";
    this.#barren.set(key, true);
    return outcome === "conflict" ? "never" : "later";
  }
}
