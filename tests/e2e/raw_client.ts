/** A Kafka client with no manners: frames and single bytes over a real socket, answers in order of arrival. */
import { connect, type Socket } from "node:net";
import type { Api } from "../../src/protocol/api.ts";
import { FrameDecoder } from "../../src/protocol/frame.ts";
import { readResponse, requestFrame } from "../support/wire.ts";

const FRAME_BYTES_MAX = 2 ** 31 - 1;
/** No test waits longer than this for one answer. */
const ANSWER_MS_MAX = 20_000;

export class RawClient {
  readonly #socket: Socket;
  readonly #decoder = new FrameDecoder(FRAME_BYTES_MAX);
  readonly #frames: Uint8Array[] = [];
  #waiting: ((frame: Uint8Array | null) => void)[] = [];
  #lastId = 0;
  #ended = false;
  /** Resolves once the connection is over, whoever ended it. */
  readonly closed: Promise<void>;

  private constructor(socket: Socket) {
    this.#socket = socket;
    this.closed = new Promise((done) => void socket.once("close", () => done()));
    socket.on("data", (chunk: Uint8Array) => this.#received(chunk));
    socket.on("end", () => this.#end());
    socket.on("error", () => this.#end());
    socket.on("close", () => this.#end());
  }

  static connect(address: string): Promise<RawClient> {
    const at = address.lastIndexOf(":");
    const socket = connect(Number(address.slice(at + 1)), address.slice(0, at));
    return new Promise((done, failed) => {
      socket.once("error", failed);
      socket.once("connect", () => {
        socket.off("error", failed);
        done(new RawClient(socket));
      });
    });
  }

  get isClosed(): boolean {
    return this.#ended;
  }

  /** Does not wait until the bytes are out. */
  send(bytes: Uint8Array): void {
    if (!this.#ended) this.#socket.write(bytes);
  }

  /** Takes nothing from the socket from now on. */
  stopReading(): void {
    this.#socket.pause();
  }

  /** The next frame; null when the broker hung up instead. */
  next(): Promise<Uint8Array | null> {
    const frame = this.#frames.shift();
    if (frame !== undefined) return Promise.resolve(frame);
    if (this.#ended) return Promise.resolve(null);
    return new Promise((done, failed) => {
      const timer = setTimeout(
        () => failed(new Error("the broker does not answer")),
        ANSWER_MS_MAX,
      );
      this.#waiting.push((next) => {
        clearTimeout(timer);
        done(next);
      });
    });
  }

  async call<Q, S, QIn, SOut>(
    api: Api<Q, S, QIn, SOut>,
    version: number,
    request: QIn,
  ): Promise<SOut> {
    const call = { version, correlationId: ++this.#lastId };
    this.send(requestFrame(api, call, request));
    const frame = await this.next();
    if (frame === null) throw new Error("the broker hung up");
    return readResponse(api, call, frame);
  }

  close(): void {
    this.#socket.destroy();
  }

  #received(chunk: Uint8Array): void {
    this.#frames.push(...this.#decoder.push(new Uint8Array(chunk)));
    while (this.#waiting.length > 0 && this.#frames.length > 0) {
      this.#waiting.shift()!(this.#frames.shift()!);
    }
  }

  #end(): void {
    this.#ended = true;
    for (const done of this.#waiting.splice(0)) done(null);
  }
}
