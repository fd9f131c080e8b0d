/** One committed object against its row: size, footer, index, blocks, payloads, checksums, ranges. */
import type { ObjectRow } from "../controller/image.ts";
import { covers, rangesDigest } from "../controller/ranges.ts";
import type { State } from "../controller/state.ts";
import type { ObjectId, StreamId } from "../lib/brand.ts";
import { crc32c } from "../lib/crc32c.ts";
import { dataKey } from "../object/object_key.ts";
import type { ObjectStore } from "../object/object_store.ts";
import { type CompositeLink, decodeComposite } from "../storage/format/composite.ts";
import { decodeFooter } from "../storage/format/footer.ts";
import type { IndexBlock, IndexEntry } from "../storage/format/index_block.ts";
import type { StreamRange } from "../storage/ports.ts";
import type { StreamRecord } from "../storage/stream_record.ts";
import { damageOf, walkBlocks } from "./blocks.ts";
import { type ByteSource, SequentialReader, storeSource } from "./byte_source.ts";
import { type DataTail, readDataTail } from "./data_tail.ts";
import { damage, type DamageKind, firstOfKind, type Report } from "./finding.ts";
import { IndexCheck } from "./index_check.ts";
import { COMPOSITE_BYTES_MAX } from "./inspect_composite.ts";
import { payloadProblem } from "./payload.ts";

export interface ObjectCheckOptions {
  readonly store: ObjectStore;
  readonly clusterId: string;
  readonly state: State;
  /** Sizes of the objects that are there. */
  readonly sizes: ReadonlyMap<ObjectId, number>;
  readonly metaStreams: ReadonlySet<StreamId>;
  /** How far offsets of batches are above those of their stream: the same all through a stream. */
  readonly shifts: Map<StreamId, number>;
  readonly report: Report;
}

/** Streams that metadata names as a partition's meta stream. */
export function metaStreamsOf(state: State): Set<StreamId> {
  const found = new Set<StreamId>();
  for (const { metaStream } of state.partitions.values()) {
    if (metaStream !== null) found.add(metaStream);
  }
  return found;
}

/** Checks the payload of a record whose stream still exists; what a deleted one carried nobody knows. */
export function recordProblem(
  { state, metaStreams, shifts }: Pick<ObjectCheckOptions, "state" | "metaStreams" | "shifts">,
  record: StreamRecord,
): string | null {
  const { streamId, baseOffset } = record;
  if (!state.streams.has(streamId)) return null;
  const problem = payloadProblem(record, metaStreams.has(streamId), shifts);
  return problem === null ? null : `stream ${streamId} at ${baseOffset}: ${problem}`;
}

/** The ranges that it holds for readers; null when they cannot be known. */
export async function checkObject(
  options: ObjectCheckOptions,
  row: ObjectRow,
): Promise<readonly StreamRange[] | null> {
  return await new ObjectCheck(options, row).run();
}

/** What only the row can still tell; which streams a stream set object had, the gaps in their ranges show. */
function contentOf({ stream, nodeId }: ObjectRow): string {
  if (stream === null) return `: a stream set object of node ${nodeId}`;
  return `: stream ${stream.streamId} from ${stream.start} to ${stream.end}`;
}

class ObjectCheck {
  readonly #options: ObjectCheckOptions;
  readonly #row: ObjectRow;
  readonly #key: string;
  readonly #report: Report;

  constructor(options: ObjectCheckOptions, row: ObjectRow) {
    this.#options = options;
    this.#row = row;
    this.#key = dataKey(options.clusterId, row.objectId);
    this.#report = firstOfKind(options.report);
  }

