/** One record as it is: its value as the body, the rest of it as headers as far as HTTP can hold them. */
import type { Clock } from "../env/clock.ts";
import { HTTP_CHUNK_BYTES, HTTP_RECORD_HEADERS_BYTES_MAX } from "../lib/limits.ts";
import { answerOf } from "./answer.ts";
import { eventHeaders } from "./event_headers.ts";
import type { RecordOutput } from "./port.ts";
import { toBase64 } from "../lib/base64.ts";
import { textOfBytes } from "./record_json.ts";

export interface RawOptions {
  readonly partition: number;
  readonly request: Request;
  readonly clock: Clock;
  readonly release: () => void;
}

/** With the type that a writer chose: its own headers must not crowd this one out, so it counts for nothing. */
const EVENT_SAFE = ["content-security-policy", "sandbox"] as const;
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const MARKER = "base64:";
/** Visible ASCII that HTTP does not trim. */
const PLAIN = /^([\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?)?$/;

/** Anything that HTTP would change, or that looks like the marker, stands as base64 behind it. */
function headerText(value: Uint8Array | null): string {
  if (value === null) return "";
  const text = textOfBytes(value);
  const isPlain = text !== null && PLAIN.test(text) && !text.startsWith(MARKER);
  return isPlain ? text : `${MARKER}${toBase64(value)}`;
}

/** Headers up to a bound that clients take; what is left out is named or counted. */
class RecordHeaders {
  readonly headers: Headers;
  #leftBytes = HTTP_RECORD_HEADERS_BYTES_MAX;
  #omitted = 0;
  #isKeyOmitted = false;

  constructor(headers: Headers) {
    this.headers = headers;
  }

  #fits(name: string, value: Uint8Array | null): boolean {
    const bytes = name.length + (value?.length ?? 0);
    if (bytes > this.#leftBytes) return false;
    this.#leftBytes -= bytes;
    return true;
  }

  setKey(key: Uint8Array): void {
    if (this.#fits("", key)) this.headers.set("kafka-key", headerText(key));
    else this.#isKeyOmitted = true;
  }

  add(name: string, value: Uint8Array | null): void {
    if (!TOKEN.test(name) || !this.#fits(name, value)) this.#omitted += 1;
    else this.headers.append(`kafka-header-${name}`, headerText(value));
  }

  /** Text that HTTP takes as it is. */
  set(name: string, text: string): void {
    const bytes = name.length + text.length;
    if (bytes > this.#leftBytes) this.#omitted += 1;
    else {
      this.#leftBytes -= bytes;
      this.headers.set(name, text);
    }
  }

  finish(): Headers {
    const omitted = [
      ...(this.#isKeyOmitted ? ["key"] : []),
      ...(this.#omitted > 0 ? [`headers;count=${this.#omitted}`] : []),
    ];
    if (omitted.length > 0) this.headers.set("kafka-omitted", omitted.join(", "));
    return this.headers;
  }
}

/** All of a record but its value. */
export function rawHeadersOf(record: RecordOutput, partition: number): Headers {
  const headers = new RecordHeaders(
    new Headers({
      "content-type": "application/octet-stream",
      "kafka-partition": String(partition),
      "kafka-offset": String(record.offset),
      "kafka-timestamp": String(record.timestampMs),
      "x-content-type-options": "nosniff",
    }),
  );
  if (record.key !== null) headers.setKey(record.key);
  const event = eventHeaders(record);
  if (event !== null) headers.headers.set(...EVENT_SAFE);
  for (const [name, text] of event?.headers ?? []) headers.set(name, text);
  for (const { name, value } of event?.others ?? record.headers) headers.add(name, value);
  return headers.finish();
}

function* piecesOf(value: Uint8Array): Generator<Uint8Array, void> {
  for (let at = 0; at < value.length; at += HTTP_CHUNK_BYTES) {
    // A copy: the host may still look at a chunk when its memory is given back.
    yield value.slice(at, at + HTTP_CHUNK_BYTES);
  }
}

export function rawResponse(record: RecordOutput, options: RawOptions): Response {
  const { request, clock, partition, release } = options;
  let isHandedOver = false;
  try {
    const headers = rawHeadersOf(record, partition);
    if (record.value === null) {
      headers.delete("content-type");
      return new Response(null, { status: 204, headers });
    }
    isHandedOver = true;
    return answerOf(piecesOf(record.value), { request, clock, headers, release });
  } finally {
    if (!isHandedOver) release();
  }
}
