/**
 * Commits what a rewrite has written. What was written and not committed is deleted when that is certain;
 * after a crash its ids are swept with their epoch, so nothing has to be remembered on the way.
 */
import { messageOf } from "../../lib/errors.ts";
import type { ObjectId } from "../../lib/brand.ts";
import { dataKey } from "../../object/object_key.ts";
import { refused } from "../engine_refusal.ts";
import type { CompactionCommit } from "../ports.ts";
import { throwIfStopped } from "../upload/retry.ts";
import type { WrittenIndex } from "../written_index.ts";
import type { RunParts } from "./run.ts";

export type CommitOutcome =
  | {
    readonly kind: "done";
    readonly inputs: number;
    readonly outputs: number;
    readonly bytes: number;
  }
  /** Metadata has moved on: plan anew. */
  | { readonly kind: "conflict"; readonly detail: string };

/** Its objects are in the store. */
export interface Written {
  readonly change: CompactionCommit;
  readonly indexes: readonly WrittenIndex[];
}

function objectsOf({ streamSetObject, streamObjects }: CompactionCommit) {
  return streamSetObject === null ? streamObjects : [streamSetObject, ...streamObjects];
}

function idsOf(change: CompactionCommit): ObjectId[] {
  return objectsOf(change).map(({ objectId }) => objectId);
}

export async function commit(
  parts: RunParts,
  { change, indexes }: Written,
): Promise<CommitOutcome> {
  const outcome = await tryCommit(parts, change);
  if (outcome.kind === "done") {
    parts.onCommitted({ streamSetObject: change.streamSetObject, indexes });
  }
  return outcome;
}

async function tryCommit(parts: RunParts, change: CompactionCommit): Promise<CommitOutcome> {
  const { compaction, objects } = parts;
  const ids = idsOf(change);
  const done: CommitOutcome = {
    kind: "done",
    inputs: change.replaces.length,
    outputs: ids.length,
    bytes: objectsOf(change).reduce((sum, { size }) => sum + size, 0),
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
export async function orForget<T>(
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
