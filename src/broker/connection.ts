/**
 * One client connection: bytes in, requests to the broker in order of arrival, answers out in the
 * same order. Bounded in requests, in bytes and in time: when answers do not leave, nothing is read.
 */
import { concatBytes, DecodeError, viewOf } from "../lib/bytes.ts";
import { isFault, messageOf } from "../lib/errors.ts";
import { freeMemory } from "../lib/free_memory.ts";
import {
  CONNECTION_REQUESTS_MAX,
  FRAME_BYTES_PER_S_MIN,
  FRAME_BYTES_TRUSTED_MAX,
  FRAME_GRACE_MS,
  WRITE_BYTES_MAX,
  WRITE_COALESCED_BYTES_MAX,
  WRITE_STALL_MS,
} from "../lib/limits.ts";
import { Semaphore } from "../lib/semaphore.ts";
import type { Cancel } from "../env/clock.ts";
import type { Env } from "../env/env.ts";
import type { CloseReason, Connection } from "../env/listener.ts";
import { FrameDecoder } from "../protocol/frame.ts";
import type { Broker, Reply } from "./broker.ts";
import type { Session } from "./handler.ts";

export interface ConnectionOptions {
  readonly env: Env;
  readonly broker: Broker;
  readonly session: Session;
  readonly requestBytesMax: number;
  readonly idleMsMax: number;
  /** Node-wide bytes of produce requests. */
  readonly producePermits: Semaphore;
  /** Node-wide bytes of large frames that are still arriving. */
  readonly largeFrames: Semaphore;
  /** Fires when the server closes: no new requests, answers in flight still go out. */
  readonly draining: AbortSignal;
}

/** Why a connection ended; also the label of its metric. */
export type Ending = Exclude<CloseReason, "refused">;

const PRODUCE_KEY = 0;
const STOPPED = Symbol("stopped");

function endingOf(error: unknown): Ending {
  if (error instanceof DecodeError) return "protocol";
  return isFault(error, "aborted") ? "client" : "failed";
}

function isProduce(frame: Uint8Array): boolean {
  return frame.length >= 2 && viewOf(frame).getInt16(0) === PRODUCE_KEY;
}

/**
 * Gives memory back once its requests are admitted: that of a frame that was gathered, and the chunk when
 * all frames that view it are. The WAL has copied what it keeps of a produce, and memory that is free at
 * once is used again while its pages are there; other requests may leave views.
 */
function releaser(
  frames: readonly Uint8Array[],
  chunk: Uint8Array,
  release: () => void,
): (frame: Uint8Array) => void {
  const views = frames.filter(({ buffer }) => buffer === chunk.buffer);
  const isAllProduce = views.every(isProduce);
  let left = views.length;
  if (left === 0) release();
  return (frame) => {
    if (!isProduce(frame)) return;
    if (frame.buffer !== chunk.buffer) return freeMemory(frame.buffer);
    left -= 1;
    if (left === 0 && isAllProduce) release();
  };
}

/** Joins small pieces and cuts large ones, so that a write is neither tiny nor endless. */
export function* writesOf(chunks: readonly Uint8Array[]): Generator<Uint8Array> {
  let small: Uint8Array[] = [];
  let bytes = 0;
  for (const chunk of chunks) {
    if (bytes + chunk.length <= WRITE_COALESCED_BYTES_MAX) {
      small.push(chunk);
      bytes += chunk.length;
      continue;
    }
    if (bytes > 0) yield concatBytes(small);
    small = [];
    bytes = 0;
    for (let at = 0; at < chunk.length; at += WRITE_BYTES_MAX) {
      yield chunk.subarray(at, at + WRITE_BYTES_MAX);
    }
  }
  if (bytes > 0) yield concatBytes(small);
}

/** A request between its frame and the moment its answer has left. */
interface Pending {
  reply: Reply | null;
  /** The connection ended before the reply came. */
  dropped: boolean;
  readonly after: ((left: boolean) => void)[];
}

function finish({ after }: Pending, left: boolean): void {
  for (const work of after.splice(0)) work(left);
}

