/**
 * Whether the metadata that a node is about to go on from is the newest there was. If the end of its log got
 * lost, positions, epochs and ids would be given out a second time, and data objects that nobody knows would
 * look like garbage. The rest of the store bears witness: later entries, WALs of later epochs, ids that were
 * never reserved, WAL slots written after a later upload, uploads that nobody committed and whose WAL is gone.
 * Two listings and a handful of HEADs, before anything is written. What is doubtful counts as whole.
 */
import type { NodeEpoch, NodeId, ObjectId, Position, StreamId } from "../lib/brand.ts";
import { objectId } from "../lib/brand.ts";
import { DecodeError } from "../lib/bytes.ts";
import { FaultError } from "../lib/errors.ts";
import {
  SLOT_BYTES,
  STORE_LIST_PAGE_KEYS,
  TAIL_LIST_PAGES_MAX,
  TAIL_PROBE_IDS,
  TAIL_SLOT_BYTES,
  WAL_OBJECT_HEADER_BYTES,
} from "../lib/limits.ts";
import {
  dataKey,
  logKey,
  logPrefix,
  parseLogKey,
  parseWalKey,
  walNodePrefix,
} from "../object/object_key.ts";
import type { ObjectInfo, ObjectStore } from "../object/object_store.ts";
import { decodeFooter, FOOTER_BYTES } from "./format/footer.ts";
import { IndexBlock } from "./format/index_block.ts";
import type { StreamRange, StreamView } from "./ports.ts";
import { readWalHeader, readWalRecord } from "./wal/wal_object.ts";
import { slotKey } from "./wal/wal_slots.ts";

/** The newest WAL of this node that waits for recovery, as the metadata knows it. */
export interface KnownWal {
  readonly nodeId: NodeId;
  readonly epoch: NodeEpoch;
  readonly walTrim: number;
  /** Streams that it holds. */
  readonly held: readonly StreamView[];
  /** The ids that an upload or a compaction would have used next. */
  readonly nextIds: readonly ObjectId[];
  /** Whether it can have written to the stream. */
  readonly canHaveHeld: (stream: StreamId) => boolean;
}

export interface MetadataEnd {
  readonly at: Position;
  readonly nextObjectId: number;
  readonly wal: KnownWal | null;
}

export interface TailOptions {
  readonly store: ObjectStore;
  readonly clusterId: string;
  readonly nodeId: NodeId;
  readonly view: () => MetadataEnd;
  /** After a look at the end of the log: another node may have gone on. */
  readonly fresh: () => Promise<MetadataEnd>;
}

interface Witness {
  readonly key: string;
  /** What metadata does not know; null when it does. */
  says(end: MetadataEnd): string | null;
}

/** Throws FaultError `data-loss` that names the witness, and what the store throws. */
export async function expectMetadataEnd(options: TailOptions): Promise<void> {
  const end = options.view();
  const witnesses = await witnessesOf(options, end);
  if (witnesses.every((one) => one.says(end) === null)) return;
  const now = await options.fresh();
  for (const witness of witnesses) {
    const problem = witness.says(now);
    if (problem === null) continue;
    throw new FaultError(
      "data-loss",
      `The end of the metadata log is lost: it ends at entry ${now.at}, but ${witness.key} ${problem}. ` +
        "Nothing was written. Bring the newest objects below meta/ back; `skerry fsck` tells more.",
      { retriable: false },
    );
  }
}

async function witnessesOf(options: TailOptions, end: MetadataEnd): Promise<readonly Witness[]> {
  const [entry, wals, ids, upload] = await Promise.all([
    laterEntry(options, end),
    walWitnesses(options, end),
    laterIds(options, end),
    end.wal === null ? null : lostUpload(options, end.wal),
  ]);
  return [
    ...(entry === null ? [] : [entry]),
    ...wals,
    ...ids,
    ...(upload === null ? [] : [upload]),
  ];
}

/** Entries are created one after the other, so one above the first gap was followed from below once. */
async function laterEntry(
  { store, clusterId }: TailOptions,
  { at: from }: MetadataEnd,
): Promise<Witness | null> {
  for await (
    const { key } of store.list(logPrefix(clusterId), { startAfter: logKey(clusterId, from) })
  ) {
    const entry = parseLogKey(clusterId, key);
    if (entry === null) continue;
    return { key, says: ({ at }) => entry > at ? "is there, and the one after that is not" : null };
  }
  return null;
}

function walWitness(key: string, epoch: NodeEpoch): Witness {
  return {
    key,
    says: ({ at }) => epoch > at ? `is of epoch ${epoch}, which never registered` : null,
  };
}

/** One listing: from the newest known WAL on, in the order of the keys, which is nearly that of the epochs. */
async function walWitnesses(options: TailOptions, { at, wal }: MetadataEnd): Promise<Witness[]> {
  const { store, clusterId, nodeId } = options;
  const prefix = walNodePrefix(clusterId, nodeId);
  const startAfter = wal === null ? `${prefix}${at}/~` : `${prefix}${wal.epoch}/`;
  const found: Witness[] = [];
  const slots: number[] = [];
  let left = TAIL_LIST_PAGES_MAX * STORE_LIST_PAGE_KEYS;
  for await (const { key } of store.list(prefix, { startAfter })) {
    if (--left < 0) break;
    const parsed = parseWalKey(clusterId, key);
    if (parsed === null) continue;
    if (parsed.nodeEpoch > at && found.length === 0) found.push(walWitness(key, parsed.nodeEpoch));
    if (parsed.nodeEpoch === wal?.epoch) slots.push(parsed.slot);
  }
  return wal === null ? found : [...found, ...await slotWitnesses(options, wal, slots)];
}

