/** What outlives all incarnations of a node: its store, its cluster, the metadata replica. */
import type { BrokerConfig } from "../broker/broker_config.ts";
import { openCluster } from "../controller/cluster.ts";
import { openMetadata } from "../controller/controller.ts";
import { FEATURE_LEVEL } from "../controller/entry.ts";
import type { MetadataStore } from "../controller/metadata_store.ts";
import type { Env } from "../env/env.ts";
import { randomUuid } from "../env/random.ts";
import { nodeId as brandNodeId } from "../lib/brand.ts";
import type { FaultError } from "../lib/errors.ts";
import { STORE_START_WAIT_MS } from "../lib/limits.ts";
import { uuidOf } from "../lib/uuid.ts";
import type { ObjectStore } from "../object/object_store.ts";
import { probeStore } from "../object/probe.ts";
import { ClusterWatch } from "./cluster_watch.ts";
import { checkLevel, levelOf } from "./feature_level.ts";
import type { Health } from "./health.ts";
import { type NodeStores, nodeStores } from "./node_store.ts";
import type { Opened } from "./opened.ts";
import type { NodeSettings } from "./settings.ts";
import { retentionOf } from "./storage_settings.ts";
import { type StoreWaitOptions, untilStoreAnswers, whileStoreFails } from "./store_wait.ts";

export interface BaseOptions {
  readonly env: Env;
  /** The raw store; the node wraps it and closes it. */
  readonly store: ObjectStore;
  readonly storeKind: "memory" | "dir" | "s3";
  /** How people call the store, for messages; its kind when absent. */
  readonly storeName?: string;
  readonly settings: NodeSettings;
  /** Highest feature level that this build knows; tests are builds before and after it. */
  readonly featureLevelMax?: number;
}

export function storeWait(options: BaseOptions): StoreWaitOptions & { readonly limitMs: number } {
  const { env, storeKind, storeName = storeKind } = options;
  return { env, storeName, limitMs: STORE_START_WAIT_MS };
}

export interface Base {
  readonly env: Env;
  readonly store: ObjectStore;
  readonly stores: NodeStores;
  readonly clusterId: string;
  readonly metadata: MetadataStore;
  readonly incarnationId: string;
  /** The feature level that the operator asks for; null keeps that of the cluster. */
  readonly level: number | null;
}

export async function openBase(
  options: BaseOptions,
  config: BrokerConfig,
  opened: Opened,
  health: Health,
  onLost: (fault: FaultError) => void,
): Promise<Base> {
  const { env, settings } = options;
  const { clock, random, log } = env;
  const stores = nodeStores(options.store, env);
  const store = stores.serve;
  const wait = storeWait(options);
  const known = options.featureLevelMax ?? FEATURE_LEVEL;
  const level = levelOf(config, known);
  const wanted = {
    ...(settings.clusterId === null ? {} : { clusterId: settings.clusterId }),
    mayCreate: settings.createCluster ?? true,
    known,
    featureLevel: level ?? known,
  };
  const { clusterId, featureLevel: first } = await untilStoreAnswers(wait, async (signal) => {
    if (options.storeKind !== "memory") await probeStore(store, { clock, random, log });
    // Nobody waits for it any more: no cluster is made behind the back of whoever was told so.
    signal.throwIfAborted();
    return await openCluster(store, { ...wanted, clock, random, log });
  });
  let opening: MetadataStore | null = null;
  const lastEntry = async () => {
    const image = await opening?.fresh();
    return image === undefined || image.at === 0 ? null : image.at;
  };
  const watch = new ClusterWatch({ env, store, clusterId, lastEntry, onLost });
  opened.add(() => watch.close());
  const incarnationId = uuidOf(randomUuid(random));
  const metadata = await whileStoreFails(wait, () =>
    openMetadata({
      store,
      env,
      clusterId,
      nodeId: brandNodeId(settings.nodeId),
      incarnation: incarnationId,
      featureLevels: { first, known },
      onPoll: (problem) => {
        const isBack = problem === null && health.has("metadata");
        health.set("metadata", problem);
        if (isBack) void watch.look();
      },
      ...retentionOf(config).metadata,
    }));
  opening = metadata;
  opened.add(() => metadata.close());
  checkLevel(level, metadata);
  env.metrics.onRender((gauge) =>
    gauge("skerry_metadata_feature_level", metadata.view().featureLevel)
  );
  return { env, store, stores, clusterId, metadata, incarnationId, level };
}
