/**
 * The records that go over a WebSocket: as many as the client has credit for, and nothing is read without. A page
 * is held only while the client takes it, and is read again otherwise, as that of a live stream.
 */
import {
  HTTP_CHUNK_BYTES,
  HTTP_SOCKET_CREDIT_MAX,
  HTTP_SOCKET_RECORD_BYTES_MAX,
} from "../../lib/limits.ts";
import type { EndReason } from "../live/formats.ts";
import type { LiveReader, Step } from "../live/live_reader.ts";
import { type Found, rawPath } from "../read/page.ts";
import type { RecordOutput } from "../port.ts";
import { type Encoding, rawBytes, recordJson } from "../record_json.ts";

export interface TopicReaderOptions {
  readonly topic: string;
  readonly reader: LiveReader;
  readonly encoding: Encoding;
  /** Sends a text and waits until there is room again. */
  readonly send: (text: string) => Promise<void>;
  readonly onEnd: (reason: EndReason) => void;
  readonly signal: AbortSignal;
}

/** A page that is being sent. */
interface Sending {
  readonly page: Found;
  readonly partition: number;
  at: number;
}

export class TopicReader {
  readonly #options: TopicReaderOptions;
  #credit: number;
  #sending: Sending | null = null;
  /** The reader stands behind records that the client has not asked for, and has not been told. */
  #isAhead = false;
  #wake: () => void = () => {};

  constructor(options: TopicReaderOptions, credit: number) {
    this.#options = options;
    this.#credit = credit;
    options.signal.addEventListener("abort", () => this.#stop(), { once: true });
  }

  grant(credit: number): void {
    this.#credit = Math.min(HTTP_SOCKET_CREDIT_MAX, this.#credit + credit);
    this.#wake();
  }

  /** Until the signal, or the end of the topic. */
  async run(): Promise<void> {
    const { signal, reader } = this.#options;
    while (!signal.aborted) {
      if (this.#credit === 0) await this.#untilCredit();
      else if (this.#sending === null) await this.#take(await reader.next());
      else await this.#sendSome(this.#sending);
    }
  }

  /** Now and then the client is told where it would go on. */
  beat(): void {
    if (!this.#isAhead || this.#sending !== null) return;
    this.#isAhead = false;
    void this.#options.send(JSON.stringify({ cursor: this.#options.reader.cursor() }));
  }

  /** What the client does not take is read again later. */
  drop(): void {
    if (this.#sending === null) return;
    this.#sending.page.release();
    this.#sending = null;
  }

  #stop(): void {
    this.drop();
    this.#wake();
  }

  async #untilCredit(): Promise<void> {
    this.drop();
    await new Promise<void>((resolve) => (this.#wake = resolve));
  }

  async #take(step: Step): Promise<void> {
    const { send, reader, onEnd, signal } = this.#options;
    switch (step.kind) {
      case "page":
        if (signal.aborted) return step.page.release();
        this.#sending = { page: step.page, partition: step.partition, at: 0 };
        return;
      case "gap":
        return await send(JSON.stringify({ gap: step.gap, cursor: reader.cursor() }));
      case "problem":
        return await send(JSON.stringify({ problem: step.problem, cursor: reader.cursor() }));
      case "moved":
        this.#isAhead = true;
        return;
      case "end":
        return onEnd(step.reason);
      case "gone":
    }
  }

  /** A message of records, or about one that is too large for any. */
  async #sendSome(sending: Sending): Promise<void> {
    const { reader, send } = this.#options;
    const text = this.#nextText(sending);
    const { partition, page: { records, next } } = sending;
    this.#isAhead = false;
    if (sending.at >= records.length) {
      this.#isAhead = records.at(-1)!.offset + 1 < next;
      reader.moveTo(partition, next);
      this.drop();
    }
    await send(text);
  }

  #nextText(sending: Sending): string {
    const { reader, encoding } = this.#options;
    const { page: { records }, partition } = sending;
    const first = records[sending.at]!;
    if (rawBytes(first) > HTTP_SOCKET_RECORD_BYTES_MAX) return this.#tooLarge(sending, first);
    const shown = { encoding, isInLine: true };
    let text = "";
    while (text.length < HTTP_CHUNK_BYTES && this.#credit > 0) {
      const record = records[sending.at];
      if (record === undefined || rawBytes(record) > HTTP_SOCKET_RECORD_BYTES_MAX) break;
      text += `${text === "" ? "" : ","}${[...recordJson(record, partition, shown)].join("")}`;
      sending.at += 1;
      this.#credit -= 1;
      reader.moveTo(partition, record.offset + 1);
    }
    return `{"records":[${text}],"cursor":"${reader.cursor()}"}`;
  }

  #tooLarge(sending: Sending, record: RecordOutput): string {
    const { reader, topic } = this.#options;
    const { partition } = sending;
    const { offset } = record;
    sending.at += 1;
    reader.moveTo(partition, offset + 1);
    const problem = {
      partition,
      offset,
      detail: `Cannot send offset ${offset} over a WebSocket: it has ${rawBytes(record)} bytes`,
      raw: rawPath(topic, partition, offset),
      next: offset + 1,
    };
    return JSON.stringify({ problem, cursor: reader.cursor() });
  }
}
