/**
 * One bucket, seen by each process over a bad line: latency, 503 and 409, answers that get lost, requests
 * that land long after their caller gave up, and again after they succeeded, throttling, outages, deletes
 * that fail in part. What the bucket itself does is atomic, in the order in which requests land.
 */
import { FaultError } from "../../src/lib/errors.ts";
import { type Random, randomInt } from "../../src/env/random.ts";
import { PROBE_PREFIX } from "../../src/object/object_key.ts";
import { createMemoryStore } from "../../src/object/memory.ts";
import type { ObjectInfo, ObjectStore } from "../../src/object/object_store.ts";
import type { SimProcess } from "./process.ts";
import { between, chance, pick, type World } from "./world.ts";

/** Probabilities per request, unless said. */
export interface StoreFaults {
  readonly fail: number;
  /** It happens, the answer does not come; the caller learns of it after its time-out. */
  readonly loseAnswer: number;
  /** The caller is told of a failure; the request lands up to `ghostMsMax` later. */
  readonly ghost: number;
  /** It succeeds, and lands once more later. */
  readonly duplicate: number;
  readonly partialDelete: number;
  /** Takes up to ten seconds. */
  readonly slow: number;
  /** Per page of a listing: takes up to ten seconds, while keys come and go. */
  readonly slowList: number;
  /** Per listing: its keys come in any order, as some stores give them. */
  readonly unorderedList: number;
  readonly ghostMsMax: number;
  readonly latencyMs: number;
}

export const NO_STORE_FAULTS: StoreFaults = {
  fail: 0,
  loseAnswer: 0,
  ghost: 0,
  duplicate: 0,
  partialDelete: 0,
  slow: 0,
  slowList: 0,
  unorderedList: 0,
  ghostMsMax: 0,
  latencyMs: 5,
};

export type StoreOp = "put" | "create" | "get" | "head" | "list" | "delete";

export interface Landed {
  readonly op: StoreOp;
  readonly key: string;
  readonly process: SimProcess;
  /** Counts what this store was asked for, from 1. */
  readonly number: number;
  readonly bytes: Uint8Array | null;
  /** For a create: false when something else was there. */
  readonly created: boolean;
  /** Its caller had given up, or had its answer already. */
  readonly isLate: boolean;
}

/** A request as the process knows it: when it left, and what it was told. */
export interface Answered {
  readonly op: StoreOp;
  readonly key: string;
  readonly process: SimProcess;
  /** True time at which this attempt left the process. */
  readonly askedMs: number;
  /** True time at which the store did it. */
  readonly landedMs: number;
  /** A get: whether the object is there. A create: whether this attempt made it. */
  readonly found: boolean;
}

const SLOW_MS = 10_000;
const TIMEOUT_MS = 8_000;
/** After this nothing that left before the healing is still on its way back. */
const HEALED_MS = 180_000;
const PAGE_KEYS = 20;

interface Request<T> {
  readonly op: StoreOp;
  readonly key: string;
  readonly signal?: AbortSignal | undefined;
  /** Does it, at once. */
  readonly effect: () => Promise<T>;
  /** Called when the caller stops waiting while the request may still land. */
  readonly detach?: () => void;
}

function foundIn(op: StoreOp, value: unknown): boolean {
  if (op === "create") return (value as { created: boolean }).created;
  return value !== null;
}

export class SimStore {
  readonly world: World;
  /** What is really there. */
  readonly bucket: ObjectStore;
  readonly #random: Random;
  readonly #landed: ((landed: Landed) => void)[] = [];
  readonly #asked: ((op: StoreOp, key: string, process: SimProcess) => void)[] = [];
  readonly #answered: ((answered: Answered) => void)[] = [];
  faults: StoreFaults;
  /** The store's own clock against true time. */
  skewMs = 0;
  #requests = 0;
  #isFaulty: boolean;
  #outageUntilMs = 0;
  #lateUntilMs = 0;
  #fullUntilMs = 0;
  /** Probability that a request lands although its process died meanwhile. */
  landsAfterDeath = 0.5;
  /** Decides about a request as it is made; null for the usual chance. */
  judge: ((number: number, op: StoreOp, key: string, process: SimProcess) => void) | null = null;

  constructor(world: World, faults: StoreFaults) {
    this.world = world;
    this.faults = faults;
    this.#isFaulty = faults !== NO_STORE_FAULTS;
    this.#random = world.random("store");
    this.bucket = createMemoryStore({
      nowMs: () => world.wallMs + this.skewMs,
      monotonicMs: () => world.nowMs,
      after: (delayMs, work) => world.after(delayMs, work),
    });
  }

  get requests(): number {
    return this.#requests;
  }

  /** Whether a request may fail at all; stays true for those that were under way when the store healed. */
  get isFaulty(): boolean {
    return this.#isFaulty;
  }

