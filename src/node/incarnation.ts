/**
 * One incarnation of a node, bottom up: registered, its predecessors recovered, then WAL, storage
 * engine and streams. It ends with the process; a newer one fences it.
 */
import type { Env } from "../env/env.ts";
import { type NodeEpoch, nodeEpoch, type NodeId } from "../lib/brand.ts";
import { FaultError } from "../lib/errors.ts";
import { SLOTS_MAX_DIR } from "../lib/limits.ts";
import type { Uuid } from "../lib/uuid.ts";
import type { Requester } from "../controller/command.ts";
import { createManagers, type Managers } from "../controller/managers.ts";
import type { MetadataStore } from "../controller/metadata_store.ts";
import type { ObjectStore } from "../object/object_store.ts";
import { createStorage } from "../storage/engine.ts";
import { recoverNode } from "../storage/recover.ts";
import type { WalPolicy } from "../storage/wal/batching.ts";
import { createObjectWal } from "../storage/wal/object_wal.ts";
import { createStreamClient } from "../stream/stream_client.ts";
import type { StreamClient } from "../stream/stream.ts";

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
  readonly storeKind: "memory" | "dir" | "s3";
  readonly onHealth: (problem: string | null) => void;
  /** The incarnation can never work again. */
  readonly onFatal: (fault: FaultError) => void;
}

export interface Incarnation {
  readonly requester: Requester;
  readonly streams: StreamClient;
  /** Why writes do not come through at the moment. */
  problem(): string | null;
  /** Uploads and commits all that is acknowledged. Logs must be closed before. */
  close(): Promise<void>;
}

async function register(options: IncarnationOptions): Promise<NodeEpoch> {
  const { metadata, nodeId, incarnation, host, port } = options;
  const decided = await metadata.submit({ type: "register-node", nodeId, incarnation, host, port });
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

function toFault(error: unknown): FaultError {
  if (error instanceof FaultError) return error;
  return new FaultError("data-loss", `Cannot go on: ${String(error)}`, {
    retriable: false,
    cause: error,
  });
}

/** A newer registration of the same node id ends this one at once, not only at its next write. */
function watchRegistration(options: IncarnationOptions, epoch: NodeEpoch): () => void {
  const { metadata, nodeId, onFatal } = options;
  return metadata.onChange(({ nodes }) => {
    if (!nodes) return;
    const current = metadata.view().nodes.get(nodeId)?.epoch;
    if (current === epoch) return;
    const message =
      `Fenced: node ${nodeId} is registered again by another process (epoch ${current})`;
    onFatal(new FaultError("fenced", message, { retriable: false }));
  });
}

export async function startIncarnation(options: IncarnationOptions): Promise<Incarnation> {
  const { env, store, metadata, clusterId, nodeId, onHealth, onFatal } = options;
  const epoch = await register(options);
  const requester = { nodeId, epoch };
  const unwatch = watchRegistration(options, epoch);
  const slots = options.storeKind === "s3" ? {} : { slotsMax: SLOTS_MAX_DIR };
  const isCurrent = async () => (await metadata.fresh()).nodes.get(nodeId)?.epoch === epoch;
  const wal = createObjectWal({
    env,
    store,
    clusterId,
    nodeId,
    epoch,
    policy: options.walPolicy,
    checkEpoch: isCurrent,
    ...slots,
  });
  wal.onFenced((reason) =>
    onFatal(new FaultError("fenced", `Fenced: ${reason}`, { retriable: false }))
  );
  const managers = createManagers(metadata, () => requester);
  await recover(options, managers);
  await assignLeaders(metadata, requester);
  const { streams, objects } = managers;
  const storage = createStorage({
    env,
    store,
    wal,
    objects,
    streams,
    clusterId,
    nodeId,
    options: slots,
    onHealth,
    onFatal: (error) => onFatal(toFault(error)),
  });
  return {
    requester,
    streams: createStreamClient({ env, storage, streams }),
    problem: () => wal.state().problem,
    close() {
      unwatch();
      return storage.close();
    },
  };
}
