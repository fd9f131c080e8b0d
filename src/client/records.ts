/** Records as programs have them, and as the broker's JSON has them. */
import { isObject, type Problem, wrongAnswer } from "./errors.ts";

/** Text or bytes as they are; null is no key, or a tombstone as a value. */
export type Data = string | Uint8Array | null;

export interface NewRecord {
  readonly key?: Data;
  /** Text and bytes are stored as they are, null as a tombstone, all else as its JSON. */
  readonly value: unknown;
  readonly headers?:
    | Readonly<Record<string, Data>>
    | readonly (readonly [name: string, value: Data])[];
  /** Milliseconds since 1970; now, if it is missing. */
  readonly timestamp?: number | Date;
  /** By the key, if it is missing. */
  readonly partition?: number;
}

export interface StoredRecord<V = Data> {
  readonly partition: number;
  readonly offset: number;
  /** Milliseconds since 1970. */
  readonly timestamp: number;
  /** Bytes where they are no UTF-8. */
  readonly key: Data;
  /** Bytes where they are no UTF-8, or with `encoding: "json"` no JSON. */
  readonly value: V;
  readonly headers: readonly (readonly [name: string, value: Data])[];
}

const BYTES_AT_ONCE = 8192;
const PARTITION_MAX = 2 ** 31 - 1;
/** Half a surrogate pair: it has no UTF-8, and the broker refuses it with all records around it. */
const NO_TEXT = /\p{Surrogate}/u;

export function base64Of(bytes: Uint8Array): string {
  let binary = "";
  for (let at = 0; at < bytes.length; at += BYTES_AT_ONCE) {
    binary += String.fromCharCode(...bytes.subarray(at, at + BYTES_AT_ONCE));
  }
  return btoa(binary);
}

function dataJson(data: unknown): unknown {
  if (data === null) return null;
  if (data instanceof Uint8Array) return { $base64: base64Of(data) };
  if (typeof data === "string" && !NO_TEXT.test(data)) return data;
  const what = typeof data === "string" ? "half of a surrogate pair" : typeof data;
  throw new TypeError(`Cannot send ${what}: not text, bytes or null`);
}

/** JSON goes as text of its own: what looks like bytes to the broker (`$base64`) stays what it is. */
function valueJson(value: unknown): unknown {
  const isData = value === null || typeof value === "string" || value instanceof Uint8Array;
  return dataJson(isData ? value : JSON.stringify(value));
}

/** The broker would refuse these with all records around them, too. */
function checkCount(count: number | undefined, max: number): void {
  if (count === undefined || (Number.isSafeInteger(count) && count >= 0 && count <= max)) return;
  throw new TypeError(`Cannot send ${count}: not a whole number from 0 to ${max}`);
}

/** A line of NDJSON. Throws TypeError for what is no record. */
export function lineOf({ key, value, headers, timestamp, partition }: NewRecord): string {
  const pairs = isObject(headers) ? Object.entries(headers) : headers ?? [];
  const time = timestamp === undefined ? timestamp : Number(timestamp);
  checkCount(time, Number.MAX_SAFE_INTEGER);
  checkCount(partition, PARTITION_MAX);
  return JSON.stringify({
    key: dataJson(key ?? null) ?? undefined,
    value: valueJson(value),
    headers: pairs.map(([name, data]) => {
      if (name === "") throw new TypeError("Cannot send a header without a name");
      return [dataJson(name), dataJson(data)];
    }),
    timestamp: time,
    partition,
  }) + "\n";
}

function isMarked(shown: unknown): shown is { readonly $base64: string } {
  return isObject(shown) && typeof shown["$base64"] === "string" && Object.keys(shown).length === 1;
}

function shownData(shown: unknown): unknown {
  if (!isMarked(shown)) return shown;
  return Uint8Array.from(atob(shown.$base64), (char) => char.charCodeAt(0));
}

/** What the broker shows, with bytes where it marks them. */
export function recordOf<V>(shown: Problem): StoredRecord<V> {
  const { offset, headers } = shown;
  if (typeof offset !== "number" || !Array.isArray(headers)) throw wrongAnswer("no record");
  return {
    ...shown,
    key: shownData(shown["key"]),
    value: shownData(shown["value"]),
    headers: headers.map(([name, data]: [string, unknown]) => [name, shownData(data)]),
  } as unknown as StoredRecord<V>;
}
