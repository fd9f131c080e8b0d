/**
 * Answers that are made as the client takes them. What an answer is made of is held until the last piece
 * has been asked for, or never will be: the client is gone, or takes too little for too long.
 */
import type { Cancel, Clock } from "../env/clock.ts";
import { toUtf8 } from "../lib/bytes.ts";
import { FaultError } from "../lib/errors.ts";
import {
  HTTP_BYTES_PER_S_MIN,
  HTTP_CHUNK_BYTES,
  HTTP_ENCODED_ANSWER_BYTES_MIN,
  WRITE_STALL_MS,
} from "../lib/limits.ts";
import { encodedAnswer, encodingOf } from "./encoded_answer.ts";

export interface AnswerOptions {
  readonly request: Request;
  readonly clock: Clock;
  readonly status?: number;
  readonly headers: Record<string, string> | Headers;
  /** What the answer is made of is not looked at any more. Called once. */
  readonly release: () => void;
}

/** Joins pieces of text to chunks of about HTTP_CHUNK_BYTES. */
export function* chunksOf(pieces: Iterable<string>): Generator<Uint8Array, void> {
  let text = "";
  for (const piece of pieces) {
    text += piece;
    if (text.length < HTTP_CHUNK_BYTES) continue;
    yield toUtf8(text);
    text = "";
  }
  if (text !== "") yield toUtf8(text);
}

/** A stream that makes a chunk only when one is asked for. */
class PulledBody {
  readonly #chunks: Iterator<Uint8Array, void>;
  readonly #options: AnswerOptions;
  readonly #onGone = () => this.#fail("the client is gone");
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null;
  #cancelTimer: Cancel = () => {};
  #sentBytes = 0;
  #waitedMs = 0;
  #waitingSinceMs: number;
  #isOver = false;

  constructor(chunks: Iterator<Uint8Array, void>, options: AnswerOptions) {
    this.#chunks = chunks;
    this.#options = options;
    this.#waitingSinceMs = options.clock.monotonicMs();
  }

  open(): ReadableStream<Uint8Array> {
    const source: UnderlyingDefaultSource<Uint8Array> = {
      start: (controller) => {
        this.#controller = controller;
        this.#options.request.signal.addEventListener("abort", this.#onGone, { once: true });
        this.#expectPull();
        if (this.#options.request.signal.aborted) this.#onGone();
      },
      pull: () => this.#next(),
      cancel: () => this.#end(),
    };
    return new ReadableStream(source, { highWaterMark: 0 });
  }

  #next(): void {
    const { clock } = this.#options;
    this.#cancelTimer();
    if (this.#isOver) return;
    this.#waitedMs += clock.monotonicMs() - this.#waitingSinceMs;
    try {
      const chunk = this.#chunks.next();
      if (chunk.done !== true) {
        this.#sentBytes += chunk.value.length;
        this.#controller?.enqueue(chunk.value);
        return this.#expectPull();
      }
      this.#controller?.close();
    } catch (error) {
      this.#controller?.error(error);
    }
    this.#end();
  }

  /** The next chunk has to be asked for in time, and all of them at a least pace. */
  #expectPull(): void {
    const { clock } = this.#options;
    this.#waitingSinceMs = clock.monotonicMs();
    const allowedMs = WRITE_STALL_MS + this.#sentBytes * 1000 / HTTP_BYTES_PER_S_MIN;
    this.#cancelTimer = clock.after(
      Math.min(WRITE_STALL_MS, allowedMs - this.#waitedMs),
      () => this.#fail("the client does not read"),
    );
  }

  #fail(why: string): void {
    if (this.#isOver) return;
    const fault = new FaultError("aborted", `Cannot send the answer: ${why}`, { retriable: true });
    this.#controller?.error(fault);
    this.#end();
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#cancelTimer();
    this.#options.request.signal.removeEventListener("abort", this.#onGone);
    this.#options.release();
  }
}

/** At once where one chunk is all, else as it is taken, and encoded where it is worth it; HEAD takes nothing. */
export function answerOf(chunks: Iterator<Uint8Array, void>, options: AnswerOptions): Response {
  const { request, status = 200, headers, release } = options;
  const init = { status, headers };
  let isHandedOver = false;
  try {
    if (request.method === "HEAD") return new Response(null, init);
    const first = chunks.next();
    const second = first.done === true ? first : chunks.next();
    if (first.done === true) return new Response("", init);
    if (second.done === true) return wholeAnswer(first.value, options, init);
    const body = new PulledBody(joined([first.value, second.value], chunks), options).open();
    isHandedOver = true;
    const encoding = encodingOf(request, headers);
    return encoding === null ? new Response(body, init) : encodedAnswer(body, init, encoding);
  } finally {
    if (!isHandedOver) release();
  }
}

function wholeAnswer(
  bytes: Uint8Array,
  { request, headers }: AnswerOptions,
  init: ResponseInit,
): Response {
  const body = bytes as Uint8Array<ArrayBuffer>;
  const encoding = bytes.length < HTTP_ENCODED_ANSWER_BYTES_MIN
    ? null
    : encodingOf(request, headers);
  if (encoding === null) return new Response(body, init);
  // Not encoded here, so it need not be a stream.
  if (!encoding.isWanted) return encodedAnswer(body, init, encoding);
  const source = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(bytes);
      controller.close();
    },
  });
  return encodedAnswer(source, init, encoding);
}

function* joined(
  before: Uint8Array[],
  rest: Iterator<Uint8Array, void>,
): Generator<Uint8Array, void> {
  for (let chunk = before.shift(); chunk !== undefined; chunk = before.shift()) yield chunk;
  for (let next = rest.next(); next.done !== true; next = rest.next()) yield next.value;
}
