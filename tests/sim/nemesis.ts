/** What goes wrong around the node: crashes, restarts, rival processes, pauses, outages, clocks that jump, idle hours. */
import { type Random, randomInt } from "../../src/env/random.ts";
import type { Cluster } from "./cluster.ts";
import type { SimStore } from "./sim_store.ts";
import { between, chance, pick, type World } from "./world.ts";

const KINDS = [
  "crash",
  "restart",
  "rival",
  "pause",
  "long-pause",
  "outage",
  "full",
  "wall-jump",
  "store-jump",
  "crash-at-call",
  "crash-at-end",
] as const;
type Kind = typeof KINDS[number];

/** Two processes differ by less than the day after which an idle producer is forgotten. */
const JUMP_MS = 11 * 3_600_000;

/** Crashes of one run between an end of a transaction and what follows it, and how likely one is. */
const ENDS_MAX = 4;
const END_CHANCE = 0.2;
/** Store calls from an end of a transaction to its last record, and some. */
const END_CALLS = 12;

/** More than T_RETAIN, a session, or a request takes. */
const LONG_PAUSE_MS = 1_500_000;

export class Nemesis {
  readonly #world: World;
  readonly #cluster: Cluster;
  readonly #store: SimStore;
  readonly #random: Random;
  readonly #kinds: readonly Kind[];
  #ends = 0;

  constructor(world: World, cluster: Cluster, store: SimStore) {
    this.#world = world;
    this.#cluster = cluster;
    this.#store = store;
    this.#random = world.random("nemesis");
    this.#kinds = KINDS.filter(() => chance(this.#random, 0.5));
    world.note(`nemesis: ${this.#kinds.join(" ") || "none"}`);
  }

  async strike(): Promise<void> {
    if (this.#kinds.length === 0) return;
    switch (pick(this.#random, this.#kinds)) {
      case "crash":
        return this.#cluster.crash();
      case "restart":
        return await this.#cluster.restart();
      case "rival":
        if (this.#cluster.processes().length < 3) this.#cluster.start();
        return;
      case "pause":
        return this.#pause();
      case "long-pause":
        return this.#longPause();
      case "full":
        return this.#store.full(between(this.#random, 500, 60_000));
      case "outage":
        return this.#store.outage(between(this.#random, 500, 60_000));
      case "wall-jump":
        return this.#jumpWall();
      case "store-jump":
        this.#store.skewMs += Math.round(between(this.#random, -600_000, 600_000));
        return this.#world.note(`store clock is off by ${Math.round(this.#store.skewMs)} ms`);
      case "crash-at-end":
        return;
      case "crash-at-call":
        return this.#crashAtCall(this.#store.requests + 1 + randomInt(this.#random, 60));
    }
  }

  /** The end of a transaction is about to be asked for. */
  strikeAtEnd(): void {
    if (!this.#kinds.includes("crash-at-end") || this.#ends >= ENDS_MAX) return;
    if (!chance(this.#random, END_CHANCE)) return;
    this.#ends++;
    this.#crashAtCall(this.#store.requests + 1 + randomInt(this.#random, END_CALLS));
  }

  #pause(): void {
    const processes = this.#cluster.processes();
    if (processes.length === 0) return;
    pick(this.#random, processes).pause(between(this.#random, 100, 90_000), this.#how(0.3));
  }

  /** A suspended machine's own clock stands still: the wall clock or the store's must tell, so not both lie. */
  #how(suspended: number): "stopped" | "suspended" {
    const isBlind = this.#kinds.includes("wall-jump") && this.#kinds.includes("store-jump");
    return chance(this.#random, suspended) && !isBlind ? "suspended" : "stopped";
  }

  /** Longer than every time-out of clients, store and node; a supervisor starts another one meanwhile. */
  #longPause(): void {
    const processes = this.#cluster.processes();
    if (processes.length === 0 || processes.length > 2) return;
    const forMs = between(this.#random, 120_000, LONG_PAUSE_MS);
    pick(this.#random, processes).pause(forMs, this.#how(0.5));
    this.#cluster.start();
  }

  #jumpWall(): void {
    this.#cluster.hasWrongClocks = true;
    for (const process of this.#cluster.processes()) {
      process.wallSkewMs = Math.round(between(this.#random, -JUMP_MS, JUMP_MS));
      this.#world.note(`${process.name} wall clock is off by ${Math.round(process.wallSkewMs)} ms`);
    }
  }

  /** Between the moment in which a request leaves and that in which it may land. */
  #crashAtCall(number: number): void {
    this.#store.judge = (at) => {
      if (at < number) return;
      this.#store.judge = null;
      this.#world.after(0, () => this.#cluster.crash());
    };
  }
}
