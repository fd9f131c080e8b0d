/**
 * A whole node on a memory store and a clock that stands still, and a raw client that speaks to it in
 * frames. The acceptance list of client quirks is written against these two.
 */
import assert from "node:assert/strict";
import { createFakeClock, type FakeClock } from "../support/fake_clock.ts";
import { testEnv } from "../support/test_env.ts";
import { readResponse, requestFrame } from "../support/wire.ts";
import { viewOf } from "../../src/lib/bytes.ts";
import { FaultError } from "../../src/lib/errors.ts";
import type { Connection, Listener } from "../../src/env/listener.ts";
import { seededRandom } from "../../src/env/random.ts";
import { type RunningNode, startNode } from "../../src/node/node.ts";
import { createMemoryStore } from "../../src/object/memory.ts";
import type { ObjectStore } from "../../src/object/object_store.ts";
import type { Api } from "../../src/protocol/api.ts";
import { FrameDecoder } from "../../src/protocol/frame.ts";

const FRAME_BYTES_MAX = 2 ** 31 - 1;

/** The client's end of a connection; answers are taken in the order in which they come. */
export class RawClient {
  readonly #inbox: (Uint8Array | null)[] = [];
  #deliver: ((chunk: Uint8Array | null) => void) | null = null;
  readonly #decoder = new FrameDecoder(FRAME_BYTES_MAX);
  readonly #frames: Uint8Array[] = [];
  #waiting: { resolve(frame: Uint8Array): void; reject(error: Error): void }[] = [];
  #lastId = 0;
  #closed = false;
  /** Resolves once the broker hung up. */
  readonly closed: Promise<void>;
  readonly #hangUp: () => void;

  constructor() {
    let hangUp = (): void => {};
    this.closed = new Promise((resolve) => void (hangUp = resolve));
    this.#hangUp = hangUp;
  }

  get isClosed(): boolean {
    return this.#closed;
  }
  /** Frames that came and were not asked for yet. */
  get unread(): number {
    return this.#frames.length;
  }

  /** The broker's end. */
  connection(): Connection {
    return {
      remote: "192.0.2.7:50000",
      read: () => {
        const next = this.#inbox.shift();
        if (next !== undefined) return Promise.resolve(next);
        if (this.#closed) return Promise.resolve(null);
        return new Promise((resolve) => void (this.#deliver = resolve));
      },
      write: (bytes) => {
        if (this.#closed) {
          return Promise.reject(new FaultError("closed", "Cannot write", { retriable: false }));
        }
        this.#frames.push(...this.#decoder.push(bytes.slice()));
        this.#match();
        return Promise.resolve();
      },
      close: () => this.#close(),
    };
  }

  push(bytes: Uint8Array | null): void {
    const deliver = this.#deliver;
    this.#deliver = null;
    if (deliver === null) this.#inbox.push(bytes);
    else deliver(bytes);
  }

  /** The next frame, without its length. */
  next(): Promise<Uint8Array> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject });
      this.#match();
    });
  }

  /** Sends a request whose answer is read by `next`; returns its correlation id. */
  post<Q, S, QIn, SOut>(
    api: Api<Q, S, QIn, SOut>,
    version: number,
    request: QIn,
    clientId = "quirk",
  ): number {
    this.#lastId += 1;
    this.push(requestFrame(api, { version, correlationId: this.#lastId, clientId }, request));
    return this.#lastId;
  }

  async call<Q, S, QIn, SOut>(
    api: Api<Q, S, QIn, SOut>,
    version: number,
    request: QIn,
    clientId = "quirk",
  ): Promise<SOut> {
    const correlationId = this.post(api, version, request, clientId);
    return readResponse(api, { version, correlationId }, await this.next());
  }

  /** A call whose frame is changed before it is sent; not sent, and null, when `change` says so. */
  callChanged<Q, S, QIn, SOut>(
    api: Api<Q, S, QIn, SOut>,
    version: number,
    request: QIn,
    change: (frame: Uint8Array) => boolean,
  ): Promise<SOut> | null {
    const correlationId = ++this.#lastId;
    const frame = requestFrame(api, { version, correlationId, clientId: "quirk" }, request);
    if (!change(frame)) return null;
    this.push(frame);
    return this.next().then((answer) => readResponse(api, { version, correlationId }, answer));
  }

  #match(): void {
    while (this.#waiting.length > 0 && this.#frames.length > 0) {
      this.#waiting.shift()!.resolve(this.#frames.shift()!);
    }
    if (!this.#closed) return;
    for (const { reject } of this.#waiting) reject(new Error("The broker hung up"));
    this.#waiting = [];
  }

  #close(): void {
    this.#closed = true;
    this.#deliver?.(null);
    this.#deliver = null;
    this.#match();
    this.#hangUp();
  }
}

export function correlationIdOf(frame: Uint8Array): number {
  return viewOf(frame).getInt32(0);
}

export interface QuirkNode {
  readonly clock: FakeClock;
  readonly node: RunningNode;
  readonly store: ObjectStore;
  connect(): RawClient;
  close(): Promise<void>;
}

const ADDRESS = { host: "127.0.0.1", port: 9092 };

/** Groups gather at once unless a test asks for the delay. */
const QUICK = { "group.initial.rebalance.delay.ms": "0" };

/** What a later node of the same test takes over. */
export interface KeptParts {
  readonly clock?: FakeClock;
  readonly store?: ObjectStore;
  /** Another one for each incarnation: ids are drawn from it. */
  readonly seed?: number;
  readonly nodeId?: number;
  readonly createCluster?: boolean;
  readonly featureLevelMax?: number;
  /** What the store is taken for: memory by default. */
  readonly storeKind?: "memory" | "s3";
}

export async function startQuirkNode(
  kafka: Readonly<Record<string, string>> = {},
  kept: KeptParts = {},
): Promise<QuirkNode> {
  const clock = kept.clock ?? createFakeClock();
  const store = kept.store ?? createMemoryStore(clock);
  let accept: (connection: Connection) => void = () => assert.fail("not listening");
  const listener: Listener = {
    listen: (_, on) => {
      accept = on;
      return Promise.resolve({ ...ADDRESS, close: () => Promise.resolve() });
    },
  };
  const node = await startNode({
    env: testEnv({ clock, random: seededRandom(kept.seed ?? 1) }),
    store,
    storeKind: kept.storeKind ?? "memory",
    storeHasPrices: false,
    ...(kept.featureLevelMax === undefined ? {} : { featureLevelMax: kept.featureLevelMax }),
    listener,
    serveHttp: () => Promise.reject(new Error("no HTTP here")),
    settings: {
      nodeId: kept.nodeId ?? 1,
      clusterId: null,
      createCluster: kept.createCluster ?? true,
      kafkaListen: ADDRESS,
      advertise: null,
      httpListen: null,
      kafka: { ...QUICK, ...kafka },
    },
  });
  return {
    clock,
    node,
    store,
    connect() {
      const client = new RawClient();
      accept(client.connection());
      return client;
    },
    close: () => node.close(),
  };
}
