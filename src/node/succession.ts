/**
 * Takes over from nodes that are gone for good: after its own start a node calls the others, recovers the WALs
 * of those that are silent, and leads their partitions. Runs beside the broker; what goes wrong with another
 * node's data does not stop this one. Two successors collide in the log, where the later one wins.
 */
import { sleep } from "../env/clock.ts";
import type { Env } from "../env/env.ts";
import type { NodeEpoch, NodeId } from "../lib/brand.ts";
import { isFault, messageOf } from "../lib/errors.ts";
import { SUCCESSION_BYTES_MAX, SUCCESSION_PAUSE_MS } from "../lib/limits.ts";
import type { Requester } from "../controller/command.ts";
import type { Managers } from "../controller/managers.ts";
import type { MetadataStore } from "../controller/metadata_store.ts";
import type { ObjectStore } from "../object/object_store.ts";
import { recoverNode } from "../storage/recover.ts";
import { type Incarnate, silentNodes } from "./roll_call.ts";
import { showRecovery } from "./show_recovery.ts";

export interface SuccessionOptions {
  readonly env: Env;
  readonly store: ObjectStore;
  readonly metadata: MetadataStore;
  readonly clusterId: string;
  readonly requester: Requester;
  readonly managers: Pick<Managers, "objects" | "recovery">;
}

export interface Succession {
  /** A step that is under way is not waited for: its commits are refused once the node is registered anew. */
  close(): void;
}

export function startSuccession(options: SuccessionOptions): Succession {
  const abort = new AbortController();
  const { env } = options;
  run(options, abort.signal).catch((error: unknown) => {
    if (abort.signal.aborted) return;
    env.log.log("error", "succession-failed", { error: messageOf(error) });
  });
  return { close: () => abort.abort() };
}

function isPassing(error: unknown): boolean {
  return isFault(error) && error.retriable;
}

/** A store that is away is waited for, as long as the node lives. */
async function run(options: SuccessionOptions, signal: AbortSignal): Promise<void> {
  const { env } = options;
  while (!signal.aborted) {
    try {
      await takeOver(options, signal);
      return;
    } catch (error) {
      if (!isPassing(error)) throw error;
      env.log.log("warn", "succession-repeated", { error: messageOf(error) });
    }
    await sleep(env.clock, SUCCESSION_PAUSE_MS, signal);
  }
}

async function takeOver(options: SuccessionOptions, signal: AbortSignal): Promise<void> {
  const { metadata, env, requester: by } = options;
  const half = halfRecovered(options);
  const silent = await silentNodes({ ...options, requester: by }, signal);
  for (const { nodeId, epoch } of silent) {
    env.log.log("warn", "node-silent", { node: nodeId, epoch });
  }
  let isEmpty = true;
  for (const gone of [...half, ...silent]) {
    if (signal.aborted) return;
    isEmpty = false;
    await recoverGone(options, gone);
  }
  if (isEmpty) return;
  const assigned = await metadata.submit({ type: "assign-leaders", by });
  if (!assigned.ok) env.log.log("warn", "succession-refused", { detail: assigned.detail });
}

/** Nodes that are gone and not recovered: whoever was at it died. */
function halfRecovered({ metadata, requester }: SuccessionOptions): Incarnate[] {
  const image = metadata.view();
  const found = new Map<NodeId, NodeEpoch>();
  for (const { nodeId, state } of image.wals.values()) {
    const row = image.nodes.get(nodeId);
    if (nodeId === requester.nodeId || state.kind === "sealed" || row?.state !== "gone") continue;
    found.set(nodeId, row.epoch);
  }
  return [...found].map(([nodeId, epoch]) => ({ nodeId, epoch }));
}

/** All incarnations up to the one that is silent; a later one recovers them itself. */
async function recoverGone(options: SuccessionOptions, gone: Incarnate): Promise<void> {
  const { env, store, clusterId, requester, managers, metadata } = options;
  const startedMs = env.clock.monotonicMs();
  const wals = [...metadata.view().wals.values()]
    .filter(({ nodeId, epoch, state }) =>
      nodeId === gone.nodeId && epoch <= gone.epoch && state.kind !== "sealed"
    )
    .map(({ nodeId, epoch }) => ({ nodeId, epoch }))
    .toSorted((a, b) => a.epoch - b.epoch);
  const node = gone.nodeId;
  try {
    const recovered = await recoverNode({
      env,
      store,
      clusterId,
      nodeId: requester.nodeId,
      ...managers,
      wals,
      bytesMax: SUCCESSION_BYTES_MAX,
    });
    const tookMs = Math.round(env.clock.monotonicMs() - startedMs);
    showRecovery(env.metrics, recovered, tookMs);
    const { objects } = recovered;
    env.log.log("info", "node-succeeded", { node, wals: wals.length, objects, tookMs });
  } catch (error) {
    if (isPassing(error)) throw error;
    const wasTaken = isFault(error, "fenced");
    env.log.log(wasTaken ? "info" : "error", "node-not-succeeded", {
      node,
      error: messageOf(error),
    });
    env.metrics.count("skerry_successions_failed_total");
  }
}
