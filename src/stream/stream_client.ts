/** Creates, opens and deletes streams; knows which ones this node holds and closes them all at the end. */
import type { Env } from "../env/env.ts";
import { assert } from "../lib/assert.ts";
import type { Offset, StreamEpoch, StreamId } from "../lib/brand.ts";
import { FaultError } from "../lib/errors.ts";
import { refused } from "../storage/engine_refusal.ts";
import type { StreamManager } from "../storage/ports.ts";
import type { ReadOptions, Storage } from "../storage/storage.ts";
import type { StreamRecord } from "../storage/stream_record.ts";
import type { Stream, StreamClient } from "./stream.ts";
import { type OpenedStream, StreamImpl } from "./stream_impl.ts";

export interface StreamClientOptions {
  readonly env: Pick<Env, "metrics">;
  readonly storage: Storage;
  readonly streams: StreamManager;
}

export function createStreamClient(options: StreamClientOptions): StreamClient {
  return new Client(options);
}

class Client implements StreamClient {
  readonly #options: StreamClientOptions;
  readonly #open = new Map<StreamId, StreamImpl>();
  /** Streams whose opening is under way: nobody else may open them, and closing waits for them. */
  readonly #opening = new Set<Promise<Stream>>();
  readonly #openingIds = new Set<StreamId>();
  #closing: Promise<void> | null = null;

  constructor(options: StreamClientOptions) {
    this.#options = options;
  }

  create(epoch: StreamEpoch, tag?: string): Promise<Stream> {
    return this.#track(async () => {
      const answer = await this.#options.streams.createStream(epoch, tag);
      if (!answer.ok) throw refused("Creating a stream", answer);
      return this.#hold({ streamId: answer.streamId, epoch, start: 0, end: 0 });
    });
  }

  open(stream: StreamId, epoch: StreamEpoch): Promise<Stream> {
    // What is not committed yet is only known to the stream that is open.
    const held = this.#open.get(stream);
    const isInUse = held?.isClosing === false || this.#openingIds.has(stream);
    assert(!isInUse, `Stream ${stream} is open`);
    return this.#track(async () => {
      this.#openingIds.add(stream);
      try {
        // Its close failed, or is under way: the store or a fence can do that, so it is no bug.
        await held?.close();
        const answer = await this.#options.streams.openStream(stream, epoch);
        if (!answer.ok) throw refused(`Opening stream ${stream}`, answer);
        return this.#hold({ streamId: stream, epoch, start: answer.start, end: answer.end });
      } finally {
        this.#openingIds.delete(stream);
      }
    });
  }

  #track(work: () => Promise<Stream>): Promise<Stream> {
    if (this.#closing !== null) {
      const fault = new FaultError("closed", "Stream client is closed", { retriable: false });
      return Promise.reject(fault);
    }
    const opening = work();
    this.#opening.add(opening);
    const forget = () => void this.#opening.delete(opening);
    opening.then(forget, forget);
    return opening;
  }

  #hold(opened: OpenedStream): Stream {
    const { storage, streams } = this.#options;
    const onClosed = () => {
      this.#open.delete(opened.streamId);
      this.#showCount();
    };
    const stream = new StreamImpl(opened, { storage, streams, onClosed });
    this.#open.set(opened.streamId, stream);
    this.#showCount();
    return stream;
  }

  #showCount(): void {
    this.#options.env.metrics.gauge("skerry_open_streams", this.#open.size);
  }

  read(
    stream: StreamId,
    start: Offset,
    end: Offset,
    options: ReadOptions,
  ): Promise<readonly StreamRecord[] | null> {
    return this.#options.storage.read(stream, start, end, options);
  }

  async delete(stream: StreamId): Promise<void> {
    const answer = await this.#options.streams.deleteStream(stream);
    if (!answer.ok && answer.reason !== "not-found") {
      throw refused(`Deleting stream ${stream}`, answer);
    }
  }

  close(): Promise<void> {
    this.#closing ??= this.#closeAll();
    return this.#closing;
  }

  async #closeAll(): Promise<void> {
    await Promise.allSettled(this.#opening);
    const outcomes = await Promise.allSettled(
      [...this.#open.values()].map((stream) => stream.close()),
    );
    const failed = outcomes.find((outcome) => outcome.status === "rejected");
    if (failed !== undefined) throw failed.reason;
  }
}
