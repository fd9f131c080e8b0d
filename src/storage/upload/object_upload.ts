/** Writes the objects of an upload plan and describes them for the commit. */
import { type Clock, sleep } from "../../env/clock.ts";
import type { ObjectId } from "../../lib/brand.ts";
import { crc32c } from "../../lib/crc32c.ts";
import { ENCODE_STEP_BYTES, LAYOUT_STEP_RECORDS } from "../../lib/limits.ts";
import { dataKey } from "../../object/object_key.ts";
import type { ObjectStore } from "../../object/object_store.ts";
import type { StreamRun } from "../cache/stream_run.ts";
import { NORMAL_OBJECT } from "../format/attributes.ts";
import type { IndexBlock } from "../format/index_block.ts";
import { type ObjectLayout, ObjectWriter } from "../format/object_writer.ts";
import type { WrittenIndex } from "../written_index.ts";
import type {
  NewStreamObject,
  NewStreamSetObject,
  ObjectChecksums,
  StreamRange,
} from "../ports.ts";
import { DEFAULT_PUT_SIZES, type PutSizes } from "../put_sizes.ts";
import type { UploadPlan } from "./plan.ts";
import type { UploadMemory } from "./upload_memory.ts";

export interface UploadTarget {
  readonly clock: Clock;
  readonly store: ObjectStore;
  readonly clusterId: string;
  readonly memory: UploadMemory;
  readonly puts?: PutSizes;
  /** Resolves when the next bytes may be sent; absent for no limit. */
  readonly pace?: (bytes: number) => Promise<void>;
  /** True while producers are about to be refused: then the upload does not step aside for them. */
  readonly isUrgent?: () => boolean;
}

/** Others have their turn: requests do not wait for uploads. */
type Turn = () => Promise<void>;

function turnOf({ clock, isUrgent }: Pick<UploadTarget, "clock" | "isUrgent">): Turn {
  return async () => {
    if (isUrgent?.() !== true) await sleep(clock, 0);
  };
}

export interface UploadedObjects {
  readonly streamSetObject: NewStreamSetObject | null;
  readonly streamObjects: readonly NewStreamObject[];
}

export interface UploadedPlan extends UploadedObjects {
  readonly indexes: readonly WrittenIndex[];
}

/** In steps: an object of tiny records has a million. */
export async function layOut(
  target: Pick<UploadTarget, "clock" | "isUrgent">,
  runs: readonly StreamRun[],
): Promise<ObjectLayout> {
  const turn = turnOf(target);
  const writer = new ObjectWriter();
  let records = 0;
  for (const run of runs) {
    for (let from = 0; from < run.length; from += LAYOUT_STEP_RECORDS) {
      const to = Math.min(run.length, from + LAYOUT_STEP_RECORDS);
      writer.addList(run.streamId, run, from, to);
      records += to - from;
      if (records < LAYOUT_STEP_RECORDS) continue;
      await turn();
      records = 0;
    }
  }
  return writer.finish();
}

/** Returns the CRC-32C of the object. */
async function encode(turn: Turn, layout: ObjectLayout, bytes: Uint8Array): Promise<number> {
  let crc = 0;
  for (const step of layout.encodeInto(bytes, ENCODE_STEP_BYTES)) {
    crc = crc32c(step, crc);
    if (step.length >= ENCODE_STEP_BYTES) await turn();
  }
  return crc;
}

/** Plain put: an id is never used twice, so a repeat writes the same bytes. */
export async function writeObject(
  target: UploadTarget,
  id: ObjectId,
  layout: ObjectLayout,
): Promise<ObjectChecksums> {
  const { store, clusterId, memory, puts = DEFAULT_PUT_SIZES, pace } = target;
  const key = dataKey(clusterId, id);
  const indexCrc = crc32c(layout.index);
  if (layout.size <= puts.singleBytesMax) {
    const bytes = memory.take(layout.size);
    const bytesCrc = await encode(turnOf(target), layout, bytes);
    await pace?.(bytes.length);
    await store.put(key, bytes);
    memory.give(bytes);
    return { bytesCrc, indexCrc };
  }
  let bytesCrc = 0;
  async function* checked(): AsyncGenerator<Uint8Array> {
    bytesCrc = 0;
    for (const part of layout.parts(puts.partBytes)) {
      bytesCrc = crc32c(part, bytesCrc);
      await pace?.(part.length);
      yield part;
    }
  }
  await store.putParts(key, checked());
  return { bytesCrc, indexCrc };
}

/** Objects of one plan that are stored; an attempt goes on where the one before it failed. */
export type WrittenObjects = Map<ObjectId, WrittenObject>;

interface WrittenObject extends ObjectChecksums {
  readonly index: IndexBlock;
  readonly size: number;
  readonly ranges: readonly StreamRange[];
}

/** The first id goes to the stream set object, as in AutoMQ. One object at a time: bounded memory. */
export async function uploadPlan(
  target: UploadTarget,
  plan: UploadPlan,
  ids: readonly ObjectId[],
  written: WrittenObjects = new Map(),
): Promise<UploadedPlan> {
  const [first, ...rest] = ids;
  const own = plan.streamSet.length > 0 ? rest : ids;
  const indexes: WrittenIndex[] = [];
  let streamSetObject: NewStreamSetObject | null = null;
  if (plan.streamSet.length > 0) {
    const { index, ...object } = await writeRuns(target, first!, plan.streamSet, written);
    indexes.push({ objectId: first!, index });
    streamSetObject = { objectId: first!, ...object };
  }
  const streamObjects: NewStreamObject[] = [];
  for (const [i, run] of plan.streamObjects.entries()) {
    const objectId = own[i]!;
    const { ranges: _, index, ...object } = await writeRuns(target, objectId, [run], written);
    indexes.push({ objectId, index });
    const { streamId, start, end } = run;
    const range = { streamId, start, end };
    streamObjects.push({ objectId, ...object, range, attributes: NORMAL_OBJECT });
  }
  return { streamSetObject, streamObjects, indexes };
}

async function writeRuns(
  target: UploadTarget,
  id: ObjectId,
  runs: readonly StreamRun[],
  written: WrittenObjects,
): Promise<WrittenObject> {
  const before = written.get(id);
  if (before !== undefined) return before;
  const layout = await layOut(target, runs);
  const { size, ranges } = layout;
  const index = layout.indexBlock;
  const object = { size, ranges, index, ...await writeObject(target, id, layout) };
  written.set(id, object);
  return object;
}