/** The newest slot, and the one before it: the newest may be a seal, which says nothing. */
async function slotWitnesses(
  { store, clusterId }: TailOptions,
  wal: KnownWal,
  slots: readonly number[],
): Promise<Witness[]> {
  const keys = slots.toSorted((a, b) => b - a).slice(0, 2)
    .map((slot) => slotKey(clusterId, wal, slot));
  const range = { start: 0, end: TAIL_SLOT_BYTES };
  const got = await Promise.all(keys.map((key) => store.get(key, { range })));
  return got.flatMap((found, i) => found === null ? [] : witnessesIn(wal, keys[i]!, found.bytes));
}

/**
 * A writer trims once its upload is in the log, and writes to a stream once it has opened it: what says more
 * than metadata was written after an entry that is lost.
 */
function witnessesIn({ epoch }: KnownWal, key: string, bytes: Uint8Array): Witness[] {
  const found: Witness[] = [];
  try {
    const { bodyLength, trimOffset, startOffset } = readWalHeader(bytes);
    if (bodyLength === 0) return [];
    const trim = Math.ceil((trimOffset + 1) / SLOT_BYTES);
    found.push({
      key,
      says: ({ wal }) =>
        wal?.epoch === epoch && trim > wal.walTrim
          ? `was written when slots below ${trim} were uploaded, metadata says ${wal.walTrim}`
          : null,
    });
    for (const stream of streamsIn(bytes, startOffset)) {
      found.push({
        key,
        says: ({ wal }) =>
          wal?.epoch === epoch && !wal.canHaveHeld(stream)
            ? `holds records of stream ${stream}, which was never opened`
            : null,
      });
    }
  } catch (error) {
    // Recovery names what is damaged.
    if (!(error instanceof DecodeError)) throw error;
  }
  return found;
}

/** As far as whole records were read. */
function streamsIn(bytes: Uint8Array, startOffset: number): Set<StreamId> {
  const streams = new Set<StreamId>();
  try {
    for (let at = WAL_OBJECT_HEADER_BYTES; at < bytes.length;) {
      const { record, end } = readWalRecord(bytes, at, startOffset + at - WAL_OBJECT_HEADER_BYTES);
      streams.add(record.streamId);
      at = end;
    }
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
  }
  return streams;
}

/** Ids of a block are used from its first on. */
async function laterIds(
  { store, clusterId }: TailOptions,
  { nextObjectId }: MetadataEnd,
): Promise<Witness[]> {
  const ids = Array.from({ length: TAIL_PROBE_IDS }, (_, i) => objectId(nextObjectId + i));
  const infos = await Promise.all(ids.map((id) => store.head(dataKey(clusterId, id))));
  return ids.flatMap((id, i) => {
    const info = infos[i] ?? null;
    if (info === null) return [];
    const says = (end: MetadataEnd) =>
      id >= end.nextObjectId ? `has an id that was never reserved` : null;
    return [{ key: info.key, says }];
  });
}

/**
 * An upload that nobody committed is what a crash leaves, too. But then its records are still in the WAL, from
 * the trim point on: slots are deleted only after the commit.
 */
async function lostUpload(options: TailOptions, wal: KnownWal): Promise<Witness | null> {
  const { store, clusterId } = options;
  const ends = new Map(
    wal.held.map(({ streamId, start, end }) => [streamId, Math.max(start, end)]),
  );
  const infos = await Promise.all(wal.nextIds.map((id) => store.head(dataKey(clusterId, id))));
  for (const info of infos) {
    if (info === null) continue;
    const beyond = (await rangesIn(store, info))
      .find(({ streamId, end }) => end > (ends.get(streamId) ?? Infinity));
    if (beyond === undefined) continue;
    if (await store.head(slotKey(clusterId, wal, wal.walTrim)) !== null) return null;
    const { streamId, start, end } = beyond;
    const says = (now: MetadataEnd) =>
      now.wal?.epoch === wal.epoch && now.wal.walTrim === wal.walTrim
        ? `holds stream ${streamId} from ${start} to ${end}, which is in no WAL any more`
        : null;
    return { key: info.key, says };
  }
  return null;
}

/** None of a composite, or of what is damaged. */
async function rangesIn(store: ObjectStore, { key, size }: ObjectInfo): Promise<StreamRange[]> {
  const tail = await store.get(key, {
    range: { start: Math.max(0, size - FOOTER_BYTES), end: size },
  });
  if (tail === null) return [];
  try {
    const { indexPosition, indexLength } = decodeFooter("data", tail.bytes, size);
    const range = { start: indexPosition, end: indexPosition + indexLength };
    const index = await store.get(key, { range });
    return index === null ? [] : new IndexBlock(index.bytes, indexPosition).ranges();
  } catch (error) {
    if (error instanceof DecodeError) return [];
    throw error;
  }
}
