/**
 * The WebSocket of a topic: records in, with an acknowledgement for each message, and records out, as many as the
 * client has credit for. Messages are taken one after the other, so that what waits for memory or for the store
 * holds up those behind it; they are bounded where they wait.
 */
import { isFault, messageOf } from "../../lib/errors.ts";
import {
  CONNECTION_READ_AHEAD_BYTES,
  HTTP_JSON_BYTES_RATIO,
  HTTP_SOCKET_CREDIT_MAX,
  HTTP_STREAM_HOLD_MS,
  WRITE_STALL_MS,
} from "../../lib/limits.ts";
import type { EndReason } from "../live/formats.ts";
import type { LiveStream, LiveStreams } from "../live/live_streams.ts";
import { liveReader } from "../live/stream.ts";
import { takePermits } from "../permit_wait.ts";
import { badRequest, ProblemError } from "../problem.ts";
import type { ProduceServices } from "../produce/held_request.ts";
import type { MessageQueue, OpenSockets } from "./open_sockets.ts";
import { CLOSE_CODES, type ServerSocket, type SocketHandler } from "./socket_port.ts";
import {
  readMessage,
  type Refusal,
  type Subscription,
  type TopicMessage,
} from "./topic_messages.ts";
import { TopicReader } from "./topic_reader.ts";
import { TopicWriter } from "./topic_writer.ts";

export interface TopicSocketServices extends Omit<ProduceServices, "rooms"> {
  readonly streams: LiveStreams;
  readonly sockets: OpenSockets;
}

export class TopicSocket implements SocketHandler, LiveStream {
  readonly #services: TopicSocketServices;
  readonly #topic: string;
  readonly #socket: ServerSocket;
  readonly #queue: MessageQueue<string>;
  readonly #writer: TopicWriter;
  readonly #gone = new AbortController();
  readonly #remove: () => void;
  #reader: TopicReader | null = null;
  /** Credit that came before the subscription. */
  #credit = 0;
  #isRunning = false;
  #isHeld = false;
  /** Since when the client takes nothing; null while there is room. */
  #waitsSinceMs: number | null = null;

  constructor(services: TopicSocketServices, topic: string, socket: ServerSocket) {
    this.#services = services;
    this.#topic = topic;
    this.#socket = socket;
    // Text in memory has up to two bytes for each of its units.
    this.#queue = services.sockets.queue(({ length }) => 2 * length);
    this.#writer = new TopicWriter(services, topic, (text) => this.#send(text));
    services.sockets.opened("topic");
    const { isFull } = services.streams;
    this.#remove = services.streams.add(this);
    if (isFull) this.#close(CLOSE_CODES.tryLater, "too many streams, or the broker stops");
  }

