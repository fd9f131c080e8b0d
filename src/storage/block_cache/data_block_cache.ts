/** Decoded data blocks, kept up to a number of bytes. Neighbours are fetched together; each block once at a time. */
import type { ObjectId } from "../../lib/brand.ts";
import { LOG_CACHE_RECORD_OVERHEAD_BYTES, RANGE_READ_BYTES_MAX } from "../../lib/limits.ts";
import { Lru } from "../../lib/lru.ts";
import { dataKey } from "../../object/object_key.ts";
import type { ObjectStore } from "../../object/object_store.ts";
import type { IndexEntry } from "../format/index_block.ts";
import { corrupt, decodeRecords, readRange } from "../format/object_reader.ts";
import { endOffset, type StreamRecord } from "../stream_record.ts";
import { MissingObject } from "../missing_object.ts";
import { groupReads } from "./read_plan.ts";

interface DataBlock {
  readonly records: readonly StreamRecord[];
  readonly bytes: number;
}

export class DataBlockCache {
  readonly #store: ObjectStore;
  readonly #clusterId: string;
  readonly #cached: Lru<string, DataBlock>;
  readonly #loading = new Map<string, Promise<DataBlock>>();

  constructor(store: ObjectStore, clusterId: string, bytesMax: number) {
    this.#store = store;
    this.#clusterId = clusterId;
    this.#cached = new Lru(bytesMax, (block) => block.bytes);
  }

  get bytes(): number {
    return this.#cached.weight;
  }

  /**
   * Records of each entry, in order. When any of them must be fetched, what is `ahead` is fetched with it;
   * a read that the cache can answer costs no request. Throws MissingObject.
   */
  async get(
    id: ObjectId,
    entries: readonly IndexEntry[],
    ahead: readonly IndexEntry[],
  ): Promise<(readonly StreamRecord[])[]> {
    const wanted = entries.map((entry) => this.#known(id, entry));
    if (wanted.includes(null)) {
      const absent = [...entries, ...ahead].filter((entry) => this.#known(id, entry) === null);
      for (const group of groupReads(absent, RANGE_READ_BYTES_MAX)) {
        const loaded = this.#load(id, group);
        for (const [i, entry] of group.entries()) {
          const block = this.#share(blockKey(id, entry), loaded.then((all) => all[i]!));
          const at = entries.indexOf(entry);
          if (at >= 0) wanted[at] = block;
        }
      }
    }
    return await Promise.all(wanted.map(async (block) => (await block)!.records));
  }

  #known(id: ObjectId, entry: IndexEntry): Promise<DataBlock> | DataBlock | null {
    const key = blockKey(id, entry);
    return this.#cached.get(key) ?? this.#loading.get(key) ?? null;
  }

  /** Others may join while it loads; afterwards it is in the cache, or forgotten when it failed. */
  #share(key: string, load: Promise<DataBlock>): Promise<DataBlock> {
    this.#loading.set(key, load);
    load.then((block) => this.#cached.set(key, block), () => {})
      .finally(() => this.#loading.delete(key));
    return load;
  }

  async #load(id: ObjectId, entries: readonly IndexEntry[]): Promise<DataBlock[]> {
    const key = dataKey(this.#clusterId, id);
    const start = entries[0]!.position;
    const { position, size } = entries.at(-1)!;
    const bytes = await readRange(this.#store, key, start, position + size);
    if (bytes === null) throw new MissingObject(id);
    return entries.map((entry) => {
      const at = entry.position - start;
      return decode(key, entry, bytes.subarray(at, at + entry.size));
    });
  }
}

function blockKey(id: ObjectId, { position }: IndexEntry): string {
  return `${id}/${position}`;
}

/** The index said what is inside: believe the block only if it agrees. */
function decode(key: string, entry: IndexEntry, bytes: Uint8Array): DataBlock {
  const records = decodeRecords(key, bytes);
  let next = entry.start;
  for (const record of records) {
    if (record.streamId !== entry.streamId || record.baseOffset !== next) {
      throw corrupt(
        key,
        `stream ${record.streamId}, ${record.baseOffset} in a block of ${entry.streamId}, ${next}`,
      );
    }
    next = endOffset(record);
  }
  if (next !== entry.end || records.length !== entry.recordCount) {
    throw corrupt(key, `block at ${entry.position} ends at offset ${next}, not ${entry.end}`);
  }
  return { records, bytes: bytes.length + records.length * LOG_CACHE_RECORD_OVERHEAD_BYTES };
}
