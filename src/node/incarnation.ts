/**
 * One incarnation of a node, bottom up: registered, its predecessors recovered, then WAL, storage
 * engine and streams. A newer one, or a recovery by another node, fences it for good.
 */
import { sleep } from "../env/clock.ts";
import type { Env } from "../env/env.ts";
import { type NodeEpoch, nodeEpoch, type NodeId } from "../lib/brand.ts";
import { FaultError, isFault, messageOf } from "../lib/errors.ts";
import { RECOVERIES_OVERTAKEN_MAX, SLOTS_MAX_DIR } from "../lib/limits.ts";
import type { Uuid } from "../lib/uuid.ts";
import type { Requester } from "../controller/command.ts";
import { metadataEndOf } from "../controller/metadata_end.ts";
import { createManagers, type Managers } from "../controller/managers.ts";
import type { MetadataStore } from "../controller/metadata_store.ts";
import { backoffMs } from "../object/backoff.ts";
import { CLUSTER_KEY } from "../object/object_key.ts";
import type { ObjectStore } from "../object/object_store.ts";
import type { Purpose } from "../object/request_class.ts";
import { type Compactor, createCompactor } from "../storage/compaction/compactor.ts";
import type { CompactionOptions } from "../storage/compaction/options.ts";
import { createStorage } from "../storage/engine.ts";
import type { EngineOptions } from "../storage/engine_options.ts";
import { recoverNode } from "../storage/recover.ts";
import { expectMetadataEnd } from "../storage/recover_tail.ts";
import type { NotUploaded, Storage } from "../storage/storage.ts";
import type { Learned } from "../storage/written_index.ts";
import type { WalPolicy } from "../storage/wal/batching.ts";
import { createObjectWal } from "../storage/wal/object_wal.ts";
import type { Wal } from "../storage/wal/wal.ts";
import { createStreamClient } from "../stream/stream_client.ts";
import type { StreamClient } from "../stream/stream.ts";
import type { NodeStores } from "./node_store.ts";
import { answerRollCalls } from "./roll_call.ts";
import { showRecovery } from "./show_recovery.ts";
import { type StoreWaitOptions, whileStoreFails } from "./store_wait.ts";
import { startSuccession } from "./succession.ts";

