/**
 * One incarnation of a node, bottom up: registered, its predecessors recovered, then WAL, storage
 * engine and streams. A newer one, or a recovery by another node, fences it for good.
 */
import type { Env } from "../env/env.ts";
import { type NodeEpoch, nodeEpoch, type NodeId } from "../lib/brand.ts";
import { FaultError, messageOf } from "../lib/errors.ts";
import { SLOTS_MAX_DIR } from "../lib/limits.ts";
import type { Uuid } from "../lib/uuid.ts";
import type { Requester } from "../controller/command.ts";
import { createManagers, type Managers } from "../controller/managers.ts";
import type { MetadataStore } from "../controller/metadata_store.ts";
import type { ObjectStore } from "../object/object_store.ts";
import { type Compactor, createCompactor } from "../storage/compaction/compactor.ts";
import type { CompactionOptions } from "../storage/compaction/options.ts";
import { createStorage } from "../storage/engine.ts";
import type { EngineOptions } from "../storage/engine_options.ts";
import { recoverNode } from "../storage/recover.ts";
import type { NotUploaded } from "../storage/storage.ts";
import type { WalPolicy } from "../storage/wal/batching.ts";
import { createObjectWal } from "../storage/wal/object_wal.ts";
import type { Wal } from "../storage/wal/wal.ts";
import { createStreamClient } from "../stream/stream_client.ts";
import type { StreamClient } from "../stream/stream.ts";
import { type StoreWaitOptions, whileStoreFails } from "./store_wait.ts";

export interface IncarnationOptions {
  readonly env: Env;
  readonly store: ObjectStore;
  readonly metadata: MetadataStore;
  readonly clusterId: string;
  readonly nodeId: NodeId;
  readonly incarnation: Uuid;
  readonly host: string;
  readonly port: number;
  readonly walPolicy: WalPolicy;
  readonly engineOptions?: Partial<EngineOptions>;
  readonly storeKind: "memory" | "dir" | "s3";
  /** This process was registered before, and goes on only if nobody took its place. */
  readonly again: boolean;
  /** How long a store that fails holds up the recovery. */
  readonly storeWait: StoreWaitOptions;
  /** Absent: objects stay as they were uploaded. */
  readonly compaction?: CompactionOptions;
  readonly onHealth: (problem: string | null) => void;
  /** The incarnation can never work again. */
  readonly onFatal: (fault: FaultError) => void;
}

export interface Incarnation {
  readonly requester: Requester;
  readonly streams: StreamClient;
  /** Why writes do not come through at the moment. */
  problem(): string | null;
  /** Uploads and commits all that is acknowledged, closes what streams are left. Logs must be closed before. */
  close(): Promise<void>;
  /** Ends all waiting for the store; `close` still has to be called. */
  abandon(fault: FaultError): NotUploaded;
}

async function register(options: IncarnationOptions): Promise<NodeEpoch> {
  const { metadata, nodeId, incarnation, host, port, again } = options;
  const type = "register-node";
  const decided = await metadata.submit({ type, nodeId, incarnation, host, port, again });
  if (!decided.ok) {
    throw new FaultError("fenced", `Cannot register: ${decided.detail}`, { retriable: false });
  }
  return nodeEpoch(decided.epoch);
}

async function recover(
  options: IncarnationOptions,
  { objects, recovery }: Pick<Managers, "objects" | "recovery">,
): Promise<void> {
  const { env, store, clusterId, nodeId } = options;
  const startedMs = env.clock.monotonicMs();
  const recovered = await recoverNode({ env, store, clusterId, nodeId, objects, recovery });
  if (recovered.wals === 0) return;
  const tookMs = Math.round(env.clock.monotonicMs() - startedMs);
  env.log.log("info", "recovered", { wals: recovered.wals, objects: recovered.objects, tookMs });
}

async function assignLeaders(metadata: MetadataStore, by: Requester): Promise<void> {
  const assigned = await metadata.submit({ type: "assign-leaders", by });
  if (!assigned.ok) {
    throw new FaultError("fenced", `Cannot lead: ${assigned.detail}`, { retriable: false });
  }
}

