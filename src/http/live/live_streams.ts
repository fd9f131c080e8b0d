/**
 * The live streams of a node: how many there are, one timer for the signs of life of all of them, and turns, so
 * that thousands that wake at one record do not hold up everything else.
 */
import type { Cancel, Clock } from "../../env/clock.ts";
import type { Env } from "../../env/env.ts";
import {
  HTTP_HEARTBEAT_MS,
  HTTP_STREAM_STEPS_PER_TURN,
  HTTP_STREAM_TURN_MS,
  HTTP_STREAMS_MAX,
} from "../../lib/limits.ts";
import type { EndReason } from "./formats.ts";
import { SharedReads } from "./shared_reads.ts";

export interface LiveStream {
  /** It is this stream's turn to give a sign of life. */
  beat(): void;
  /** Called each second while the stream is among those that hold something. */
  look(): void;
  end(reason: EndReason): void;
}

const TICK_MS = 1_000;
const SLOTS = HTTP_HEARTBEAT_MS / TICK_MS;

/** Turns of the event loop, shared by all who ask. */
class Turns {
  readonly #clock: Clock;
  readonly #waiting: (() => void)[] = [];
  #steps = 0;
  #sinceMs = 0;
  #isArmed = false;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** Resolves at once, or in a later turn where this one is used up. */
  next(): Promise<void> | null {
    if (this.#waiting.length === 0 && this.#hasRoom()) {
      this.#steps += 1;
      return null;
    }
    return new Promise((resolve) => void this.#waiting.push(resolve));
  }

  #hasRoom(): boolean {
    if (!this.#isArmed) this.#arm();
    return this.#steps < HTTP_STREAM_STEPS_PER_TURN &&
      this.#clock.monotonicMs() - this.#sinceMs < HTTP_STREAM_TURN_MS;
  }

  #arm(): void {
    this.#isArmed = true;
    this.#steps = 0;
    this.#sinceMs = this.#clock.monotonicMs();
    this.#clock.after(0, () => this.#turn());
  }

  #turn(): void {
    this.#isArmed = false;
    if (this.#waiting.length === 0) return;
    this.#arm();
    const now = this.#waiting.splice(0, HTTP_STREAM_STEPS_PER_TURN);
    this.#steps = now.length;
    for (const go of now) go();
  }
}

export class LiveStreams {
  readonly #env: Pick<Env, "clock" | "metrics">;
  readonly #max: number;
  readonly #turns: Turns;
  readonly reads = new SharedReads();
  /** By when they beat. */
  readonly #slots = Array.from({ length: SLOTS }, () => new Set<LiveStream>());
  readonly #holding = new Set<LiveStream>();
  readonly #hide: () => void;
  #count = 0;
  #slot = 0;
  #tick: Cancel | null = null;
  #isClosed = false;

  constructor(env: Pick<Env, "clock" | "metrics">, max = HTTP_STREAMS_MAX) {
    this.#env = env;
    this.#max = max;
    this.#turns = new Turns(env.clock);
    this.#hide = env.metrics.onRender((gauge) => {
      gauge("skerry_http_streams_open", this.#count);
      gauge("skerry_http_streams_holding", this.#holding.size);
    });
  }

  get size(): number {
    return this.#count;
  }
  get isFull(): boolean {
    return this.#isClosed || this.#count >= this.#max;
  }

  /** Returns its removal. The caller has looked whether there is room. */
  add(stream: LiveStream): () => void {
    const slot = this.#slots[this.#slot]!;
    slot.add(stream);
    this.#count += 1;
    this.#tick ??= this.#env.clock.after(TICK_MS, () => this.#onTick());
    return () => {
      if (!slot.delete(stream)) return;
      this.#holding.delete(stream);
      this.#count -= 1;
      if (this.#count > 0) return;
      this.#tick?.();
      this.#tick = null;
    };
  }

  /** A stream that holds records of a reader that may be slow. */
  setHolding(stream: LiveStream, isHolding: boolean): void {
    if (isHolding) this.#holding.add(stream);
    else this.#holding.delete(stream);
  }

  /** Null: go on at once. */
  turn(): Promise<void> | null {
    return this.#turns.next();
  }

  /** Tells all readers, and takes no more. */
  close(): void {
    this.#isClosed = true;
    this.#hide();
    for (const slot of this.#slots) {
      for (const stream of Array.from(slot)) stream.end("server-stop");
    }
  }

  #onTick(): void {
    this.#tick = this.#env.clock.after(TICK_MS, () => this.#onTick());
    // One that came in this slot's second beats a whole round later.
    this.#slot = (this.#slot + 1) % SLOTS;
    for (const stream of Array.from(this.#slots[this.#slot]!)) stream.beat();
    for (const stream of Array.from(this.#holding)) stream.look();
  }
}
