/**
 * Rewrites of single streams: several at once while they fit into memory, and all of a batch in one
 * metadata entry, so that many small objects are not a request and a wait each.
 */
import type { ObjectId, StreamId } from "../../lib/brand.ts";
import { COMPACTION_RUNS_AT_ONCE } from "../../lib/limits.ts";
import { Semaphore } from "../../lib/semaphore.ts";
import { dataKey } from "../../object/object_key.ts";
import { CompositeIndex } from "../format/composite.ts";
import type { CompactionCommit } from "../ports.ts";
import { throwIfStopped } from "../upload/retry.ts";
import { blocksOf, liveBlocks, sorted } from "./blocks.ts";
import { commit, type CommitOutcome, orForget, type Written } from "./commit.ts";
import { compositeOf, readLinks } from "./links.ts";
import {
  type RunOutcome,
  type RunParts,
  startOf,
  type WithoutEffect,
  writeOutputs,
} from "./run.ts";
import { bytesOf, type StreamWork } from "./stream_batch.ts";
import type { StreamJob } from "./stream_plan.ts";

/** What became of one work of a batch: null when its inputs could not be read. */
export type Prepared = { readonly kind: "written"; readonly written: Written } | WithoutEffect;

export interface BatchOutcome {
  /** In the order of the works. */
  readonly prepared: readonly (Prepared | null)[];
  /** Null when nothing was written. */
  readonly committed: CommitOutcome | null;
}

/** Takes care of what is wrong with the inputs of one work: null then. Other trouble goes on. */
type Attempt = (work: StreamWork, run: () => Promise<Prepared>) => Promise<Prepared | null>;

/** Bytes that it holds in memory: links are made of indexes. */
function memoryOf(work: StreamWork, memoryBytes: number): number {
  const share = Math.ceil(memoryBytes / COMPACTION_RUNS_AT_ONCE);
  return work.job.kind === "merge" ? Math.min(bytesOf(work.job), memoryBytes) : share;
}

export async function runStream(
  parts: RunParts,
  streamId: StreamId,
  job: StreamJob,
): Promise<RunOutcome> {
  const { prepared: [one], committed } = await runStreams(
    parts,
    [{ streamId, job }],
    (_, run) => run(),
  );
  return one?.kind === "written" ? committed! : one!;
}

/** The works are of different streams. */
export async function runStreams(
  parts: RunParts,
  works: readonly StreamWork[],
  attempt: Attempt,
): Promise<BatchOutcome> {
  const ids = await parts.ids.take(works.length);
  const prepared = await orForget(parts, ids, () => prepareAll(parts, works, ids, attempt));
  const written = prepared.flatMap((one) => one?.kind === "written" ? [one.written] : []);
  const committed = written.length === 0 ? null : await commit(parts, together(written));
  return { prepared, committed };
}

function together(written: readonly Written[]): Written {
  const changes = written.map(({ change }) => change);
  return {
    change: {
      streamSetObject: null,
      streamObjects: changes.flatMap(({ streamObjects }) => streamObjects),
      composites: changes.flatMap(({ composites }) => composites),
      replaces: changes.flatMap(({ replaces }) => replaces),
    },
    indexes: written.flatMap(({ indexes }) => indexes),
  };
}

/** Nothing of it runs any more when it settles. */
async function prepareAll(
  parts: RunParts,
  works: readonly StreamWork[],
  ids: readonly ObjectId[],
  attempt: Attempt,
): Promise<(Prepared | null)[]> {
  const { memoryBytes } = parts.options;
  const memory = new Semaphore(memoryBytes);
  const prepared: (Prepared | null)[] = works.map(() => null);
  let next = 0;
  let hasFailed = false;
  const takeTurns = async () => {
    for (let i = next++; i < works.length && !hasFailed; i = next++) {
      const work = works[i]!;
      const bytes = memoryOf(work, memoryBytes);
      await memory.acquire(bytes);
      try {
        throwIfStopped(parts.signal);
        prepared[i] = await attempt(work, () => prepare(parts, work, ids[i]!));
      } catch (error) {
        hasFailed = true;
        throw error;
      } finally {
        memory.release(bytes);
      }
    }
  };
  const ended = await Promise.allSettled(
    Array.from({ length: COMPACTION_RUNS_AT_ONCE }, takeTurns),
  );
  const failure = ended.find(({ status }) => status === "rejected");
  if (failure?.status === "rejected") throw failure.reason;
  return prepared;
}

function prepare(parts: RunParts, work: StreamWork, id: ObjectId): Promise<Prepared> {
  const run = work.job.kind === "merge" ? merge : link;
  return orForget(parts, [id], () => run(parts, work, id));
}

function replacesOf({ streamId, job }: StreamWork): CompactionCommit["replaces"] {
  return job.objects.map(({ objectId, start, end }) => ({
    objectId,
    ranges: [{ streamId, start, end }],
  }));
}

async function merge(parts: RunParts, work: StreamWork, id: ObjectId): Promise<Prepared> {
  const { objects } = work.job;
  const indexes = await parts.reader.indexes(objects);
  const all = indexes.flatMap((index, i) => blocksOf(objects[i]!.objectId, index));
  const blocks = sorted(liveBlocks(all, startOf(parts)));
  if (blocks.length === 0) return { kind: "conflict", detail: "all of it was trimmed" };
  const outputs = [{ kind: "stream", blocks } as const];
  const written = await writeOutputs(parts, outputs, [id], replacesOf(work));
  return { kind: "written", written };
}

async function link(parts: RunParts, work: StreamWork, id: ObjectId): Promise<Prepared> {
  const { streamId, job: { kind, objects } } = work;
  const start = startOf(parts)(streamId);
  if (start === null) return { kind: "conflict", detail: "the stream was deleted" };
  const { live, firstEnd, dead } = await readLinks(parts.reader, objects, start);
  if (firstEnd === null) return { kind: "conflict", detail: "all of it was trimmed" };
  if (kind === "cleanup" && dead === 0) {
    parts.onNothingDead(objects[0]!.objectId, firstEnd);
    return { kind: "nothing", detail: "no link is dead yet" };
  }
  const { bytes, object, links } = compositeOf(id, live);
  const { signal, store, budget, clusterId } = parts;
  await budget.write(signal, () => store.put(dataKey(clusterId, id), bytes, { signal }));
  const change: CompactionCommit = {
    streamSetObject: null,
    streamObjects: [object],
    composites: [{ objectId: id, links }],
    replaces: replacesOf(work),
  };
  const index = new CompositeIndex(bytes);
  return { kind: "written", written: { change, indexes: [{ objectId: id, index }] } };
}
