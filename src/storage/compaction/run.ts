/**
 * One rewrite from reading to commit. What was written and not committed is deleted when that is certain;
 * after a crash its ids are swept with their epoch, so nothing has to be remembered on the way.
 */
import type { Env } from "../../env/env.ts";
import type { ObjectId, Offset, StreamId } from "../../lib/brand.ts";
import { messageOf } from "../../lib/errors.ts";
import { COMPACTION_BLOCKS_MAX } from "../../lib/limits.ts";
import { dataKey } from "../../object/object_key.ts";
import type { ObjectStore } from "../../object/object_store.ts";
import { refused } from "../engine_refusal.ts";
import type {
  CompactionCommit,
  CompactionManager,
  ObjectManager,
  StreamManager,
  StreamRange,
  StreamSetRef,
} from "../ports.ts";
import type { IdPool } from "../upload/id_pool.ts";
import { throwIfStopped } from "../upload/retry.ts";
import {
  type Analysis,
  analyze,
  analyzeSplit,
  analyzeTidy,
  type SourceObject,
} from "./analysis.ts";
import { blocksOf, liveBlocks, sorted } from "./blocks.ts";
import type { CompactionBudget } from "./budget.ts";
import { compositeOf, readLinks } from "./links.ts";
import type { CompactionOptions } from "./options.ts";
import { rewrite, type Rewritten } from "./rewrite.ts";
import type { SourceReader } from "./source_reader.ts";
import { type Output, outputsOf } from "./steps.ts";
import type { StreamJob } from "./stream_plan.ts";

export interface RunParts {
  readonly env: Env;
  readonly store: ObjectStore;
  readonly clusterId: string;
  readonly objects: Pick<ObjectManager, "refresh" | "viewObjects">;
  readonly streams: Pick<StreamManager, "viewStream">;
  readonly compaction: Pick<CompactionManager, "commitCompaction" | "isCommitted">;
  readonly ids: IdPool;
  readonly reader: SourceReader;
  readonly budget: CompactionBudget;
  readonly options: CompactionOptions;
  readonly signal: AbortSignal;
  /** A composite has nothing to forget before the stream starts here. */
  readonly onNothingDead: (composite: ObjectId, until: Offset) => void;
}

/** Join several, split one by streams, write one without its dead blocks, drop dead ones. */
export type SetJobKind = "join" | "split" | "tidy" | "drop";

export type RunOutcome =
  | {
    readonly kind: "done";
    readonly inputs: number;
    readonly outputs: number;
    readonly bytes: number;
  }
  /** There was nothing to gain: the same inputs need not be tried again. */
  | { readonly kind: "nothing"; readonly detail: string }
  /** Metadata has moved on: plan anew. */
  | { readonly kind: "conflict"; readonly detail: string };

type Replaced = CompactionCommit["replaces"][number];
const NO_OBJECTS: Rewritten = { streamSetObject: null, streamObjects: [] };

function startOf({ streams }: RunParts): (stream: StreamId) => Offset | null {
  return (stream) => streams.viewStream(stream)?.start ?? null;
}

interface Source extends SourceObject {
  readonly ranges: readonly StreamRange[];
}

/** Newest first, until the memory for index entries is used up; two objects in any case. */
async function readSources(parts: RunParts, objects: readonly StreamSetRef[]): Promise<Source[]> {
  const sources: Source[] = [];
  let entries = 0;
  for (const object of objects.toReversed()) {
    const index = await parts.reader.index(object);
    entries += index.count;
    if (entries > COMPACTION_BLOCKS_MAX && sources.length >= 2) break;
    const { objectId } = object;
    const blocks = liveBlocks(blocksOf(objectId, index), startOf(parts));
    sources.push({ objectId, blocks, ranges: index.ranges() });
  }
  return sources;
}

function analysisOf(
  kind: SetJobKind,
  sources: readonly Source[],
  options: CompactionOptions,
): Analysis {
  switch (kind) {
    case "join":
      return analyze(sources, options);
    case "split":
      return analyzeSplit(sources[0]!, options.streamObjectsMax);
    case "tidy":
      return analyzeTidy(sources[0]!);
    case "drop":
      return { kind: "nothing" };
  }
}

/** Stream set objects into one, and into stream objects where a stream has enough; dead ones are dropped. */
export async function runSets(
  parts: RunParts,
  kind: SetJobKind,
  objects: readonly StreamSetRef[],
): Promise<RunOutcome> {
  const sources = await readSources(parts, objects);
  const analysis = analysisOf(kind, sources, parts.options);
  if (analysis.kind === "overlap") {
    return { kind: "nothing", detail: `objects overlap in stream ${analysis.stream}` };
  }
  const used = analysis.kind === "groups" ? analysis.used : new Set<ObjectId>();
  const replaces = sources.filter(({ objectId, blocks }) =>
    blocks.length === 0 || used.has(objectId)
  );
  if (replaces.length === 0) return { kind: "nothing", detail: "limits leave nothing to join" };
  const outputs = analysis.kind === "groups" ? outputsOf(analysis.groups) : [];
  return await runOutputs(parts, outputs, replaces);
}

