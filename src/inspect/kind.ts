/** Which of our objects some bytes are: by what they begin and end with, else by the name they carry. */
import { viewOf } from "../lib/bytes.ts";
import { FOOTER_BYTES } from "../storage/format/footer.ts";
import type { ByteSource } from "./byte_source.ts";

export type ObjectKind =
  | "wal"
  | "data"
  | "composite"
  | "entry"
  | "snapshot"
  | "cluster"
  | "sparse"
  | "probe";

const HEAD_BYTES = 64;
const HEAD_MAGIC: Readonly<Record<number, ObjectKind>> = {
  0xedcba987: "wal",
  0x534b4d4c: "entry",
  0x534b4d53: "snapshot",
};
const DATA_MAGIC = 0x88e241b785f4cff7n;
const COMPOSITE_MAGIC = 0x88e241b785f4cff8n;

/** Ends of keys; a file in a directory store has its key as the end of its path. */
const NAMES: readonly (readonly [RegExp, ObjectKind])[] = [
  [/\/wal\/\d+-\d+$/, "wal"],
  [/\/log\/\d{20}$/, "entry"],
  [/\/snap\/\d{20}$/, "snapshot"],
  [/(^|\/)meta\/cluster$/, "cluster"],
  [/(^|\/)meta\/probe\/[^/]+\/[^/]+$/, "probe"],
  [/(^|\/)[0-9a-f]{8}\/_kafka_[^/]+\/node-\d+$/, "sparse"],
  [/(^|\/)[0-9a-f]{8,}\/_kafka_[^/]+\/\d+$/, "data"],
];

const WITHOUT_MAGIC: ReadonlySet<ObjectKind> = new Set(["cluster", "sparse", "probe"]);

function kindOfTail(tail: Uint8Array): ObjectKind | null {
  if (tail.length < FOOTER_BYTES) return null;
  const magic = viewOf(tail).getBigUint64(tail.length - 8);
  return magic === DATA_MAGIC ? "data" : magic === COMPOSITE_MAGIC ? "composite" : null;
}

/** Null for what is none of ours. A damaged magic is made up for by the name. */
export async function kindOf(source: ByteSource): Promise<ObjectKind | null> {
  const head = await source.read(0, Math.min(source.size, HEAD_BYTES));
  const byHead = head.length < 4 ? undefined : HEAD_MAGIC[viewOf(head).getUint32(0)];
  const tail = await source.read(Math.max(0, source.size - FOOTER_BYTES), source.size);
  const byName = NAMES.find(([pattern]) => pattern.test(source.name))?.[1] ?? null;
  if (byName !== null && WITHOUT_MAGIC.has(byName)) return byName;
  return byHead ?? kindOfTail(tail) ?? byName;
}