/** What is no fault is a bug: it ends the incarnation, and says nothing about the stored data. */
export function asFault(error: unknown): FaultError {
  if (error instanceof FaultError) return error;
  return new FaultError("closed", `Cannot go on: ${messageOf(error)}`, {
    retriable: false,
    cause: error,
  });
}

/** A newer registration or a recovery ends this incarnation at once, not only at its next write. */
function watchRegistration(options: IncarnationOptions, epoch: NodeEpoch): () => void {
  const { metadata, nodeId, onFatal } = options;
  return metadata.onChange(({ nodes }) => {
    if (!nodes) return;
    const row = metadata.view().nodes.get(nodeId);
    if (row?.epoch === epoch && row.state === "live") return;
    const message = row?.epoch === epoch
      ? `Fenced: node ${nodeId} epoch ${epoch} is recovered by another node`
      : `Fenced: node ${nodeId} is registered again by another process (epoch ${row?.epoch})`;
    onFatal(new FaultError("fenced", message, { retriable: false }));
  });
}

function createWal(options: IncarnationOptions, epoch: NodeEpoch): Wal {
  const { env, store, metadata, clusterId, nodeId, walPolicy, storeKind, onFatal } = options;
  const wal = createObjectWal({
    env,
    store,
    clusterId,
    nodeId,
    epoch,
    policy: walPolicy,
    // A directory on the same disk is as slow for the second write as for the first.
    hedge: storeKind === "s3" && walPolicy.kind === "unmetered",
    checkEpoch: async () => {
      const row = (await metadata.fresh()).nodes.get(nodeId);
      return row?.epoch === epoch && row.state === "live";
    },
    ...slotsOf(options),
  });
  wal.onFenced((reason) =>
    onFatal(new FaultError("fenced", `Fenced: ${reason}`, { retriable: false }))
  );
  return wal;
}

function slotsOf({ storeKind }: IncarnationOptions): { readonly slotsMax?: number } {
  return storeKind === "s3" ? {} : { slotsMax: SLOTS_MAX_DIR };
}

function startCompactor(
  { env, store, clusterId, nodeId, compaction }: IncarnationOptions,
  { objects, streams, compaction: manager }: Managers,
): Compactor | null {
  if (compaction === undefined) return null;
  const parts = { env, store, clusterId, nodeId, objects, streams };
  const compactor = createCompactor({ ...parts, compaction: manager, options: compaction });
  compactor.start();
  return compactor;
}

export async function startIncarnation(options: IncarnationOptions): Promise<Incarnation> {
  const { env, store, metadata, clusterId, nodeId, storeWait, onHealth, onFatal } = options;
  const epoch = await whileStoreFails(storeWait, () => register(options));
  const requester = { nodeId, epoch };
  const unwatch = watchRegistration(options, epoch);
  const wal = createWal(options, epoch);
  const managers = createManagers(metadata, () => requester);
  try {
    await whileStoreFails(storeWait, () => recover(options, managers));
    await whileStoreFails(storeWait, () => assignLeaders(metadata, requester));
  } catch (error) {
    unwatch();
    await wal.close();
    throw error;
  }
  const storage = createStorage({
    env,
    store,
    wal,
    objects: managers.objects,
    streams: managers.streams,
    clusterId,
    nodeId,
    options: { ...options.engineOptions, ...slotsOf(options) },
    onHealth,
    onFatal: (error) => onFatal(asFault(error)),
  });
  const streams = createStreamClient({ env, storage, streams: managers.streams });
  const compactor = startCompactor(options, managers);
  return {
    requester,
    streams,
    problem: () => wal.state().problem,
    abandon: (fault) => storage.abandon(fault),
    async close() {
      unwatch();
      await compactor?.close();
      // Streams that could not be closed are closed by the next recovery.
      await streams.close().catch((error: unknown) => {
        env.log.log("warn", "streams-close-failed", { error: messageOf(error) });
      });
      await storage.close();
    },
  };
}