  async #wrong(kind: DamageKind, detail: string): Promise<void> {
    await this.#report(damage(kind, this.#key, detail));
  }

  async run(): Promise<readonly StreamRange[] | null> {
    const { objectId, kind } = this.#row;
    const size = this.#options.sizes.get(objectId);
    if (size === undefined) {
      await this.#wrong(
        "missing",
        `object ${objectId}, ${this.#row.size} bytes, is not in the store${contentOf(this.#row)}`,
      );
      return null;
    }
    const source = storeSource(this.#options.store, { key: this.#key, size });
    if (kind === "composite") return await this.#composite(source);
    if (size !== this.#row.size) {
      await this.#wrong(
        "size",
        `object ${objectId} has ${size} bytes, its row says ${this.#row.size}`,
      );
      return null;
    }
    return await this.#data(source);
  }

  // --- stream set objects and stream objects ----------------------------------------------------

  async #data(source: ByteSource): Promise<readonly StreamRange[] | null> {
    const tail = await readDataTail(source);
    if (!tail.ok) await this.#wrong("index", tail.damage);
    else if (crc32c(tail.bytes) !== this.#row.indexCrc) {
      await this.#wrong("index", "the index does not match the checksum of its row");
    }
    await this.#bytes(source, tail);
    return tail.ok && await this.#rangesHold(tail.index) ? tail.index.ranges() : null;
  }

  async #bytes(source: ByteSource, tail: DataTail): Promise<void> {
    const dataEnd = tail.footer?.indexPosition ?? 0;
    const reader = new SequentialReader(source);
    const check = tail.ok ? new IndexCheck(tail.index, dataEnd) : null;
    let sound = true;
    for await (const block of walkBlocks(reader, dataEnd)) {
      const problem = block.damage ?? check?.block(block) ?? null;
      if (problem !== null && sound) await this.#wrong("block", problem);
      sound &&= problem === null;
      for (const record of block.records) {
        const wrong = recordProblem(this.#options, record);
        if (wrong !== null) await this.#wrong("batch", wrong);
      }
    }
    const atEnd = sound ? check?.end() ?? null : null;
    if (atEnd !== null) await this.#wrong("block", atEnd);
    await reader.skipTo(source.size);
    if (reader.crc === this.#row.bytesCrc) return;
    await this.#wrong(
      "checksum",
      `CRC-32C of its bytes is ${reader.crc}, its row says ${this.#row.bytesCrc}`,
    );
  }

  async #rangesHold(index: IndexBlock): Promise<boolean> {
    const ranges = index.ranges();
    const { stream, rangesDigest: digest } = this.#row;
    if (stream === null) {
      if (rangesDigest(ranges) === digest) return true;
      await this.#wrong("index", "its ranges do not match the digest of its row");
      return false;
    }
    const [only] = ranges;
    const same = ranges.length === 1 && only?.streamId === stream.streamId &&
      only.start === stream.start && only.end === stream.end;
    if (!same) {
      await this.#wrong(
        "index",
        `its ranges are not [${stream.start}, ${stream.end}) of stream ${stream.streamId}`,
      );
    }
    return same;
  }

  // --- composites -------------------------------------------------------------------------------

  async #composite(source: ByteSource): Promise<readonly StreamRange[] | null> {
    if (source.size > COMPOSITE_BYTES_MAX) {
      await this.#wrong("size", `a composite object of ${source.size} bytes`);
      return null;
    }
    const bytes = await source.read(0, source.size);
    let links: readonly CompositeLink[];
    try {
      links = decodeComposite(bytes);
    } catch (error) {
      await this.#wrong("index", damageOf(error));
      return null;
    }
    await this.#compositeChecksums(bytes, links);
    const ids = links.map(({ objectId }) => objectId);
    if (ids.join() !== this.#row.links.join()) {
      await this.#wrong(
        "index",
        `it links to ${ids.join(", ")}, its row to ${this.#row.links.join(", ")}`,
      );
      return null;
    }
    for (const link of links) await this.#link(link);
    const { stream } = this.#row;
    const held = links.flatMap(({ entries }) => entries);
    if (
      stream === null || !covers(held, [stream]) ||
      held.some((entry) => entry.streamId !== stream.streamId)
    ) {
      await this.#wrong("index", "its entries do not cover its range");
      return null;
    }
    return [stream];
  }

  /** The row's size is that of the object, or of the data that it holds together. */
  async #compositeChecksums(
    bytes: Uint8Array,
    links: readonly CompositeLink[],
  ): Promise<void> {
    const { size, bytesCrc, indexCrc } = this.#row;
    const blocks = links.flatMap(({ entries }) => entries).reduce((sum, one) => sum + one.size, 0);
    const objects = links.reduce(
      (sum, { objectId }) => sum + (this.#options.state.objects.get(objectId)?.size ?? 0),
      0,
    );
    if (![bytes.length, blocks, objects].includes(size)) {
      await this.#wrong(
        "size",
        `a composite of ${bytes.length} bytes over ${blocks}, its row says ${size}`,
      );
    }
    const { indexPosition, indexLength } = decodeFooter("composite", bytes, bytes.length);
    if (crc32c(bytes.subarray(indexPosition, indexPosition + indexLength)) !== indexCrc) {
      await this.#wrong("index", "the index does not match the checksum of its row");
    }
    const crc = crc32c(bytes);
    if (crc !== bytesCrc) {
      await this.#wrong("checksum", `CRC-32C of its bytes is ${crc}, its row says ${bytesCrc}`);
    }
  }

  /** Every entry must stand in the linked object's own index, word for word. */
  async #link({ objectId, entries }: CompositeLink): Promise<void> {
    const size = this.#options.sizes.get(objectId);
    // Its own check says what is wrong with it.
    if (size === undefined) return;
    const key = dataKey(this.#options.clusterId, objectId);
    const tail = await readDataTail(storeSource(this.#options.store, { key, size }));
    if (!tail.ok) return;
    const own = new Set<string>();
    for (let i = 0; i < tail.index.count; i++) own.add(entryText(tail.index.entry(i)));
    const foreign = entries.find((entry) => !own.has(entryText(entry)));
    if (foreign === undefined) return;
    await this.#wrong(
      "index",
      `object ${objectId} has no block of [${foreign.start}, ${foreign.end}) as it says`,
    );
  }
}

function entryText({ streamId, start, end, recordCount, position, size }: IndexEntry): string {
  return [streamId, start, end, recordCount, position, size].join();
}
