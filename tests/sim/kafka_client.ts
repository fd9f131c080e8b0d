/** A client's connection: calls over real frames, answered in order, with the time-out habits of Kafka's clients. */
import { concatBytes, viewOf } from "../../src/lib/bytes.ts";
import type { Api } from "../../src/protocol/api.ts";
import { FRAME_PREFIX_BYTES } from "../../src/protocol/frame.ts";
import { readResponse, requestFrame } from "../support/wire.ts";
import type { Cluster } from "./cluster.ts";
import type { ClientEnd } from "./sim_net.ts";
import type { World } from "./world.ts";

/** No answer, and none will come: the request may have had its effect. */
export class NoAnswer extends Error {
  override readonly name = "NoAnswer";
}

export interface Answered<S> {
  readonly response: S;
  /** Epoch of the process that answered: a larger one registered later. */
  readonly by: number;
}

interface Pending {
  readonly resolve: (frame: Uint8Array) => void;
  readonly reject: (error: NoAnswer) => void;
}

const EMPTY = new Uint8Array(0);

class Line {
  readonly #end: ClientEnd;
  readonly #cluster: Cluster;
  readonly #pending = new Map<number, Pending>();
  #bytes: Uint8Array = EMPTY;
  isOpen = true;

  private constructor(end: ClientEnd, cluster: Cluster) {
    this.#end = end;
    this.#cluster = cluster;
  }

  get by(): number {
    return this.#cluster.epochOf(this.#end.process);
  }
  get peer(): string {
    return this.#end.process.name;
  }

  /** Null when nobody listens. */
  static open(cluster: Cluster): Line | null {
    let line: Line | null = null;
    const end = cluster.connect({
      onBytes: (bytes) => line?.receive(bytes),
      onClosed: () => line?.fail("disconnected"),
    });
    if (end !== null) line = new Line(end, cluster);
    return line;
  }

  send(correlationId: number, frame: Uint8Array, pending: Pending): void {
    this.#pending.set(correlationId, pending);
    this.#end.send(frame);
  }

  close(why: string): void {
    this.#end.close();
    this.fail(why);
  }

  fail(why: string): void {
    this.isOpen = false;
    for (const { reject } of this.#pending.values()) reject(new NoAnswer(why));
    this.#pending.clear();
  }

  receive(bytes: Uint8Array): void {
    if (!this.isOpen) return;
    this.#bytes = concatBytes([this.#bytes, bytes]);
    while (this.#bytes.length >= FRAME_PREFIX_BYTES) {
      const end = FRAME_PREFIX_BYTES + viewOf(this.#bytes).getInt32(0);
      if (this.#bytes.length < end) return;
      const frame = this.#bytes.slice(FRAME_PREFIX_BYTES, end);
      this.#bytes = this.#bytes.subarray(end);
      const id = viewOf(frame).getInt32(0);
      const pending = this.#pending.get(id);
      this.#pending.delete(id);
      pending?.resolve(frame);
    }
  }
}

export class KafkaClient {
  readonly #world: World;
  readonly #cluster: Cluster;
  readonly #name: string;
  #line: Line | null = null;
  #correlationId = 0;

  constructor(world: World, cluster: Cluster, name: string) {
    this.#world = world;
    this.#cluster = cluster;
    this.#name = name;
  }

  /** Throws NoAnswer. Sends before it returns: calls of one client keep their order. */
  call<Q, S, QIn, SOut>(
    api: Api<Q, S, QIn, SOut>,
    version: number,
    request: QIn,
    timeoutMs: number,
    label = "",
  ): Promise<Answered<SOut>> {
    const line = this.#open();
    if (line === null) return Promise.reject(new NoAnswer("connection refused"));
    const correlationId = ++this.#correlationId;
    const call = { version, correlationId, clientId: this.#name };
    const what = `${this.#name} #${correlationId} (api ${api.key})`;
    this.#world.note(`${what} asks ${line.peer} ${label}`);
    return new Promise((resolve, reject) => {
      // A late answer could be taken for that of the next request: clients hang up.
      const cancel = this.#world.after(timeoutMs, () => line.close("time-out"));
      line.send(correlationId, requestFrame(api, call, request), {
        resolve: (frame) => {
          cancel();
          this.#world.note(`${what} is answered, ${frame.length} bytes`);
          resolve({ response: readResponse(api, call, frame), by: line.by });
        },
        reject: (error) => {
          cancel();
          this.#world.note(`${what} gets no answer: ${error.message}`);
          reject(error);
        },
      });
    });
  }

  close(): void {
    this.#line?.close("client closes");
  }

  #open(): Line | null {
    if (this.#line?.isOpen !== true) this.#line = Line.open(this.#cluster);
    return this.#line;
  }
}
