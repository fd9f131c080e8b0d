/**
 * The body of a live stream. A chunk is made when the host asks for one, so a reader that stops holds one page
 * at most, and that only for a while: then the page goes back, and is read again when the reader goes on.
 */
import type { Env } from "../../env/env.ts";
import { toUtf8 } from "../../lib/bytes.ts";
import { FaultError, messageOf } from "../../lib/errors.ts";
import { HTTP_CHUNK_BYTES, HTTP_STREAM_HOLD_MS, WRITE_STALL_MS } from "../../lib/limits.ts";
import type { Found } from "../read/page.ts";
import type { EndReason, StreamFormat } from "./formats.ts";
import type { LiveReader, Step } from "./live_reader.ts";
import type { LiveStream, LiveStreams } from "./live_streams.ts";

export interface LiveBodyOptions {
  readonly env: Env;
  readonly streams: LiveStreams;
  readonly reader: LiveReader;
  readonly format: StreamFormat;
  /** Aborts the reader. */
  readonly gone: AbortController;
  readonly request: Request;
}

/** A page that is being sent. */
interface Sending {
  readonly page: Found;
  readonly pieces: Iterator<string, void>;
  /** All of a record has been sent, so that the page can be dropped. */
  isBetween: boolean;
}

/** As a label of metrics. */
type Ending = "ended" | "gone" | "stalled" | "failed";

export class LiveBody implements LiveStream {
  readonly #options: LiveBodyOptions;
  readonly #remove: () => void;
  readonly #onGone = () => this.#fail("gone", "the client is gone");
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null;
  #sending: Sending | null = null;
  /** The host has asked for a chunk that it has not got. */
  #isAsked = false;
  #isRunning = false;
  #isOver = false;
  /** The reader stands where no id has told the client. */
  #isAhead = false;
  /** When the last chunk was given. */
  #givenMs: number;

  constructor(options: LiveBodyOptions) {
    this.#options = options;
    this.#givenMs = options.env.clock.monotonicMs();
    this.#remove = options.streams.add(this);
  }

  open(): ReadableStream<Uint8Array> {
    const { request, format, reader } = this.#options;
    return new ReadableStream<Uint8Array>({
      start: (controller) => {
        this.#controller = controller;
        request.signal.addEventListener("abort", this.#onGone, { once: true });
        // At once: proxies and platforms want to see that an answer begins.
        controller.enqueue(toUtf8(format.open(reader.cursor())));
        if (request.signal.aborted) this.#onGone();
        else this.#endIfOver();
      },
      pull: () => {
        this.#isAsked = true;
        if (!this.#isRunning && !this.#isOver) void this.#run();
      },
      cancel: () => this.#close("gone"),
    }, { highWaterMark: 0 });
  }

  beat(): void {
    if (this.#isOver) return;
    if (!this.#isAsked) return this.#expectAsk(WRITE_STALL_MS);
    const { format, reader } = this.#options;
    // In the middle of a record nothing else may stand.
    if (this.#sending !== null || this.#endIfOver()) return;
    this.#give(this.#isAhead ? format.cursor(reader.cursor()) : format.heartbeat);
    this.#isAhead = false;
  }

  look(): void {
    if (this.#isAsked || this.#isOver) return;
    const waitedMs = this.#options.env.clock.monotonicMs() - this.#givenMs;
    if (waitedMs >= HTTP_STREAM_HOLD_MS && this.#sending?.isBetween === true) this.#drop();
    this.#expectAsk(WRITE_STALL_MS);
  }

  end(reason: EndReason): void {
    if (this.#isOver) return;
    // Half a record is not followed by anything: the client has to see that it was cut.
    if (this.#sending?.isBetween !== false) this.#give(this.#options.format.end(reason));
    if (this.#isOver) return;
    this.#close("ended");
    this.#controller?.close();
  }

  #expectAsk(withinMs: number): void {
    const waitedMs = this.#options.env.clock.monotonicMs() - this.#givenMs;
    if (waitedMs >= withinMs) this.#fail("stalled", "the client does not read");
  }

  #give(text: string): void {
    this.#isAsked = false;
    this.#givenMs = this.#options.env.clock.monotonicMs();
    if (text !== "") this.#controller?.enqueue(toUtf8(text));
    this.#endIfOver();
  }

  #endIfOver(): boolean {
    if (this.#isOver || this.#sending?.isBetween === false) return false;
    if (this.#options.format.isOver?.() !== true) return false;
    this.#close("ended");
    this.#controller?.close();
    return true;
  }

  /** Gives chunks as long as they are asked for. */
  async #run(): Promise<void> {
    this.#isRunning = true;
    try {
      while (this.#isAsked && !this.#isOver) {
        if (this.#sending === null) this.#begin(await this.#options.reader.next());
        else this.#send(this.#sending);
      }
    } catch (error) {
      this.#options.env.log.log("error", "http-stream-failed", { error: messageOf(error) });
      this.#fail("failed", "the broker logged why");
    } finally {
      this.#isRunning = false;
    }
  }

  #begin(step: Step): void {
    const { format, reader, streams } = this.#options;
    if (step.kind === "page" && this.#isOver) step.page.release();
    if (this.#isOver || step.kind === "gone") return;
    if (step.kind === "moved") return void (this.#isAhead = true);
    this.#isAhead = false;
    if (step.kind === "end") return this.end(step.reason);
    if (step.kind === "gap") return this.#give(format.gap(step.gap, reader.cursor()));
    if (step.kind === "problem") return this.#give(format.problem(step.problem, reader.cursor()));
    const { page, partition } = step;
    this.#sending = { page, pieces: this.#piecesOf(page, partition), isBetween: true };
    streams.setHolding(this, true);
  }

  /** The reader moves on with each record, so that a page may be dropped between any two. */
  *#piecesOf({ records, next }: Found, partition: number): Generator<string, void> {
    const { format, reader } = this.#options;
    for (const record of records) {
      reader.moveTo(partition, record.offset + 1);
      let last = "";
      for (const piece of format.record(record, partition, reader.cursor())) {
        if (last !== "") {
          this.#setBetween(false);
          yield last;
        }
        last = piece;
      }
      this.#setBetween(true);
      yield last;
    }
    const shown = records.at(-1);
    if (shown !== undefined && shown.offset + 1 < next) this.#isAhead = true;
    reader.moveTo(partition, next);
  }

  #setBetween(isBetween: boolean): void {
    if (this.#sending !== null) this.#sending.isBetween = isBetween;
  }

  /** A chunk, up to the end of a record where that is near. */
  #send(sending: Sending): void {
    let text = "";
    while (
      text.length < HTTP_CHUNK_BYTES ||
      (!sending.isBetween && text.length < 2 * HTTP_CHUNK_BYTES)
    ) {
      const piece = sending.pieces.next();
      if (piece.done === true) {
        this.#drop();
        break;
      }
      text += piece.value;
    }
    if (text !== "") this.#give(text);
  }

  #drop(): void {
    this.#sending?.page.release();
    this.#sending = null;
    this.#options.streams.setHolding(this, false);
  }

  #fail(ending: Ending, why: string): void {
    if (this.#isOver) return;
    this.#close(ending);
    this.#controller?.error(
      new FaultError("aborted", `Cannot send the stream: ${why}`, { retriable: true }),
    );
  }

  #close(ending: Ending): void {
    if (this.#isOver) return;
    this.#options.env.metrics.count("skerry_http_streams_total", { ending });
    this.#isOver = true;
    this.#remove();
    this.#drop();
    this.#options.request.signal.removeEventListener("abort", this.#onGone);
    this.#options.gone.abort();
  }
}