  /** True time after which nothing lands that was asked for until now. */
  get lateUntilMs(): number {
    return this.#lateUntilMs;
  }

  onLanded(listener: (landed: Landed) => void): void {
    this.#landed.push(listener);
  }

  onAsked(listener: (op: StoreOp, key: string, process: SimProcess) => void): void {
    this.#asked.push(listener);
  }

  /** In the moment before the process hears it. */
  onAnswered(listener: (answered: Answered) => void): void {
    this.#answered.push(listener);
  }

  /** No space: writes are refused, everything else goes on. */
  full(forMs: number): void {
    this.world.note(`store is full for ${Math.round(forMs)} ms`);
    this.#fullUntilMs = Math.max(this.#fullUntilMs, this.world.nowMs + forMs);
  }

  outage(forMs: number): void {
    this.world.note(`store is out for ${Math.round(forMs)} ms`);
    this.#outageUntilMs = Math.max(this.#outageUntilMs, this.world.nowMs + forMs);
  }

  heal(): void {
    this.world.note("store is healed");
    this.faults = { ...NO_STORE_FAULTS, latencyMs: this.faults.latencyMs };
    this.#outageUntilMs = 0;
    this.#fullUntilMs = 0;
    this.world.after(HEALED_MS, () => void (this.#isFaulty = false));
  }

  /** The store as one process sees it. */
  connect(process: SimProcess): ObjectStore {
    const { bucket } = this;
    const ask = <T>(request: Request<T>) => this.#ask(process, request);
    const listPage = (prefix: string, startAfter: string | undefined) =>
      ask({
        op: "list",
        key: prefix,
        effect: async () => {
          const page: ObjectInfo[] = [];
          const options = startAfter === undefined ? {} : { startAfter };
          for await (const info of bucket.list(prefix, options)) {
            page.push(info);
            if (page.length === PAGE_KEYS) break;
          }
          return page;
        },
      });
    return {
      put: (key, body, { ifAbsent = false, signal } = {}) => {
        let bytes = body;
        return ask({
          op: ifAbsent ? "create" : "put",
          key,
          signal,
          effect: async () => {
            const answer = await bucket.put(key, bytes, { ifAbsent });
            return answer;
          },
          // Whoever was answered may use the buffer again; what is under way keeps its bytes.
          detach: () => void (bytes = body.slice()),
        });
      },
      putParts: async (key, parts) => {
        const copies: Uint8Array[] = [];
        for await (const part of parts) copies.push(part.slice());
        const again = async function* () {
          yield* copies;
        };
        await ask({ op: "put", key, effect: () => bucket.putParts(key, again()) });
      },
      get: (key, options = {}) =>
        ask({
          op: "get",
          key,
          signal: options.signal,
          effect: () =>
            bucket.get(key, options.range === undefined ? {} : { range: options.range }),
        }),
      head: (key) => ask({ op: "head", key, effect: () => bucket.head(key) }),
      list: (prefix, { startAfter } = {}) => {
        const pages = async function* () {
          for (let after = startAfter;;) {
            const page = await listPage(prefix, after);
            yield* page;
            if (page.length < PAGE_KEYS) return;
            after = page.at(-1)!.key;
          }
        };
        // The probe may refuse a store for it; the rest must not depend on it.
        const isShuffled = !prefix.startsWith(PROBE_PREFIX) &&
          chance(this.#random, this.faults.unorderedList);
        return isShuffled ? this.#shuffled(pages()) : pages();
      },
      delete: (keys) => this.#delete(process, keys),
      close: () => Promise.resolve(),
    };
  }

  async *#shuffled(infos: AsyncIterable<ObjectInfo>): AsyncIterable<ObjectInfo> {
    const all: ObjectInfo[] = [];
    for await (const info of infos) all.push(info);
    while (all.length > 0) yield all.splice(randomInt(this.#random, all.length), 1)[0]!;
  }

  #delete(process: SimProcess, keys: readonly string[]) {
    const kept = new Set(
      keys.filter(() => chance(this.#random, this.faults.partialDelete)),
    );
    const doomed = keys.filter((key) => !kept.has(key));
    return this.#ask(process, {
      op: "delete",
      key: doomed.join(" "),
      effect: async () => {
        const { gone } = await this.bucket.delete(doomed);
        return { gone, failed: [...kept] };
      },
    });
  }

  #ask<T>(process: SimProcess, request: Request<T>): Promise<T> {
    const { world } = this;
    const number = ++this.#requests;
    const { op, key, signal } = request;
    if (!process.alive) return new Promise(() => {});
    return new Promise<T>((resolve, reject) => {
      let isSettled = false;
      const settle = (work: () => void) => {
        if (isSettled) return;
        isSettled = true;
        signal?.removeEventListener("abort", onAbort);
        request.detach?.();
        work();
      };
      const fail = (code: "store-unavailable" | "store-full" | "aborted", why: string) =>
        settle(() => reject(new FaultError(code, `${op} ${key}: ${why}`, { retriable: true })));
      const onAbort = () => fail("aborted", "aborted");
      signal?.addEventListener("abort", onAbort, { once: true });
      if (signal?.aborted === true) return onAbort();
      this.judge?.(number, op, key, process);
      for (const listener of this.#asked) listener(op, key, process);
      const askedMs = world.nowMs;
      const { there, back, fault, laterMs } = this.#plan(op);
      const answer = (work: () => void) => world.after(back, () => process.deliver(work));
      const land = (isFirst: boolean) => {
        if (!process.alive && !chance(this.#random, this.landsAfterDeath)) {
          return world.note(`store #${number} ${op} is lost with ${process.name}`);
        }
        const landedMs = world.nowMs;
        this.#land(process, number, request, !isFirst || isSettled).then((value) => {
          if (!isFirst) return;
          if (fault === "lost") {
            world.after(
              TIMEOUT_MS,
              () => process.deliver(() => fail("store-unavailable", "time-out")),
            );
          } else {
            answer(() =>
              settle(() => {
                const found = foundIn(op, value);
                const told = { op, key, process, askedMs, landedMs, found };
                for (const listener of this.#answered) listener(told);
                resolve(value);
              })
            );
          }
        }, (error: unknown) => answer(() => settle(() => reject(error))));
      };
      const isFull = (op === "put" || op === "create") && world.nowMs < this.#fullUntilMs;
      if (isFull) {
        world.after(there + back, () => process.deliver(() => fail("store-full", "no space left")));
        return;
      }
      if (fault === "fail" || fault === "ghost" || world.nowMs < this.#outageUntilMs) {
        if (fault === "ghost") world.after(laterMs, () => land(false));
        world.after(there + back, () => {
          if (process.alive) {
            world.note(`store #${number} ${op} ${key} fails (${fault ?? "outage"})`);
          }
          process.deliver(() => fail("store-unavailable", op === "create" ? "409 or 503" : "503"));
        });
        return;
      }
      world.after(there, () => land(true));
      if (fault === "duplicate") world.after(there + laterMs, () => land(false));
    });
  }

  #plan(op: StoreOp) {
    const random = this.#random;
    const { faults } = this;
    const isWrite = op === "put" || op === "create" || op === "delete";
    const trip = () => faults.latencyMs * (0.2 + random.float() * random.float() * 4);
    const slow = op === "list" ? Math.max(faults.slow, faults.slowList) : faults.slow;
    const there = trip() + (chance(random, slow) ? random.float() * SLOW_MS : 0);
    const back = trip();
    const laterMs = random.float() * random.float() * faults.ghostMsMax;
    this.#lateUntilMs = Math.max(this.#lateUntilMs, this.world.nowMs + there + laterMs);
    let fault: "fail" | "lost" | "ghost" | "duplicate" | null = null;
    if (chance(random, faults.fail)) fault = "fail";
    else if (isWrite && chance(random, faults.loseAnswer)) fault = "lost";
    else if (isWrite && chance(random, faults.ghost)) fault = "ghost";
    else if (isWrite && chance(random, faults.duplicate)) fault = "duplicate";
    return { there, back, fault, laterMs };
  }

  async #land<T>(
    process: SimProcess,
    number: number,
    request: Request<T>,
    isLate: boolean,
  ): Promise<T> {
    const { op, key, effect } = request;
    const value = await effect();
    const created = op !== "create" || foundIn(op, value);
    if (op !== "get" && op !== "head") {
      const outcome = op === "create" ? created ? " created" : " exists" : "";
      const size = Array.isArray(value) ? ` (${value.length} keys)` : "";
      this.world.note(`store #${number} ${process.name} ${op} ${key}${outcome}${size}`);
    }
    const isStored = op === "put" || op === "create" && created;
    const bytes = isStored ? (await this.bucket.get(key))?.bytes ?? null : null;
    for (const listener of this.#landed) {
      listener({ op, key, process, number, bytes, created, isLate });
    }
    return value;
  }

  /** Some probability for some faults; a fault kind that is off for a seed lets others come through. */
  static swarm(
    random: Random,
    ghostsMs: readonly number[] = [100, 5_000, 60_000, 600_000],
  ): StoreFaults {
    const some = (max: number) => chance(random, 0.5) ? random.float() * max : 0;
    return {
      fail: some(0.15),
      loseAnswer: some(0.1),
      ghost: some(0.1),
      duplicate: some(0.1),
      partialDelete: some(0.2),
      slow: some(0.03),
      slowList: some(0.3),
      unorderedList: some(1),
      ghostMsMax: pick(random, ghostsMs),
      latencyMs: between(random, 1, 60),
    };
  }
}
