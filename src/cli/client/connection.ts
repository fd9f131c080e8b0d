/** One connection to a broker: requests go out at once, answers come in the same order. */
import { connectTo } from "../../adapters/node_net.ts";
import type { Clock } from "../../env/clock.ts";
import type { Connection } from "../../env/listener.ts";
import { viewOf } from "../../lib/bytes.ts";
import { freeMemory } from "../../lib/free_memory.ts";
import { messageOf } from "../../lib/errors.ts";
import { VERSION } from "../../lib/version.ts";
import type { Api } from "../../protocol/api.ts";
import { errorCode } from "../../protocol/error_code.ts";
import { type Call, readResponse, requestFrame } from "../../protocol/client_frame.ts";
import { FrameDecoder } from "../../protocol/frame.ts";
import { apiVersionsApi } from "../../protocol/message/18_api_versions.ts";
import { type Address, addressText } from "./address.ts";
import { brokerFault, checkCode, type ClientFault, dataFault, unreachableFault } from "./fault.ts";

/** What the broker's logs and group listings show of us. */
const CLIENT_ID = "skerry-cli";
/** Above any answer: one batch may pass what a fetch asks for, and has at most 64 MiB. */
const ANSWER_BYTES_MAX = 128 * 1024 * 1024;
/** The first version in which a client says its name; older brokers answer version 0 instead. */
const HELLO_VERSION = 3;

export interface CallOptions {
  readonly timeoutMs: number;
  /** Versions that the caller has the fields for; default: all of ours. */
  readonly versionMin?: number;
  readonly versionMax?: number;
}

interface Waiting {
  readonly take: (frame: Uint8Array) => void;
  readonly fail: (fault: ClientFault) => void;
}

interface VersionRange {
  readonly minVersion: number;
  readonly maxVersion: number;
}

export class BrokerConnection {
  readonly address: string;
  readonly #transport: Connection;
  readonly #clock: Clock;
  readonly #waiting: Waiting[] = [];
  #versions: ReadonlyMap<number, VersionRange> = new Map();
  #lastId = 0;
  #fault: ClientFault | null = null;

  private constructor(address: string, transport: Connection, clock: Clock) {
    this.address = address;
    this.#transport = transport;
    this.#clock = clock;
  }

  static async open(address: Address, clock: Clock, timeoutMs: number): Promise<BrokerConnection> {
    let transport: Connection;
    try {
      transport = await connectTo(address.host, address.port, timeoutMs);
    } catch (error) {
      throw unreachableFault(messageOf(error));
    }
    const connection = new BrokerConnection(addressText(address), transport, clock);
    void connection.#pump();
    try {
      await connection.#negotiate(timeoutMs);
    } catch (error) {
      connection.close();
      throw error;
    }
    return connection;
  }

  get isClosed(): boolean {
    return this.#fault !== null;
  }

  /** Whether the broker answers such requests at all. */
  speaks({ key }: Pick<Api, "key">): boolean {
    return this.#versions.has(key);
  }

  #call(version: number): Call {
    return { version, correlationId: ++this.#lastId, clientId: CLIENT_ID };
  }

  /** The broker's answer in the newest version that both sides have. */
  async call<Q, S, QIn, SOut>(
    api: Api<Q, S, QIn, SOut>,
    request: QIn,
    options: CallOptions,
  ): Promise<SOut> {
    const call = this.#call(this.#versionOf(api, options));
    const frame = await this.#exchange(requestFrame(api, call, request), options.timeoutMs);
    return this.#decoded(() => readResponse(api, call, frame));
  }

  /** For the one request without an answer: acks=0. Resolves once the socket has taken it. */
  async send<Q, S, QIn, SOut>(
    api: Api<Q, S, QIn, SOut>,
    request: QIn,
    options: CallOptions,
  ): Promise<void> {
    const call = this.#call(this.#versionOf(api, options));
    if (this.#fault !== null) throw this.#fault;
    try {
      await this.#transport.write(requestFrame(api, call, request));
    } catch (error) {
      throw this.#end(this.#lost(error));
    }
  }

  close(): void {
    this.#end(unreachableFault(`The connection to ${this.address} is closed`));
  }

  #lost(error?: unknown): ClientFault {
    const why = error === undefined ? "the broker closed it" : messageOf(error);
    return unreachableFault(`Lost the connection to ${this.address}: ${why}`);
  }

  /** The first fault stays; all that wait are told. */
  #end(fault: ClientFault): ClientFault {
    if (this.#fault !== null) return this.#fault;
    this.#fault = fault;
    this.#transport.close();
    for (const { fail } of this.#waiting.splice(0)) fail(fault);
    return fault;
  }

  async #pump(): Promise<void> {
    const decoder = new FrameDecoder(ANSWER_BYTES_MAX);
    try {
      for (;;) {
        const chunk = await this.#transport.read();
        if (chunk === null) break;
        for (const frame of decoder.push(chunk)) this.#waiting.shift()?.take(frame);
      }
      this.#end(this.#lost());
    } catch (error) {
      this.#end(this.#lost(error));
    }
  }

  #exchange(frame: Uint8Array, timeoutMs: number): Promise<Uint8Array> {
    if (this.#fault !== null) return Promise.reject(this.#fault);
    return new Promise((resolve, reject) => {
      // Answers come in order: behind a late one, none can be told from another.
      const cancel = this.#clock.after(timeoutMs, () => {
        const seconds = Math.ceil(timeoutMs / 1000);
        this.#end(unreachableFault(`No answer from ${this.address} within ${seconds} s`));
      });
      this.#waiting.push({
        take(answer) {
          cancel();
          resolve(answer);
        },
        fail(fault) {
          cancel();
          reject(fault);
        },
      });
      this.#transport.write(frame).then(
        // Written once and seen by nobody else: frames of records are large.
        () => freeMemory(frame.buffer),
        (error: unknown) => this.#end(this.#lost(error)),
      );
    });
  }

  #decoded<T>(read: () => T): T {
    try {
      return read();
    } catch (error) {
      throw this.#end(
        dataFault(`Cannot understand ${this.address}, is it a Kafka broker? ${messageOf(error)}`),
      );
    }
  }

  #versionOf(
    api: Pick<Api, "key" | "name" | "min" | "max">,
    { versionMin = 0, versionMax = Infinity }: CallOptions,
  ): number {
    const range = this.#versions.get(api.key);
    const version = Math.min(api.max, versionMax, range?.maxVersion ?? -1);
    if (version >= Math.max(api.min, versionMin, range?.minVersion ?? 0)) return version;
    throw brokerFault(`ask ${this.address} for ${api.name}`, "UNSUPPORTED_VERSION");
  }

  /** Asks what the broker speaks. One that is too old for the question says so in version 0. */
  async #negotiate(timeoutMs: number): Promise<void> {
    const body = { clientSoftwareName: "skerry", clientSoftwareVersion: VERSION };
    for (const version of [HELLO_VERSION, 0]) {
      const call = this.#call(version);
      const frame = await this.#exchange(requestFrame(apiVersionsApi, call, body), timeoutMs);
      const isTooOld = frame.length >= 6 &&
        viewOf(frame).getInt16(4) === errorCode("UNSUPPORTED_VERSION");
      if (isTooOld && version > 0) continue;
      const answer = this.#decoded(() => readResponse(apiVersionsApi, call, frame));
      checkCode(`speak to ${this.address}`, answer.errorCode);
      this.#versions = new Map(answer.apiKeys.map(({ apiKey, ...range }) => [apiKey, range]));
      return;
    }
  }
}
