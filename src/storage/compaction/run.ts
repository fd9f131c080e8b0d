/** One rewrite of stream set objects, from reading to commit. */
import type { Env } from "../../env/env.ts";
import type { ObjectId, Offset, StreamId } from "../../lib/brand.ts";
import { COMPACTION_BLOCKS_MAX, COMPACTION_READS_MAX } from "../../lib/limits.ts";
import type { ObjectStore } from "../../object/object_store.ts";
import type {
  CompactionCommit,
  CompactionManager,
  ObjectManager,
  StreamManager,
  StreamRange,
  StreamSetRef,
} from "../ports.ts";
import type { IdPool } from "../upload/id_pool.ts";
import type { Learned } from "../written_index.ts";
import { type Analysis, analyze, analyzeSplit, analyzeTidy } from "./analysis.ts";
import { blocksOf, liveBlocks } from "./blocks.ts";
import type { CompactionBudget } from "./budget.ts";
import { commit, type CommitOutcome, orForget, type Written } from "./commit.ts";
import type { CompactionOptions } from "./options.ts";
import { rewrite, type Rewritten } from "./rewrite.ts";
import type { SourceReader } from "./source_reader.ts";
import { type Output, outputsOf } from "./steps.ts";
import { bytesWanted, isWorthWaiting, type SizedSource } from "./patience.ts";

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
  /** What was committed: readers need not ask what is in it. */
  readonly onCommitted: (written: Learned) => void;
}

/** Join several, split one by streams, write one without its dead blocks, drop dead ones. */
export type SetJobKind = "join" | "split" | "tidy" | "drop";

export type RunOutcome =
  | CommitOutcome
  /** There was nothing to gain: the same inputs need not be tried again. */
  | { readonly kind: "nothing"; readonly detail: string };

export type WithoutEffect = Exclude<RunOutcome, { readonly kind: "done" }>;

/** A join with too little of each stream: it would be written twice. */
export interface Wait {
  readonly kind: "wait";
}

type Replaced = CompactionCommit["replaces"][number];
const NO_OBJECTS: Rewritten = { streamSetObject: null, streamObjects: [], indexes: [] };

export function startOf({ streams }: RunParts): (stream: StreamId) => Offset | null {
  return (stream) => streams.viewStream(stream)?.start ?? null;
}

interface Source extends SizedSource {
  readonly ranges: readonly StreamRange[];
}

/** Newest first, until the memory for index entries is used up; two objects in any case. */
async function readSources(parts: RunParts, objects: readonly StreamSetRef[]): Promise<Source[]> {
  const newestFirst = objects.toReversed();
  const sources: Source[] = [];
  let entries = 0;
  for (let at = 0; at < newestFirst.length; at += COMPACTION_READS_MAX) {
    const some = newestFirst.slice(at, at + COMPACTION_READS_MAX);
    for (const [i, index] of (await parts.reader.indexes(some)).entries()) {
      entries += index.count;
      if (entries > COMPACTION_BLOCKS_MAX && sources.length >= 2) return sources;
      const { objectId, size } = some[i]!;
      const blocks = liveBlocks(blocksOf(objectId, index), startOf(parts));
      sources.push({ objectId, size, blocks, ranges: index.ranges() });
    }
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
      return analyzeSplit(sources, options.streamObjectsMax);
    case "tidy":
      return analyzeTidy(sources[0]!);
    case "drop":
      return { kind: "nothing" };
  }
}

export interface Joined {
  readonly outcome: RunOutcome | Wait;
  /** Bytes of a join of these streams that is written once; 0 when none is. */
  readonly wanted: number;
}

/** Joins stream set objects, unless it is better to wait until their streams have enough to leave them. */
export async function runJoin(
  parts: RunParts,
  objects: readonly StreamSetRef[],
): Promise<Joined> {
  const sources = await readSources(parts, objects);
  const wanted = bytesWanted(sources, parts.options);
  // What was planned is what was looked at; otherwise the same plan would come back at once.
  const mayWait = sources.length === objects.length &&
    objects.length < parts.options.waitObjectsMax;
  const outcome: RunOutcome | Wait = mayWait && isWorthWaiting(sources, wanted)
    ? { kind: "wait" }
    : await runSources(parts, "join", sources);
  return { outcome, wanted };
}

/** Stream set objects into one, and into stream objects where a stream has enough; dead ones are dropped. */
export async function runSets(
  parts: RunParts,
  kind: SetJobKind,
  objects: readonly StreamSetRef[],
): Promise<RunOutcome> {
  return await runSources(parts, kind, await readSources(parts, objects));
}

async function runSources(
  parts: RunParts,
  kind: SetJobKind,
  sources: readonly Source[],
): Promise<RunOutcome> {
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
  const ids = outputs.length === 0 ? [] : await parts.ids.take(outputs.length);
  const written = await orForget(
    parts,
    ids,
    () => writeOutputs(parts, outputs, ids, replaces),
  );
  return await commit(parts, written);
}

/** `ids` are those of the outputs; none is needed when everything is dead. */
export async function writeOutputs(
  parts: RunParts,
  outputs: readonly Output[],
  ids: readonly ObjectId[],
  sources: readonly Replaced[],
): Promise<Written> {
  const replaces = sources.map(({ objectId, ranges }) => ({ objectId, ranges }));
  const { indexes, ...objects } = outputs.length === 0
    ? NO_OBJECTS
    : await rewrite({ ...parts, ...parts.options }, outputs, ids);
  return { change: { ...objects, composites: [], replaces }, indexes };
}
