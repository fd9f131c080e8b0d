/** What goes wrong around the nodes: kills, rivals, pauses up to days, outages, clocks; a swarm of kinds per seed. */
import { type Random, randomInt } from "../../../src/env/random.ts";
import type { SimStore } from "../sim_store.ts";
import { between, chance, pick, type World } from "../world.ts";
import type { Fleet } from "./fleet.ts";
import type { Settings } from "./settings.ts";

const KINDS = [
  "kill",
  "kill-for-good",
  "kill-at-call",
  "rival",
  "pause",
  "long-pause",
  "recover",
  "outage",
  "full",
  "wall-jump",
  "store-jump",
] as const;
type Kind = typeof KINDS[number];

const DAY_MS = 24 * 3_600_000;
const JUMP_MS = 11 * 3_600_000;

export class Blows {
  readonly #world: World;
  readonly #fleet: Fleet;
  readonly #store: SimStore;
  readonly #settings: Settings;
  readonly #random: Random;
  readonly #kinds: readonly Kind[];

  constructor(world: World, fleet: Fleet, store: SimStore, settings: Settings) {
    this.#world = world;
    this.#fleet = fleet;
    this.#store = store;
    this.#settings = settings;
    this.#random = world.random("blows");
    this.#kinds = KINDS.filter((kind) => kind === "recover" || chance(this.#random, 0.5));
    world.note(`blows: ${this.#kinds.join(" ")}`);
  }

  strike(): void {
    const random = this.#random;
    const fleet = this.#fleet;
    const kind = pick(random, this.#kinds);
    if (kind === "recover") return void fleet.recoverSome();
    if (kind === "outage") return this.#store.outage(between(random, 500, 60_000));
    if (kind === "full") return this.#store.full(between(random, 500, 60_000));
    if (kind === "store-jump") return this.#jumpStore();
    const alive = fleet.alive();
    if (alive.length === 0) return fleet.startAll();
    const node = pick(random, alive);
    switch (kind) {
      case "kill":
        return fleet.kill(node, true);
      case "kill-for-good":
        return fleet.kill(node, alive.length === 1);
      case "kill-at-call":
        return this.#killAtCall(1 + randomInt(random, 40));
      case "rival":
        if (alive.length < 6) fleet.start(pick(random, fleet.nodeIds));
        return;
      case "pause":
        return node.process.pause(between(random, 100, 90_000), this.#how());
      case "long-pause":
        return node.process.pause(
          this.#settings.ages
            ? between(random, DAY_MS / 2, 8 * DAY_MS)
            : between(random, 60_000, 1_500_000),
          this.#how(),
        );
      case "wall-jump":
        node.process.wallSkewMs = Math.round(between(random, -JUMP_MS, JUMP_MS));
        return this.#world.note(
          `${node.process.name} wall clock is off by ${node.process.wallSkewMs}`,
        );
    }
  }

  /** A suspended machine's own clock stands still: the wall clock or the store's must tell, so not both lie. */
  #how(): "stopped" | "suspended" {
    const isBlind = this.#kinds.includes("wall-jump") || this.#kinds.includes("store-jump");
    return chance(this.#random, 0.4) && !isBlind ? "suspended" : "stopped";
  }

  #jumpStore(): void {
    this.#store.skewMs += Math.round(between(this.#random, -600_000, 600_000));
    this.#world.note(`store clock is off by ${this.#store.skewMs} ms`);
  }

  /** Whoever makes the n-th request from now dies between its leaving and its landing. */
  #killAtCall(after: number): void {
    const number = this.#store.requests + after;
    this.#store.judge = (at, _op, _key, process) => {
      if (at < number) return;
      this.#store.judge = null;
      const node = this.#fleet.alive().find((one) => one.process === process);
      if (node !== undefined) this.#world.after(0, () => this.#fleet.kill(node, true));
    };
  }
}