class ConnectionPump {
  readonly #connection: Connection;
  readonly #options: ConnectionOptions;
  readonly #decoder: FrameDecoder;
  /** Requests in order of arrival, until their answer has left. */
  readonly #queue: Pending[] = [];
  readonly #slots = new Semaphore(CONNECTION_REQUESTS_MAX);
  readonly #gone = new AbortController();
  readonly #signal: AbortSignal;
  #writing = false;
  #ended: Ending | null = null;
  /** How long we have waited for the rest of the current frame, time in which we did not read excluded. */
  #frameWaitMs = 0;
  /** What we hold of `largeFrames`. */
  #largeBytes = 0;
  #cancelIdle: Cancel | null = null;
  #idleAgainMs = 0;
  #flushed: () => void = () => {};
  #stopWaiting: () => void = () => {};

  constructor(connection: Connection, options: ConnectionOptions) {
    this.#connection = connection;
    this.#options = options;
    this.#decoder = new FrameDecoder(options.requestBytesMax);
    this.#signal = AbortSignal.any([this.#gone.signal, options.draining]);
  }

  async run(): Promise<Ending> {
    this.#touch();
    this.#watchIdle(this.#options.idleMsMax);
    try {
      const ending = await this.#readAll();
      await this.#flushAll();
      this.#end(ending);
    } catch (error) {
      this.#end(endingOf(error), messageOf(error));
    } finally {
      this.#cancelIdle?.();
      this.#releaseLarge();
      this.#dropAll();
    }
    return this.#ended ?? "failed";
  }

