/**
 * Reads every WAL object as it lands: which streams a partition names, and between which two steps a process died,
 * so that a run can say that its crashes met the moments that matter to transactions and snapshots.
 */
import { WAL_OBJECT_HEADER_BYTES } from "../../../src/lib/limits.ts";
import { utf8, viewOf } from "../../../src/lib/bytes.ts";
import { decodeMetaKeyValue } from "../../../src/log/meta_codec.ts";
import {
  isControlBatch,
  isTransactionalBatch,
  readBatchHeader,
} from "../../../src/protocol/record_batch.ts";
import { readRecords } from "../../../src/protocol/record.ts";
import type { StreamId } from "../../../src/lib/brand.ts";
import type { StreamRecord } from "../../../src/storage/stream_record.ts";
import { walRecords } from "../../../src/storage/wal/wal_object.ts";
import { codecs, type SimProcess } from "../process.ts";
import type { SimStore } from "../sim_store.ts";
import { parseWalKey } from "./keys.ts";
import type { MetadataChecker } from "./metadata.ts";

/** What a record in a WAL object is; of a meta stream, the key of its value. */
export type Kind =
  | "data"
  | "marker"
  | "LOG"
  | "PARTITION"
  | "PRODUCER_SNAPSHOTS"
  | "LEADER_EPOCH_CHECKPOINT";

/** The moments, by what had landed and what had not. */
export type Moment =
  | "data without a snapshot"
  | "an open transaction"
  | "a marker without a snapshot"
  | "a snapshot above an open transaction"
  | "a promised end without its markers"
  | "markers without the end's last record"
  | "a pass of topic compaction";

/** What one partition has in the store. */
interface Landed {
  readonly open: Set<number>;
  hasData: boolean;
  hasMarker: boolean;
  isSnapshotAboveOpen: boolean;
}

/** The names of a partition's streams, as the newest value of LOG says them. */
export interface NamedStreams {
  readonly at: number;
  readonly streams: ReadonlyMap<string, number>;
  /** Suffixes that segments use. */
  readonly used: ReadonlySet<string>;
}

type Ending = "promised" | "marked";

/** In a value of `__transaction_state`, behind version, producer id, epoch and time-out. */
const STATUS_AT = 16;
const PREPARED: ReadonlySet<number> = new Set([2, 3]);

function metaOf({ payload }: StreamRecord): { key: string; value: Uint8Array } | null {
  try {
    const found = decodeMetaKeyValue(payload);
    return /^[A-Z_]+$/.test(found.key) ? found : null;
  } catch {
    return null;
  }
}

function isBatch({ payload }: StreamRecord): boolean {
  return payload.length > 60 && viewOf(payload).getInt32(8) === payload.length - 12 &&
    payload[16] === 2;
}

export class WalWatch {
  /** Told of each record of a partition, by the name of its topic, once it is in the store. */
  onLanded: (kind: Kind, topic: string, payload: Uint8Array) => void = () => {};
  readonly #metadata: MetadataChecker;
  readonly #partitions = new Map<string, Landed>();
  readonly #endings = new Map<string, Ending>();
  readonly #cutShort = new Map<Moment, number>();
  /** By meta stream. */
  readonly #named = new Map<StreamId, NamedStreams>();
  /** Partitions of which a pass has a stream that no segment uses yet. */
  readonly #passes = new Set<StreamId>();

  constructor(store: SimStore, clusterId: string, metadata: MetadataChecker) {
    this.#metadata = metadata;
    store.onLanded(({ op, key, created, bytes }) => {
      if (op !== "create" || !created || bytes === null) return;
      if (parseWalKey(clusterId, key) === null || bytes.length <= WAL_OBJECT_HEADER_BYTES) return;
      for (const record of walRecords(bytes)) this.#take(record);
    });
  }

  /** How many processes died in each of the moments. */
  get cutShort(): ReadonlyMap<Moment, number> {
    return this.#cutShort;
  }

  named(): ReadonlyMap<StreamId, NamedStreams> {
    return this.#named;
  }