export interface IncarnationOptions {
  readonly env: Env;
  readonly store: ObjectStore;
  /** Views of the same by who asks; absent: all ask as one. */
  readonly stores?: NodeStores;
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

/** Before anything is written: what is given out anew must never have been given out. */
async function expectWholeMetadata(options: IncarnationOptions): Promise<void> {
  const { store, metadata, clusterId, nodeId } = options;
  await expectMetadataEnd({
    store,
    clusterId,
    nodeId,
    view: () => metadataEndOf(metadata.view(), nodeId),
    fresh: async () => metadataEndOf(await metadata.fresh(), nodeId),
  });
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

function storeFor({ store, stores }: IncarnationOptions, purpose: Purpose): ObjectStore {
  return stores?.[purpose] ?? store;
}

async function recover(
  options: IncarnationOptions,
  { objects, recovery }: Pick<Managers, "objects" | "recovery">,
): Promise<void> {
  const { env, clusterId, nodeId } = options;
  const store = storeFor(options, "recovery");
  const startedMs = env.clock.monotonicMs();
  env.metrics.gauge("skerry_recovery_pending_wals", recovery.pendingRecoveries().length);
  const idBlock = options.engineOptions?.idBlock;
  const recovered = await recoverNode({
    env,
    store,
    clusterId,
    nodeId,
    objects,
    recovery,
    ...(idBlock === undefined ? {} : { idBlock }),
  });
  env.metrics.gauge("skerry_recovery_pending_wals", 0);
  if (recovered.wals === 0) return;
  const tookMs = Math.round(env.clock.monotonicMs() - startedMs);
  showRecovery(env.metrics, recovered, tookMs);
  env.log.log("info", "recovered", { wals: recovered.wals, objects: recovered.objects, tookMs });
}

/**
 * Another node that took us for dead may be at the same WALs, and the later one of two recoverers wins. As long as
 * our registration stands, being overtaken is no end: what the other one has not finished is begun anew.
 */
async function recoverOwn(
  options: IncarnationOptions,
  managers: Pick<Managers, "objects" | "recovery">,
  epoch: NodeEpoch,
): Promise<void> {
  const { env, metadata, nodeId } = options;
  for (let attempt = 1;; attempt++) {
    try {
      return await recover(options, managers);
    } catch (error) {
      if (!isFault(error, "fenced") || attempt >= RECOVERIES_OVERTAKEN_MAX) throw error;
      const row = (await metadata.fresh()).nodes.get(nodeId);
      if (row?.epoch !== epoch || row.state !== "live") throw error;
      env.log.log("warn", "recovery-overtaken", { attempt, reason: error.message });
    }
    await sleep(env.clock, backoffMs(attempt, env.random));
  }
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

/** What time it is for the store; read before the registration, which is thereby no older than it. */
async function storeTime({ store }: IncarnationOptions): Promise<number | null> {
  return (await store.get(CLUSTER_KEY))?.storeNowMs ?? null;
}

function createWal(options: IncarnationOptions, epoch: NodeEpoch, storeMs: number | null): Wal {
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
      const row = (await metadata.fresh(true)).nodes.get(nodeId);
      return row?.epoch === epoch && row.state === "live";
    },
    storeMs,
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

function openStorage(
  options: IncarnationOptions,
  { objects, streams }: Managers,
  wal: Wal,
  onUploaded: (written: Learned) => void,
): Storage {
  const { env, store, clusterId, nodeId, engineOptions, onHealth, onFatal } = options;
  return createStorage({
    env,
    store,
    openStore: storeFor(options, "open"),
    wal,
    objects,
    streams,
    clusterId,
    nodeId,
    options: { ...engineOptions, ...slotsOf(options) },
    onHealth,
    onFatal: (error) => onFatal(asFault(error)),
    onUploaded,
  });
}

function startCompactor(
  options: IncarnationOptions,
  { objects, streams, compaction: manager }: Managers,
  storage: Storage,
): Compactor | null {
  const { env, clusterId, nodeId, compaction } = options;
  if (compaction === undefined) return null;
  const store = storeFor(options, "compaction");
  const parts = { env, store, clusterId, nodeId, objects, streams };
  const compactor = createCompactor({
    ...parts,
    compaction: manager,
    options: compaction,
    onCommitted: (written) => storage.learn(written),
    uploadLoad: () => storage.uploadLoad(),
  });
  compactor.start();
  return compactor;
}

export async function startIncarnation(options: IncarnationOptions): Promise<Incarnation> {
  const { env, metadata, clusterId, nodeId, storeWait } = options;
  if (!options.again) await whileStoreFails(storeWait, () => expectWholeMetadata(options));
  const storeMs = await whileStoreFails(storeWait, () => storeTime(options));
  const epoch = await whileStoreFails(storeWait, () => register(options));
  const requester = { nodeId, epoch };
  const stopWatching = watchRegistration(options, epoch);
  const stopAnswering = answerRollCalls({ env, metadata, requester });
  const unwatch = () => {
    stopWatching();
    stopAnswering();
  };
  const wal = createWal(options, epoch, storeMs);
  const managers = createManagers(metadata, () => requester);
  try {
    await whileStoreFails(storeWait, () => recoverOwn(options, managers, epoch));
    await whileStoreFails(storeWait, () => assignLeaders(metadata, requester));
  } catch (error) {
    unwatch();
    await wal.close();
    throw error;
  }
  let compactor: Compactor | null = null;
  const storage = openStorage(options, managers, wal, (written) => compactor?.learn(written));
  const streams = createStreamClient({ env, storage, streams: managers.streams });
  compactor = startCompactor(options, managers, storage);
  const succession = startSuccession({
    env,
    store: storeFor(options, "recovery"),
    metadata,
    clusterId,
    requester,
    managers,
  });
  return {
    requester,
    streams,
    problem: () => wal.state().problem,
    abandon: (fault) => storage.abandon(fault),
    async close() {
      unwatch();
      succession.close();
      await compactor?.close();
      // Streams that could not be closed are closed by the next recovery.
      await streams.close().catch((error: unknown) => {
        env.log.log("warn", "streams-close-failed", { error: messageOf(error) });
      });
      await storage.close();
    },
  };
}
