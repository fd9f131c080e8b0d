/**
 * The simulated world: a virtual clock, one seed for all chance, one trace of all that happens. An event
 * runs alone: the next one waits until every microtask of the last has run. The barrier is `setImmediate`:
 * nothing in a simulation does real I/O, so one turn of the event loop is enough on Bun and on Deno; bodies
 * of the runtime's own Request and Response take a few, for which `linger` asks.
 */
import type { Cancel } from "../../src/env/clock.ts";
import { type Random, randomInt, seededRandom } from "../../src/env/random.ts";

interface Event {
  readonly atMs: number;
  readonly order: number;
  work: (() => void) | null;
}

/** A broken invariant: the world stops at the first. */
export class Violation extends Error {
  override readonly name = "Violation";
}

const START_MS = 1_700_000_000_000;
/** Four are enough on both runtimes. */
const LINGER_TURNS = 12;
const TRACE_LINES_KEPT = 200_000;

function isBefore(a: Event, b: Event): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order);
}

/** A binary heap: the soonest event first, those of one moment in the order of their making. */
class Agenda {
  readonly #heap: Event[] = [];

  get size(): number {
    return this.#heap.length;
  }

  push(event: Event): void {
    const heap = this.#heap;
    heap.push(event);
    for (let at = heap.length - 1; at > 0;) {
      const parent = (at - 1) >> 1;
      if (!isBefore(heap[at]!, heap[parent]!)) return;
      [heap[at], heap[parent]] = [heap[parent]!, heap[at]!];
      at = parent;
    }
  }

  pop(): Event | undefined {
    const heap = this.#heap;
    const first = heap[0];
    const last = heap.pop();
    if (first === undefined || last === undefined || heap.length === 0) return first;
    heap[0] = last;
    for (let at = 0;;) {
      const left = 2 * at + 1;
      if (left >= heap.length) return first;
      const right = left + 1;
      const least = right < heap.length && isBefore(heap[right]!, heap[left]!) ? right : left;
      if (!isBefore(heap[least]!, heap[at]!)) return first;
      [heap[at], heap[least]] = [heap[least]!, heap[at]!];
      at = least;
    }
  }
}

/** All microtasks have run when this resolves. */
function barrier(): Promise<void> {
  return new Promise((resolve) => void setImmediate(resolve));
}

/**
 * The one promise method that takes other numbers of microtasks on Bun (two) and on Deno (four, as the language
 * says): with it two chains of one event may overtake each other. In a simulation it is made of `then` on both.
 */
const evenFinally = function <T>(this: Promise<T>, work?: (() => void) | null) {
  const done = () => Promise.resolve(work?.());
  return this.then(
    (value) => done().then(() => value),
    (error: unknown) =>
      done().then(() => {
        throw error;
      }),
  );
};
// oxlint-disable-next-line no-extend-native -- the simulated world replaces it for itself, with the same meaning
Object.defineProperty(Promise.prototype, "finally", { value: evenFinally });

export class World {
  readonly seed: number;
  readonly lines: string[] = [];
  #nowMs = 0;
  #order = 0;
  #events = 0;
  #hash = 0x811c9dc5;
  #hash2 = 0x1000193;
  #violation: Violation | null = null;
  readonly #agenda = new Agenda();
  #turns = 0;

  constructor(seed: number) {
    this.seed = seed;
  }

  /** True time, in milliseconds since the start of the world. */
  get nowMs(): number {
    return this.#nowMs;
  }
  /** True wall time; what a process or the store sees may differ. */
  get wallMs(): number {
    return START_MS + Math.floor(this.#nowMs);
  }
  get events(): number {
    return this.#events;
  }
  get violation(): Violation | null {
    return this.#violation;
  }
  /** Over every line of the trace so far. */
  get hash(): string {
    const hex = (value: number) => (value >>> 0).toString(16).padStart(8, "0");
    return hex(this.#hash) + hex(this.#hash2);
  }

  /** A generator of its own for each component: a draw in one does not move another. */
  random(name: string): Random {
    return seededRandom(this.seed).derive(name);
  }

  note(line: string): void {
    const text = `${this.#nowMs.toFixed(3).padStart(12)} ${line}`;
    for (let i = 0; i < text.length; i++) {
      this.#hash = Math.imul(this.#hash ^ text.charCodeAt(i), 0x01000193);
      this.#hash2 = Math.imul(this.#hash2 ^ text.charCodeAt(i), 0x85ebca6b) + 0x27d4eb2f | 0;
    }
    if (this.lines.length < TRACE_LINES_KEPT) this.lines.push(text);
  }

  /** Records a broken invariant; never throws, so that it can be called from anywhere. */
  violated(message: string): void {
    if (this.#violation !== null) return;
    this.note(`VIOLATION ${message}`);
    this.#violation = new Violation(message);
  }

  after(delayMs: number, work: () => void): Cancel {
    const atMs = this.#nowMs + Math.max(0, delayMs);
    const event: Event = { atMs, order: this.#order++, work };
    this.#agenda.push(event);
    return () => void (event.work = null);
  }

  sleep(delayMs: number): Promise<void> {
    return new Promise((resolve) => void this.after(delayMs, resolve));
  }

  /** Runs events until the condition holds; false when time or events ran out before. */
  async runUntil(isDone: () => boolean, withinMs: number, eventsMax = Infinity): Promise<boolean> {
    const untilMs = this.#nowMs + withinMs;
    const eventsEnd = this.#events + eventsMax;
    await this.#settle();
    for (;;) {
      if (this.#violation !== null) throw this.#violation;
      if (isDone()) return true;
      if (this.#events >= eventsEnd) return false;
      const event = this.#agenda.pop();
      if (event === undefined) return false;
      if (event.work === null) continue;
      if (event.atMs > untilMs) {
        this.#agenda.push(event);
        this.#nowMs = Math.max(this.#nowMs, untilMs);
        return false;
      }
      this.#nowMs = Math.max(this.#nowMs, event.atMs);
      this.#events++;
      event.work();
      await this.#settle();
    }
  }

  /** The event of this moment takes some turns of the event loop more. */
  linger(): void {
    this.#turns = LINGER_TURNS;
  }

  async #settle(): Promise<void> {
    await barrier();
    for (; this.#turns > 0; this.#turns--) await barrier();
  }

  async run(forMs: number): Promise<void> {
    await this.runUntil(() => false, forMs);
  }

  /** Runs events until the promise settles. Throws when it does not in time: something hangs. */
  async drive<T>(promise: Promise<T>, withinMs: number, what: string): Promise<T> {
    let isSettled = false;
    const settled = () => void (isSettled = true);
    promise.then(settled, settled);
    if (!await this.runUntil(() => isSettled, withinMs)) {
      this.violated(`I18: ${what} does not end within ${withinMs} ms`);
      throw this.#violation!;
    }
    return await promise;
  }
}

export function chance(random: Random, probability: number): boolean {
  return random.float() < probability;
}

export function pick<T>(random: Random, from: readonly T[]): T {
  return from[randomInt(random, from.length)]!;
}

export function between(random: Random, low: number, high: number): number {
  return low + random.float() * (high - low);
}
