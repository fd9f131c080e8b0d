/** Whoever takes over from a node: another instance of its node id, or another node that recovers it. */
import { openMetadata } from "../../src/controller/controller.ts";
import { createManagers } from "../../src/controller/managers.ts";
import type { MetadataStore } from "../../src/controller/metadata_store.ts";
import type { Clock } from "../../src/env/clock.ts";
import { randomUuid, seededRandom } from "../../src/env/random.ts";
import { type NodeEpoch, nodeEpoch, type NodeId, nodeId } from "../../src/lib/brand.ts";
import type { FaultError } from "../../src/lib/errors.ts";
import { uuidOf } from "../../src/lib/uuid.ts";
import type { Requester } from "../../src/controller/command.ts";
import type { ObjectStore } from "../../src/object/object_store.ts";
import type { RecoveryManager } from "../../src/storage/ports.ts";
import { type RecoveredNode, recoverNode } from "../../src/storage/recover.ts";
import { testEnv } from "../support/test_env.ts";
import { FaultWorld } from "./world.ts";

export const VICTIM: NodeId = nodeId(1);

/** Another process with the same node id on the same bucket. */
export function successorOf(world: FaultWorld, seed = 100): FaultWorld {
  return new FaultWorld({ clock: world.clock, bucket: world.bucket, seed });
}

/** Why the node can never work again; null while it can. */
export function failureOf(world: FaultWorld): () => FaultError | null {
  let fault: FaultError | null = null;
  void world.q.node.node.failed.then((failed) => void (fault = failed));
  return () => fault;
}

export interface Recoverer {
  readonly metadata: MetadataStore;
  readonly requester: Requester;
  readonly recovery: RecoveryManager;
  /** The victim's epoch as the log has it. */
  victimEpoch(): Promise<NodeEpoch>;
  /** Seals the WAL of an epoch (the victim's newest), uploads what it held and closes its streams. */
  recover(epoch?: NodeEpoch): Promise<RecoveredNode>;
  close(): Promise<void>;
}

export interface RecovererOptions {
  readonly id?: number;
  /** The bucket as this node sees it. */
  readonly store?: ObjectStore;
  readonly clock?: Clock;
  /** Another one for each process of a node id. */
  readonly seed?: number;
}

/** A second node of the cluster that believes that the first one is dead. */
export async function recovererOf(
  world: FaultWorld,
  { id = 2, store = world.bucket, clock = world.clock, seed = 770 + id }: RecovererOptions = {},
): Promise<Recoverer> {
  const env = testEnv({ clock, random: seededRandom(seed) });
  const { clusterId } = world.q.node.node;
  const own = nodeId(id);
  const incarnation = uuidOf(randomUuid(env.random));
  const metadata = await openMetadata({
    store,
    env,
    clusterId,
    nodeId: own,
    incarnation,
    pollMs: null,
  });
  const registered = await metadata.submit({
    type: "register-node",
    nodeId: own,
    incarnation,
    host: `node${id}`,
    port: 9092,
  });
  if (!registered.ok) throw new Error(`cannot register: ${registered.reason}`);
  const requester = { nodeId: own, epoch: nodeEpoch(registered.epoch) };
  const { objects, recovery } = createManagers(metadata, () => requester);
  const victimEpoch = async () => (await metadata.fresh()).nodes.get(VICTIM)!.epoch;
  return {
    metadata,
    requester,
    recovery,
    victimEpoch,
    async recover(epoch) {
      const wals = [{ nodeId: VICTIM, epoch: epoch ?? await victimEpoch() }];
      return await recoverNode({ env, store, clusterId, nodeId: own, objects, recovery, wals });
    },
    close: () => metadata.close(),
  };
}