  /** The next bytes are asked for early: that is how a client that left is noticed during a long poll. */
  #startRead(): Promise<Uint8Array | null> {
    const read = this.#connection.read();
    read.then(
      (chunk) => {
        if (chunk === null) this.#gone.abort();
      },
      () => this.#gone.abort(),
    );
    return read;
  }

  async #readAll(): Promise<Ending> {
    const { draining, env } = this.#options;
    this.#signal.addEventListener("abort", () => this.#stopWaiting(), { once: true });
    let next = this.#startRead();
    for (;;) {
      const chunk = await this.#timed(this.#unlessStopped(next));
      if (chunk === STOPPED) return draining.aborted ? "drained" : "client";
      if (chunk === null) return "client";
      this.#touch();
      env.metrics.count("skerry_kafka_received_bytes_total", {}, chunk.length);
      const frames = this.#decoder.push(chunk);
      if (frames.length > 0) this.#frameWaitMs = 0;
      const onOver = releaser(frames, chunk, () => this.#connection.release?.(chunk));
      next = this.#startRead();
      for (const frame of frames) {
        if (draining.aborted) return "drained";
        await this.#admit(frame, onOver);
      }
      if (frames.length > 0) this.#releaseLarge();
      await this.#takeLarge();
    }
  }

  /** A large frame is read on only with its share of the memory for such. */
  async #takeLarge(): Promise<void> {
    const bytes = this.#decoder.expectedBytes;
    if (bytes <= FRAME_BYTES_TRUSTED_MAX || this.#largeBytes > 0) return;
    try {
      await this.#options.largeFrames.acquire(bytes, this.#signal);
      this.#largeBytes = bytes;
    } catch (error) {
      if (!isFault(error, "aborted")) throw error;
    }
  }

  #releaseLarge(): void {
    this.#options.largeFrames.release(this.#largeBytes);
    this.#largeBytes = 0;
  }

  /** No Promise.race with a promise that lives as long as the connection: it would keep every chunk. */
  #unlessStopped<T>(read: Promise<T>): Promise<T | typeof STOPPED> {
    if (this.#signal.aborted) return Promise.resolve(STOPPED);
    return new Promise((resolve, reject) => {
      // One step later than the read itself: how it ended says why the connection ends.
      this.#stopWaiting = () => void Promise.resolve(STOPPED).then(resolve);
      read.then(resolve, reject);
    });
  }

  /** Waits for bytes; a frame whose rest does not come in time ends the connection. */
  async #timed<T>(read: Promise<T>): Promise<T> {
    const pending = this.#decoder.pendingBytes;
    if (pending === 0) return await read;
    const { clock } = this.#options.env;
    const startMs = clock.monotonicMs();
    const allowedMs = FRAME_GRACE_MS + pending * 1000 / FRAME_BYTES_PER_S_MIN;
    const cancel = clock.after(
      allowedMs - this.#frameWaitMs,
      () => this.#end("slow", "a frame does not complete"),
    );
    try {
      return await read;
    } finally {
      cancel();
      this.#frameWaitMs += clock.monotonicMs() - startMs;
    }
  }

  /** Returns when the connection may start its next request. */
  async #admit(frame: Uint8Array, onOver: (frame: Uint8Array) => void): Promise<void> {
    await this.#slots.acquire(1, this.#gone.signal);
    const pending: Pending = {
      reply: null,
      dropped: false,
      after: [() => this.#slots.release()],
    };
    if (isProduce(frame)) await this.#takePermits(frame.length, pending);
    this.#queue.push(pending);
    const { broker, session } = this.#options;
    await new Promise<void>((admitted) => {
      let isOver = false;
      const over = () => {
        if (isOver) return;
        isOver = true;
        onOver(frame);
        admitted();
      };
      const hooks = {
        signal: this.#signal,
        admitted: over,
        afterAnswer: (work: (left: boolean) => void) => void pending.after.push(work),
      };
      void broker.handle(frame, session, hooks).then((reply) => {
        pending.reply = reply;
        over();
        if (pending.dropped) finish(pending, false);
        else void this.#writeReady();
      });
    });
  }

  async #takePermits(bytes: number, pending: Pending): Promise<void> {
    const permits = this.#options.producePermits;
    await permits.acquire(bytes, this.#gone.signal);
    pending.after.push(() => permits.release(bytes));
  }

  /** Writes every answer that is ready and in turn; one writer at a time. */
  async #writeReady(): Promise<void> {
    if (this.#writing) return;
    this.#writing = true;
    try {
      for (let ready = this.#takeReady(); ready.length > 0; ready = this.#takeReady()) {
        await this.#write(ready);
      }
    } catch {
      this.#end("client");
    }
    this.#writing = false;
    if (this.#queue.length === 0 || this.#ended !== null) this.#flushed();
  }

  #takeReady(): Pending[] {
    let count = 0;
    while (this.#queue[count]?.reply != null) count += 1;
    return this.#ended === null ? this.#queue.splice(0, count) : [];
  }

  async #write(ready: readonly Pending[]): Promise<void> {
    const chunks: Uint8Array[] = [];
    let closing: string | null = null;
    for (const { reply } of ready) {
      if (reply?.kind === "answer" && closing === null) chunks.push(...reply.chunks);
      else if (reply?.kind === "close") closing ??= reply.reason;
    }
    let left = false;
    try {
      for (const bytes of writesOf(chunks)) await this.#writeOne(bytes);
      left = true;
    } finally {
      for (const pending of ready) finish(pending, left);
    }
    if (closing !== null) this.#end("protocol", closing);
  }

  async #writeOne(bytes: Uint8Array): Promise<void> {
    const { clock, metrics } = this.#options.env;
    const cancel = clock.after(WRITE_STALL_MS, () => this.#end("slow", "the client does not read"));
    try {
      await this.#connection.write(bytes);
      metrics.count("skerry_kafka_sent_bytes_total", {}, bytes.length);
      this.#touch();
    } finally {
      cancel();
    }
  }

  /** Resolves when all answers are out, or will never be. */
  #flushAll(): Promise<void> {
    if (this.#ended !== null || (this.#queue.length === 0 && !this.#writing)) {
      return Promise.resolve();
    }
    return new Promise((resolve) => {
      this.#flushed = resolve;
    });
  }

  /** Answers that never left still give their permits back, once their work is over. */
  #dropAll(): void {
    for (const pending of this.#queue.splice(0)) {
      pending.dropped = true;
      if (pending.reply !== null) finish(pending, false);
    }
  }

  #end(ending: Ending, reason?: string): void {
    if (this.#ended !== null) return;
    this.#ended = ending;
    if (reason !== undefined) {
      const { env, session } = this.#options;
      env.log.log("debug", "connection-ended", { client: session.clientHost, ending, reason });
    }
    this.#gone.abort();
    this.#connection.close(ending);
    this.#flushed();
  }

  #touch(): void {
    this.#idleAgainMs = this.#options.env.clock.monotonicMs() + this.#options.idleMsMax;
  }

  /** One timer that follows the last activity, instead of one per chunk. */
  #watchIdle(delayMs: number): void {
    const { clock } = this.#options.env;
    this.#cancelIdle = clock.after(delayMs, () => {
      const leftMs = this.#idleAgainMs - clock.monotonicMs();
      const busy = this.#queue.length > 0;
      if (leftMs <= 0 && !busy) this.#end("idle");
      else this.#watchIdle(busy ? this.#options.idleMsMax : leftMs);
    });
  }
}

/** Serves a connection until it ends; never rejects. */
export function serveConnection(
  connection: Connection,
  options: ConnectionOptions,
): Promise<Ending> {
  return new ConnectionPump(connection, options).run();
}
