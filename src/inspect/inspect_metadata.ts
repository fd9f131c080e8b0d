/** Metadata log entries, snapshots and the cluster object. */
import { position } from "../lib/brand.ts";
import { ByteReader, getInt64, toHex, viewOf } from "../lib/bytes.ts";
import { crc32c } from "../lib/crc32c.ts";
import type { Codecs } from "../env/codecs.ts";
import { isFault } from "../lib/errors.ts";
import { isSecretKey } from "../lib/secret_keys.ts";
import { readCluster } from "../controller/cluster.ts";
import { checkedBody, decodeEntry, readHead } from "../controller/entry.ts";
import { decodeSnapshot, dumpTables } from "../controller/snapshot.ts";
import { damageOf } from "./blocks.ts";
import type { ByteSource } from "./byte_source.ts";
import { type Fields, type FieldValue, type Item, item } from "./item.ts";

/** Magic, version and feature level stand before a snapshot's position. */
const SNAPSHOT_POSITION_AT = 7;

/** Runs a decoder; damage is its message, what a newer build wrote is thrown on. */
function tryDecode<T>(decode: () => T): { readonly value: T } | { readonly damage: string } {
  try {
    return { value: decode() };
  } catch (error) {
    if (!isFault(error)) return { damage: damageOf(error) };
    if (error.code !== "corrupt") throw error;
    const { cause } = error;
    return {
      damage: cause instanceof Error ? `${error.message}: ${cause.message}` : error.message,
    };
  }
}

/** The bytes with a right CRC at their end, so that what stands before can be shown. */
function mended(bytes: Uint8Array): Uint8Array {
  const copy = bytes.slice();
  if (copy.length >= 4) viewOf(copy).setUint32(copy.length - 4, crc32c(copy.subarray(0, -4)));
  return copy;
}

function crcDamage(bytes: Uint8Array, what: string): string | null {
  const checked = tryDecode(() => checkedBody(bytes, what));
  return "damage" in checked ? checked.damage : null;
}

/** Rows are plain JSON. */
function fieldsOf(row: object): Fields {
  return row as Fields;
}

/** What is shown ends up in reports and chats. */
function withoutSecret(key: FieldValue | undefined, value: FieldValue): FieldValue {
  return typeof key === "string" && isSecretKey(key) ? "(secret)" : value;
}

function recordFields(record: object): Fields {
  const fields = fieldsOf(record);
  const { key, value } = fields;
  return value === undefined ? fields : { ...fields, value: withoutSecret(key, value) };
}

/** Returns the damage. */
export async function* inspectEntry(source: ByteSource): AsyncGenerator<Item, string | null> {
  const bytes = await source.read(0, source.size);
  const damage = crcDamage(bytes, "metadata entry");
  const head = tryDecode(() => readHead(new ByteReader(bytes)));
  if ("damage" in head) return damage ?? head.damage;
  const { at, previous, clusterId, writer } = head.value;
  yield item("entry", 0, {
    position: at,
    cluster: clusterId,
    previous: toHex(previous),
    writer: fieldsOf(writer),
  });
  const decoded = tryDecode(() => decodeEntry(mended(bytes)));
  if ("damage" in decoded) return damage ?? decoded.damage;
  for (const record of decoded.value.records) yield item("record", null, recordFields(record));
  return damage;
}

/** Returns the damage. */
export async function* inspectSnapshot(
  source: ByteSource,
  codecs: Codecs,
): AsyncGenerator<Item, string | null> {
  const bytes = await source.read(0, source.size);
  const damage = crcDamage(bytes, "snapshot");
  const decoded = tryDecode(() => {
    const view = viewOf(bytes);
    const at = view.byteLength < SNAPSHOT_POSITION_AT + 8
      ? 0
      : getInt64(view, SNAPSHOT_POSITION_AT);
    return decodeSnapshot(mended(bytes), position(at), codecs);
  });
  if ("damage" in decoded) return damage ?? decoded.damage;
  const { state, lastHash } = decoded.value;
  yield item("snapshot", 0, {
    position: state.at,
    cluster: state.clusterId,
    lastHash: toHex(lastHash),
  });
  for (const [table, rows] of Object.entries(dumpTables(state))) yield* tableItems(table, rows);
  return damage;
}

function* tableItems(table: string, rows: unknown): Generator<Item> {
  if (!Array.isArray(rows)) {
    yield item("counter", null, { [table]: rows as FieldValue });
    return;
  }
  for (const row of rows as readonly unknown[]) {
    const fields = Array.isArray(row)
      ? { key: row[0] as FieldValue, value: withoutSecret(row[0], row[1]) }
      : fieldsOf(row as object);
    yield item(table, null, fields);
  }
}

/** Returns the damage. */
export async function* inspectCluster(source: ByteSource): AsyncGenerator<Item, string | null> {
  const bytes = await source.read(0, source.size);
  const decoded = tryDecode(() => readCluster(bytes));
  if ("damage" in decoded) return decoded.damage;
  yield item("cluster", 0, { ...decoded.value });
  return null;
}
