/**
 * What a poll gave out, as text that its client sends back: base64url of a checksum over the group's name and the
 * rest, and JSON of the lease and its ranges. It says what was leased, not whether it still is.
 */
import { toUtf8, viewOf } from "../../lib/bytes.ts";
import { crc32c } from "../../lib/crc32c.ts";
import { HTTP_ACK_CHARS_MAX } from "../../lib/limits.ts";
import { toBase64Url } from "../../lib/base64.ts";
import { textOfBytes } from "../record_json.ts";

export interface AckRange {
  readonly topic: string;
  readonly partition: number;
  readonly first: number;
  readonly last: number;
}

export interface AckToken {
  readonly holder: number;
  readonly ranges: readonly AckRange[];
}

const CRC_BYTES = 4;
const TEXT = /^[A-Za-z0-9_-]+$/;

function crcOf(group: string, json: Uint8Array): number {
  return crc32c(toUtf8(group), crc32c(json));
}

export function encodeAck(group: string, { holder, ranges }: AckToken): string {
  const list = ranges.map(({ topic, partition, first, last }) => [topic, partition, first, last]);
  const json = toUtf8(JSON.stringify([holder, ...list]));
  const bytes = new Uint8Array(CRC_BYTES + json.length);
  viewOf(bytes).setUint32(0, crcOf(group, json));
  bytes.set(json, CRC_BYTES);
  return toBase64Url(bytes);
}

function jsonOf(group: string, text: string): unknown {
  if (text.length > HTTP_ACK_CHARS_MAX || !TEXT.test(text)) return null;
  try {
    const binary = atob(text.replaceAll("-", "+").replaceAll("_", "/"));
    const bytes = Uint8Array.from(binary, (char) => char.charCodeAt(0));
    const json = bytes.subarray(CRC_BYTES);
    if (json.length === 0 || viewOf(bytes).getUint32(0) !== crcOf(group, json)) return null;
    return JSON.parse(textOfBytes(json) ?? "null");
  } catch {
    return null;
  }
}

function isCount(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function rangeOf(value: unknown): AckRange | null {
  if (!Array.isArray(value)) return null;
  const [topic, partition, first, last] = value as readonly unknown[];
  const isSound = typeof topic === "string" && isCount(partition) && isCount(first) &&
    isCount(last) && first <= last;
  return isSound ? { topic, partition, first, last } : null;
}

/** Null for what no broker gave for a group of this name. */
export function decodeAck(group: string, text: string): AckToken | null {
  const json = jsonOf(group, text);
  if (!Array.isArray(json)) return null;
  const [holder, ...list] = json as readonly unknown[];
  const ranges = list.map(rangeOf);
  if (!isCount(holder) || holder === 0 || ranges.length === 0) return null;
  return ranges.includes(null) ? null : { holder, ranges: ranges as readonly AckRange[] };
}