export async function runStream(
  parts: RunParts,
  streamId: StreamId,
  job: StreamJob,
): Promise<RunOutcome> {
  const replaces = job.objects.map(({ objectId, start, end }) => ({
    objectId,
    ranges: [{ streamId, start, end }],
  }));
  return job.kind === "merge"
    ? await runMerge(parts, job, replaces)
    : await runLinks(parts, streamId, job, replaces);
}

async function runMerge(
  parts: RunParts,
  { objects }: StreamJob,
  replaces: readonly Replaced[],
): Promise<RunOutcome> {
  const indexes = await parts.reader.indexes(objects);
  const all = indexes.flatMap((index, i) => blocksOf(objects[i]!.objectId, index));
  const blocks = sorted(liveBlocks(all, startOf(parts)));
  if (blocks.length === 0) return { kind: "conflict", detail: "all of it was trimmed" };
  return await runOutputs(parts, [{ kind: "stream", blocks }], replaces);
}

async function runOutputs(
  parts: RunParts,
  outputs: readonly Output[],
  sources: readonly Replaced[],
): Promise<RunOutcome> {
  const replaces = sources.map(({ objectId, ranges }) => ({ objectId, ranges }));
  const ids = outputs.length === 0 ? [] : await parts.ids.take(outputs.length);
  const written = outputs.length === 0
    ? NO_OBJECTS
    : await orForget(parts, ids, () =>
      rewrite({ ...parts, memoryBytes: parts.options.memoryBytes }, outputs, ids));
  return await commit(parts, { ...written, composites: [], replaces });
}

async function runLinks(
  parts: RunParts,
  streamId: StreamId,
  { kind, objects }: StreamJob,
  replaces: readonly Replaced[],
): Promise<RunOutcome> {
  const start = parts.streams.viewStream(streamId)?.start ?? null;
  if (start === null) return { kind: "conflict", detail: "the stream was deleted" };
  const { live, firstEnd, dead } = await readLinks(parts.reader, objects, start);
  if (firstEnd === null) return { kind: "conflict", detail: "all of it was trimmed" };
  if (kind === "cleanup" && dead === 0) {
    parts.onNothingDead(objects[0]!.objectId, firstEnd);
    return { kind: "nothing", detail: "no link is dead yet" };
  }
  const [id] = await parts.ids.take(1);
  const { bytes, object, links } = compositeOf(id!, live);
  const key = dataKey(parts.clusterId, object.objectId);
  await orForget(
    parts,
    [object.objectId],
    () =>
      parts.budget.write(parts.signal, () => parts.store.put(key, bytes, { signal: parts.signal })),
  );
  return await commit(parts, {
    streamSetObject: null,
    streamObjects: [object],
    composites: [{ objectId: object.objectId, links }],
    replaces,
  });
}

async function commit(parts: RunParts, change: CompactionCommit): Promise<RunOutcome> {
  const { compaction, objects } = parts;
  const { streamSetObject, streamObjects, replaces } = change;
  const all = streamSetObject === null ? streamObjects : [streamSetObject, ...streamObjects];
  const ids = all.map(({ objectId }) => objectId);
  const done: RunOutcome = {
    kind: "done",
    inputs: replaces.length,
    outputs: ids.length,
    bytes: all.reduce((sum, { size }) => sum + size, 0),
  };
  throwIfStopped(parts.signal);
  let answer;
  try {
    answer = await compaction.commitCompaction(change);
  } catch (error) {
    // The entry may be in the log, or still get there: the objects must not be touched.
    throwIfStopped(parts.signal);
    await objects.refresh();
    if (ids.length > 0 && ids.every((id) => compaction.isCommitted(id))) return done;
    throw error;
  }
  if (answer.ok) return done;
  if (answer.reason === "fenced") throw refused("Commit of a compaction", answer);
  await forget(parts, ids);
  await objects.refresh();
  return { kind: "conflict", detail: answer.reason === "conflict" ? answer.detail : answer.reason };
}

/** Runs work that writes objects; when it fails they are nobody's. */
async function orForget<T>(
  parts: RunParts,
  ids: readonly ObjectId[],
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!parts.signal.aborted) await forget(parts, ids);
    throw error;
  }
}

/** Ids that were never committed, and never will be: no commit names them any more. */
async function forget(parts: RunParts, ids: readonly ObjectId[]): Promise<void> {
  if (ids.length === 0) return;
  const { store, clusterId, env } = parts;
  try {
    await store.delete(ids.map((id) => dataKey(clusterId, id)));
  } catch (error) {
    // The sweep of this epoch finds them again.
    env.log.log("debug", "compaction-forget-failed", { error: messageOf(error) });
  }
}
