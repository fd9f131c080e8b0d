/** What the sockets of a node may take together: how many there are, and what they sent that nobody has read. */
import type { Env } from "../../env/env.ts";
import {
  HTTP_SOCKET_MESSAGE_COST,
  HTTP_SOCKET_QUEUE_BYTES_MAX,
  HTTP_SOCKETS_MAX,
  HTTP_SOCKETS_QUEUED_BYTES_MAX,
} from "../../lib/limits.ts";

export type SocketKind = "kafka" | "topic";

export class OpenSockets {
  readonly #env: Pick<Env, "metrics">;
  readonly #open: Record<SocketKind, number> = { kafka: 0, topic: 0 };
  #queuedBytes = 0;

  constructor(env: Pick<Env, "metrics">) {
    this.#env = env;
  }

  get hasRoom(): boolean {
    return this.#open.kafka + this.#open.topic < HTTP_SOCKETS_MAX;
  }

  opened(kind: SocketKind): void {
    this.#count(kind, 1);
  }

  closed(kind: SocketKind): void {
    this.#count(kind, -1);
  }

  #count(kind: SocketKind, by: number): void {
    this.#open[kind] += by;
    this.#env.metrics.gauge("skerry_http_sockets", this.#open[kind], { kind });
  }

  queue<T>(sizeOf: (message: T) => number): MessageQueue<T> {
    return new MessageQueue(sizeOf, (bytes) => {
      if (this.#queuedBytes + bytes > HTTP_SOCKETS_QUEUED_BYTES_MAX) return false;
      this.#queuedBytes += bytes;
      return true;
    });
  }
}

/** Messages of one socket in order, until they are read. */
export class MessageQueue<T> {
  readonly #sizeOf: (message: T) => number;
  /** Takes bytes of what all sockets share, or gives them back; false where there is no room. */
  readonly #share: (bytes: number) => boolean;
  #messages: T[] = [];
  #at = 0;
  #bytes = 0;

  constructor(sizeOf: (message: T) => number, share: (bytes: number) => boolean) {
    this.#sizeOf = sizeOf;
    this.#share = share;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** False where it would be too much. */
  push(message: T): boolean {
    const bytes = this.#costOf(message);
    if (this.#bytes + bytes > HTTP_SOCKET_QUEUE_BYTES_MAX || !this.#share(bytes)) return false;
    this.#messages.push(message);
    this.#bytes += bytes;
    return true;
  }

  shift(): T | undefined {
    const message = this.#messages[this.#at];
    if (message === undefined) return undefined;
    this.#at += 1;
    const bytes = this.#costOf(message);
    this.#bytes -= bytes;
    this.#share(-bytes);
    // Taken ones go all at once: shifting an array of a million is a copy each time.
    if (this.#at * 2 >= this.#messages.length) {
      this.#messages = this.#messages.slice(this.#at);
      this.#at = 0;
    }
    return message;
  }

  clear(): void {
    this.#share(-this.#bytes);
    this.#messages = [];
    this.#at = 0;
    this.#bytes = 0;
  }

  #costOf(message: T): number {
    return this.#sizeOf(message) + HTTP_SOCKET_MESSAGE_COST;
  }
}