  message(message: string | Uint8Array): void {
    if (this.#gone.signal.aborted) return;
    if (typeof message !== "string") {
      return this.#close(CLOSE_CODES.unsupported, "messages are JSON text");
    }
    if (!this.#queue.push(message)) {
      return this.#close(CLOSE_CODES.tryLater, "more was sent than the broker can take");
    }
    this.#hold();
    if (!this.#isRunning) void this.#run();
  }

  closed(): void {
    this.#over();
    this.#services.sockets.closed("topic");
  }

  /** Signs of life are the host's pings. */
  beat(): void {
    this.#reader?.beat();
  }

  look(): void {
    if (this.#waitsSinceMs === null) return;
    const waitedMs = this.#services.env.clock.monotonicMs() - this.#waitsSinceMs;
    if (waitedMs >= HTTP_STREAM_HOLD_MS) this.#reader?.drop();
    if (waitedMs >= WRITE_STALL_MS) this.#close(CLOSE_CODES.policy, "too slow");
  }

  end(reason: EndReason): void {
    if (this.#isOver) return;
    this.#socket.send(JSON.stringify({ end: { reason } }));
    const isStop = reason === "server-stop";
    this.#close(isStop ? CLOSE_CODES.restart : CLOSE_CODES.normal, reason);
  }

  get #isOver(): boolean {
    return this.#gone.signal.aborted;
  }

  /** Where the host can, a client waits that has sent more than is read. */
  #hold(): void {
    const isHeld = !this.#isOver && this.#queue.bytes >= CONNECTION_READ_AHEAD_BYTES;
    if (isHeld === this.#isHeld) return;
    this.#isHeld = isHeld;
    this.#socket.hold(isHeld);
  }

  async #run(): Promise<void> {
    this.#isRunning = true;
    try {
      for (let next = this.#queue.shift(); next !== undefined; next = this.#queue.shift()) {
        this.#hold();
        await this.#take(next);
      }
    } catch (error) {
      this.#fail(error);
    } finally {
      this.#isRunning = false;
    }
  }

  async #take(text: string): Promise<void> {
    const { producePermits, env } = this.#services;
    const { signal } = this.#gone;
    const bytes = text.length * HTTP_JSON_BYTES_RATIO;
    await this.#writer.slot(signal);
    try {
      await takePermits(producePermits, bytes, env.clock, { signal });
    } catch (error) {
      this.#writer.freeSlot();
      if (!(error instanceof ProblemError)) throw error;
      return this.#close(CLOSE_CODES.tryLater, "the memory for requests is in use");
    }
    const release = () => producePermits.release(bytes);
    const message = readMessage(text);
    if (message.kind === "produce") {
      return await this.#writer.write(message, release);
    }
    release();
    await this.#heed(message);
  }

  async #heed(message: Exclude<TopicMessage, { kind: "produce" }> | Refusal): Promise<void> {
    try {
      if (message.kind === "refused") throw message.error;
      if (message.kind === "credit") this.#grant(message.credit);
      else await this.#subscribe(message.query);
      this.#writer.freeSlot();
    } catch (error) {
      if (!(error instanceof ProblemError)) {
        this.#writer.freeSlot();
        throw error;
      }
      const id = message.kind === "refused" ? message.id : undefined;
      this.#writer.refuse(id, error.problem);
    }
  }

  #grant(credit: number): void {
    if (this.#reader !== null) return this.#reader.grant(credit);
    this.#credit = Math.min(HTTP_SOCKET_CREDIT_MAX, this.#credit + credit);
  }

  async #subscribe(query: Subscription): Promise<void> {
    if (this.#reader !== null) throw badRequest("Cannot subscribe twice: open another socket");
    const { signal } = this.#gone;
    const { cursor = null, encoding } = query;
    const reader = await liveReader(this.#services, this.#topic, query, cursor, signal);
    if (signal.aborted) return;
    // At once: a client that is cut before its first record knows where it stood, also with from=latest.
    await this.#send(JSON.stringify({ cursor: reader.cursor() }));
    this.#reader = new TopicReader({
      topic: this.#topic,
      reader,
      encoding,
      signal,
      send: (text) => this.#send(text),
      onEnd: (reason) => this.end(reason),
    }, this.#credit);
    this.#reader.run().catch((error: unknown) => this.#fail(error));
  }

  /** Resolves when there is room for the next one, or nobody there. */
  async #send(text: string): Promise<void> {
    if (this.#isOver || this.#socket.send(text)) return;
    const { streams, env } = this.#services;
    this.#waitsSinceMs ??= env.clock.monotonicMs();
    streams.setHolding(this, true);
    await this.#socket.room();
    this.#waitsSinceMs = null;
    streams.setHolding(this, false);
  }

  #fail(error: unknown): void {
    if (this.#isOver && isFault(error, "aborted")) return;
    this.#services.env.log.log("error", "http-socket-failed", { error: messageOf(error) });
    this.#close(CLOSE_CODES.internal, "the broker logged why");
  }

  #close(code: number, reason: string): void {
    if (this.#isOver) return;
    this.#over();
    this.#socket.close(code, reason);
  }

  #over(): void {
    this.#gone.abort();
    this.#queue.clear();
    this.#hold();
    this.#remove();
  }
}