  watch(process: SimProcess): void {
    process.onDeath(() => {
      for (const moment of this.#now()) {
        this.#cutShort.set(moment, (this.#cutShort.get(moment) ?? 0) + 1);
      }
      // Told once: the next process begins here.
      for (const one of this.#partitions.values()) {
        Object.assign(one, { hasData: false, hasMarker: false, isSnapshotAboveOpen: false });
      }
      this.#endings.clear();
      this.#passes.clear();
    });
  }

  #now(): ReadonlySet<Moment> {
    const moments = new Set<Moment>();
    for (const { open, hasData, hasMarker, isSnapshotAboveOpen } of this.#partitions.values()) {
      if (hasData) moments.add("data without a snapshot");
      if (open.size > 0) moments.add("an open transaction");
      if (hasMarker) moments.add("a marker without a snapshot");
      if (isSnapshotAboveOpen && open.size > 0) moments.add("a snapshot above an open transaction");
    }
    for (const ending of this.#endings.values()) {
      moments.add(
        ending === "promised"
          ? "a promised end without its markers"
          : "markers without the end's last record",
      );
    }
    if (this.#passes.size > 0) moments.add("a pass of topic compaction");
    return moments;
  }

  #of(tag: string): Landed {
    let found = this.#partitions.get(tag);
    if (found === undefined) {
      found = { open: new Set(), hasData: false, hasMarker: false, isSnapshotAboveOpen: false };
      this.#partitions.set(tag, found);
    }
    return found;
  }

  #take(record: StreamRecord): void {
    const tag = this.#metadata.state.streams.get(record.streamId)?.tag ?? null;
    if (tag === null) return;
    const topic = this.#metadata.state.topics.get(tag.slice(0, tag.indexOf("/")))?.name ?? "";
    if (isBatch(record)) {
      this.#takeBatch(tag, topic, record);
      const isMarker = isControlBatch(readBatchHeader(record.payload));
      return this.onLanded(isMarker ? "marker" : "data", topic, record.payload);
    }
    const meta = metaOf(record);
    if (meta === null) return;
    this.onLanded(meta.key as Kind, topic, meta.value);
    if (meta.key === "LOG") this.#takeLog(record, meta.value);
    if (meta.key === "PRODUCER_SNAPSHOTS") {
      const landed = this.#of(tag);
      landed.isSnapshotAboveOpen = landed.open.size > 0;
      landed.hasData = false;
      landed.hasMarker = false;
    }
  }

  #takeBatch(tag: string, topic: string, { payload }: StreamRecord): void {
    const landed = this.#of(tag);
    const header = readBatchHeader(payload);
    if (isControlBatch(header)) {
      landed.hasMarker = true;
      landed.open.delete(header.producerId);
      for (const [id, ending] of this.#endings) {
        const isOf = id.endsWith(`/${header.producerId}`) && ending === "promised";
        if (isOf) this.#endings.set(id, "marked");
      }
      return;
    }
    landed.hasData = true;
    if (isTransactionalBatch(header)) landed.open.add(header.producerId);
    if (topic === "__transaction_state") this.#takeStates(payload);
  }

  #takeStates(batch: Uint8Array): void {
    for (const { key, value } of readRecords(batch, codecs)) {
      if (key === null || value === null || value.length <= STATUS_AT) continue;
      const producerId = Number(viewOf(value).getBigInt64(2));
      const id = `${utf8(key.subarray(4))}/${producerId}`;
      if (PREPARED.has(value[STATUS_AT]!)) this.#endings.set(id, "promised");
      else this.#endings.delete(id);
    }
  }

  #takeLog({ streamId, baseOffset }: StreamRecord, value: Uint8Array): void {
    if ((this.#named.get(streamId)?.at ?? -1) > baseOffset) return;
    const { streamMap, segmentMetas } = JSON.parse(utf8(value)) as {
      readonly streamMap: Readonly<Record<string, number>>;
      readonly segmentMetas: readonly { readonly s: string }[];
    };
    const streams = new Map(Object.entries(streamMap));
    const used = new Set(segmentMetas.map(({ s }) => s).filter((suffix) => suffix !== ""));
    this.#named.set(streamId, { at: baseOffset, streams, used });
    const isUnderWay = [...streams.keys()].some((name) =>
      name.startsWith("log.cleaned.") && !used.has(name.slice("log".length))
    );
    if (isUnderWay) this.#passes.add(streamId);
    else this.#passes.delete(streamId);
  }
}
