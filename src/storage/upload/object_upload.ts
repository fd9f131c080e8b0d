/** Writes the objects of an upload plan and describes them for the commit. */
import type { ObjectId } from "../../lib/brand.ts";
import { crc32c } from "../../lib/crc32c.ts";
import { PUT_PART_BYTES, SINGLE_PUT_BYTES_MAX } from "../../lib/limits.ts";
import { dataKey } from "../../object/object_key.ts";
import type { ObjectStore } from "../../object/object_store.ts";
import type { StreamRun } from "../cache/log_cache_block.ts";
import { NORMAL_OBJECT } from "../format/attributes.ts";
import { type ObjectLayout, ObjectWriter } from "../format/object_writer.ts";
import type { NewStreamObject, NewStreamSetObject, ObjectChecksums } from "../ports.ts";
import type { UploadPlan } from "./plan.ts";
import type { UploadMemory } from "./upload_memory.ts";

export interface UploadTarget {
  readonly store: ObjectStore;
  readonly clusterId: string;
  readonly memory: UploadMemory;
}

export interface UploadedObjects {
  readonly streamSetObject: NewStreamSetObject | null;
  readonly streamObjects: readonly NewStreamObject[];
}

export function layOut(runs: readonly StreamRun[]): ObjectLayout {
  const writer = new ObjectWriter();
  for (const run of runs) for (const record of run.records) writer.add(record);
  return writer.finish();
}

/** Plain put: an id is never used twice, so a repeat writes the same bytes. */
export async function writeObject(
  { store, clusterId, memory }: UploadTarget,
  id: ObjectId,
  layout: ObjectLayout,
): Promise<ObjectChecksums> {
  const key = dataKey(clusterId, id);
  const indexCrc = crc32c(layout.index);
  if (layout.size <= SINGLE_PUT_BYTES_MAX) {
    const bytes = memory.take(layout.size);
    layout.encode(bytes);
    const bytesCrc = crc32c(bytes);
    await store.put(key, bytes);
    memory.give(bytes);
    return { bytesCrc, indexCrc };
  }
  let bytesCrc = 0;
  async function* checked(): AsyncGenerator<Uint8Array> {
    bytesCrc = 0;
    for (const part of layout.parts(PUT_PART_BYTES)) {
      bytesCrc = crc32c(part, bytesCrc);
      yield part;
    }
  }
  await store.putParts(key, checked());
  return { bytesCrc, indexCrc };
}

/** The first id goes to the stream set object, as in AutoMQ. One object at a time: bounded memory. */
export async function uploadPlan(
  target: UploadTarget,
  plan: UploadPlan,
  ids: readonly ObjectId[],
): Promise<UploadedObjects> {
  const own = ids.slice(plan.streamSet.length > 0 ? 1 : 0);
  const streamSetObject = plan.streamSet.length === 0
    ? null
    : await uploadStreamSet(target, plan.streamSet, ids[0]!);
  const streamObjects: NewStreamObject[] = [];
  for (const [i, run] of plan.streamObjects.entries()) {
    streamObjects.push(await uploadStream(target, run, own[i]!));
  }
  return { streamSetObject, streamObjects };
}

async function uploadStreamSet(
  target: UploadTarget,
  runs: readonly StreamRun[],
  id: ObjectId,
): Promise<NewStreamSetObject> {
  const layout = layOut(runs);
  const checksums = await writeObject(target, id, layout);
  return { objectId: id, size: layout.size, ranges: layout.ranges, ...checksums };
}

async function uploadStream(
  target: UploadTarget,
  run: StreamRun,
  id: ObjectId,
): Promise<NewStreamObject> {
  const layout = layOut([run]);
  const { streamId, start, end } = run;
  const checksums = await writeObject(target, id, layout);
  return {
    objectId: id,
    size: layout.size,
    range: { streamId, start, end },
    attributes: NORMAL_OBJECT,
    ...checksums,
  };
}
