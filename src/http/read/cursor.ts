/**
 * Where a reader of a topic stands, as text that a client carries: base64url of version, topic id, the
 * partition whose turn it is, the offset to read next in each partition, and a checksum over all of it and the
 * topic's name. A partition that is not in it is read from its beginning: it is new, or was never read.
 */
import { crc32c } from "../../lib/crc32c.ts";
import { toUtf8, viewOf } from "../../lib/bytes.ts";
import { HTTP_CURSOR_CHARS_MAX, HTTP_CURSOR_PARTITIONS_MAX } from "../../lib/limits.ts";
import { uuidBytes, uuidOf } from "../../lib/uuid.ts";
import { toBase64Url } from "../../lib/base64.ts";

export interface Cursor {
  readonly topicId: string;
  /** The partition to begin with, so that pages are fair to all. */
  readonly turn: number;
  readonly positions: ReadonlyMap<number, number>;
}

const VERSION = 1;
const ID_BYTES = 16;
const CRC_BYTES = 4;
const VARINT_BYTES_MAX = 8;
const TEXT = /^[A-Za-z0-9_-]+$/;

class Writer {
  readonly #bytes: Uint8Array;
  at = 0;

  constructor(capacity: number) {
    this.#bytes = new Uint8Array(capacity);
  }

  byte(value: number): void {
    this.#bytes[this.at++] = value;
  }

  bytes(value: Uint8Array): void {
    this.#bytes.set(value, this.at);
    this.at += value.length;
  }

  /** Up to 2^53, seven bits a byte. */
  varint(value: number): void {
    let rest = value;
    for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) this.byte((rest % 0x80) | 0x80);
    this.byte(rest);
  }

  finish(topic: string): Uint8Array {
    const body = this.#bytes.subarray(0, this.at);
    viewOf(this.#bytes).setUint32(this.at, crc32c(toUtf8(topic), crc32c(body)));
    return this.#bytes.subarray(0, this.at + CRC_BYTES);
  }
}

export function encodeCursor(topic: string, { topicId, turn, positions }: Cursor): string {
  const capacity = 1 + ID_BYTES + CRC_BYTES + VARINT_BYTES_MAX * 2 * (1 + positions.size);
  const writer = new Writer(capacity);
  writer.byte(VERSION);
  writer.bytes(uuidBytes(topicId));
  writer.varint(turn);
  let before = -1;
  const partitions = [...positions.keys()].toSorted((a, b) => a - b);
  for (const partition of partitions) {
    writer.varint(partition - before - 1);
    writer.varint(positions.get(partition)!);
    before = partition;
  }
  return toBase64Url(writer.finish(topic));
}

function bytesOf(text: string): Uint8Array | null {
  if (text.length > HTTP_CURSOR_CHARS_MAX || !TEXT.test(text)) return null;
  try {
    const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
    return Uint8Array.from(binary, (char) => char.charCodeAt(0));
  } catch {
    return null;
  }
}

class Reader {
  readonly #bytes: Uint8Array;
  #at: number;

  constructor(bytes: Uint8Array, at: number) {
    this.#bytes = bytes;
    this.#at = at;
  }

  get isAtEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  /** NaN where there is none. */
  varint(): number {
    let value = 0;
    for (let factor = 1;; factor *= 0x80) {
      const byte = this.#bytes[this.#at++] ?? Number.NaN;
      value += (byte % 0x80) * factor;
      if (!(byte >= 0x80)) return value;
    }
  }
}

/** Null for what no broker gave for a topic of this name. */
export function decodeCursor(topic: string, text: string): Cursor | null {
  const bytes = bytesOf(text);
  if (bytes === null || bytes[0] !== VERSION || bytes.length < 2 + ID_BYTES + CRC_BYTES) {
    return null;
  }
  const body = bytes.subarray(0, -CRC_BYTES);
  const crc = crc32c(toUtf8(topic), crc32c(body));
  if (viewOf(bytes).getUint32(body.length) !== crc) return null;
  const reader = new Reader(body, 1 + ID_BYTES);
  const turn = reader.varint();
  const positions = new Map<number, number>();
  for (let partition = -1; !reader.isAtEnd;) {
    partition += 1 + reader.varint();
    const offset = reader.varint();
    const isSound = Number.isSafeInteger(partition) && Number.isSafeInteger(offset);
    if (!isSound || positions.size >= HTTP_CURSOR_PARTITIONS_MAX) return null;
    positions.set(partition, offset);
  }
  const topicId = uuidOf(body.subarray(1, 1 + ID_BYTES));
  return Number.isSafeInteger(turn) ? { topicId, turn, positions } : null;
}
