/**
 * One process of the storage level: the metadata store, one incarnation after the other as the node runs them
 * (`startIncarnation`: registration, own recovery, WAL, engine, streams, compactor), a collector, a reader of other
 * nodes' streams, and recoveries of other nodes, which a failure detector asks for.
 */
import {
  type Auditor,
  type AuditorOptions,
  createAuditor,
} from "../../../src/controller/auditor.ts";
import { type Collector, createCollector } from "../../../src/controller/collector.ts";
import { openMetadata } from "../../../src/controller/controller.ts";
import { createManagers, type Managers } from "../../../src/controller/managers.ts";
import type { MetadataStore } from "../../../src/controller/metadata_store.ts";
import { settlesWithin } from "../../../src/env/clock.ts";
import { randomUuid } from "../../../src/env/random.ts";
import type { NodeEpoch, NodeId, StreamId } from "../../../src/lib/brand.ts";
import { FaultError, isFault, messageOf } from "../../../src/lib/errors.ts";
import { CLOSE_GRACE_MS } from "../../../src/lib/limits.ts";
import { uuidOf } from "../../../src/lib/uuid.ts";
import { type Incarnation, startIncarnation } from "../../../src/node/incarnation.ts";
import { whileStoreFails } from "../../../src/node/store_wait.ts";
import type { ObjectStore } from "../../../src/object/object_store.ts";
import { BlockCache } from "../../../src/storage/block_cache/block_cache.ts";
import { recoverNode } from "../../../src/storage/recover.ts";
import type { Stream } from "../../../src/stream/stream.ts";
import type { ReportChecker } from "../checker/reports.ts";
import { SimProcess } from "../process.ts";
import type { SimStore } from "../sim_store.ts";
import type { World } from "../world.ts";
import { agedLine } from "./audit.ts";
import type { Sabotage } from "./sabotage.ts";
import type { Settings } from "./settings.ts";

import { CLUSTER_ID } from "./cluster_id.ts";

export interface NodeParts {
  readonly world: World;
  readonly store: SimStore;
  readonly settings: Settings;
  readonly sabotage: Sabotage;
  readonly reports: ReportChecker;
  /** What nodes of this moment look over the store with; null: they do not. */
  readonly audit: () => { readonly intervalMs: number; readonly isAged: boolean } | null;
}

/** Listings and deletes in a second: an audit among blows must come to its end between two of them. */
const AUDIT_REQUESTS = 20;

/** What lives and dies with an incarnation. */
export interface Serving {
  readonly incarnation: Incarnation;
  readonly managers: Managers;
  readonly collector: Collector;
  readonly auditor: Auditor | null;
  readonly reader: BlockCache;
  readonly held: Map<StreamId, Stream>;
  /** Appends are numbered, and acknowledged in that order. */
  appended: number;
  confirmed: number;
}

export class StorageNode {
  readonly nodeId: NodeId;
  readonly process: SimProcess;
  readonly #parts: NodeParts;
  readonly #line: ObjectStore;
  #metadata: MetadataStore | null = null;
  #serving: Serving | null = null;
  #stopping = false;
  /** Told why the process ended by itself. */
  onExit: (error: unknown) => void = () => {};

  constructor(parts: NodeParts, nodeId: NodeId, name: string) {
    const { world, store, sabotage } = parts;
    this.#parts = parts;
    this.nodeId = nodeId;
    this.process = new SimProcess(world, name);
    const line = store.connect(this.process);
    this.#line = sabotage.store?.(line, { ...parts, process: this.process }) ?? line;
    this.process.onDeath(() => void (this.#serving = null));
  }

  /** Null while it starts, ends, or is dead. A stopped process still believes that it serves. */
  get serving(): Serving | null {
    return this.#serving;
  }

  get metadata(): MetadataStore | null {
    return this.#metadata;
  }

  start(): void {
    this.#live().catch((error: unknown) => {
      if (!this.process.alive) return;
      this.process.kill(messageOf(error));
      this.onExit(error);
    });
  }

  async #live(): Promise<void> {
    const { env } = this.process;
    const { settings, sabotage } = this.#parts;
    const { pollMs, snapshotEntries } = settings;
    const incarnation = uuidOf(randomUuid(env.random));
    const storeWait = { env, storeName: "sim:", limitMs: null };
    const shared = { store: this.#line, env, clusterId: CLUSTER_ID, nodeId: this.nodeId };
    const opened = await whileStoreFails(
      storeWait,
      () => openMetadata({ ...shared, incarnation, pollMs, snapshotEntries }),
    );
    const parts = { ...this.#parts, process: this.process, line: this.#line };
    const watched = this.#parts.reports.watch(opened, this.process, incarnation);
    const metadata = sabotage.metadata?.(watched, parts) ?? watched;
    this.#metadata = metadata;
    for (let again = false; !this.#stopping; again = true) {
      let end: (fault: FaultError) => void = () => {};
      const ended = new Promise<FaultError>((resolve) => void (end = resolve));
      const started = await startIncarnation({
        ...shared,
        metadata,
        incarnation,
        host: "192.0.2.1",
        port: 9092,
        walPolicy: settings.walPolicy,
        engineOptions: settings.engine,
        storeKind: "s3",
        again,
        storeWait,
        ...(settings.compaction === null ? {} : { compaction: settings.compaction }),
        onHealth: () => {},
        onFatal: (fault) => end(fault),
      });
      const serving = this.#serve(started, metadata);
      const fault = await ended;
      if (this.#serving === serving) this.#serving = null;
      if (this.#stopping) return;
      if (fault.code !== "fenced") throw fault;
      if (await this.#isReplaced(metadata, incarnation)) throw fault;
      await this.#giveUp(serving, fault);
    }
  }

  #serve(incarnation: Incarnation, metadata: MetadataStore): Serving {
    const { settings } = this.#parts;
    const { env } = this.process;
    const { requester } = incarnation;
    const managers = createManagers(metadata, () => requester);
    const store = this.#line;
    const collector = createCollector({
      store,
      env,
      clusterId: CLUSTER_ID,
      metadata,
      requester: () => requester,
      intervalMs: settings.lookMs,
    });
    const auditor = this.#auditor({
      store,
      env,
      clusterId: CLUSTER_ID,
      nodeId: requester.nodeId,
      metadata,
    });
    const { blockCacheBytesMax, indexCacheBytesMax, rangeIndexBytesMax } = settings.engine;
    const reader = new BlockCache({
      env,
      store,
      clusterId: CLUSTER_ID,
      nodeId: requester.nodeId,
      objects: managers.objects,
      streams: managers.streams,
      blockBytesMax: blockCacheBytesMax,
      indexBytesMax: indexCacheBytesMax,
      rangeBytesMax: rangeIndexBytesMax,
    });
    const held = new Map<StreamId, Stream>();
    const serving = {
      incarnation,
      managers,
      collector,
      auditor,
      reader,
      held,
      appended: 0,
      confirmed: 0,
    };
    this.#serving = serving;
    this.#parts.world.note(`${this.process.name} serves, epoch ${requester.epoch}`);
    return serving;
  }

  #auditor(parts: Omit<AuditorOptions, "options">): Auditor | null {
    const audit = this.#parts.audit();
    if (audit === null) return null;
    const { intervalMs, isAged } = audit;
    const auditor = (this.#parts.sabotage.audit ?? createAuditor)({
      ...parts,
      store: isAged ? agedLine(parts.store) : parts.store,
      options: { intervalMs, requestsPerSecond: AUDIT_REQUESTS, deletes: true },
    });
    auditor.start();
    return auditor;
  }

  async #isReplaced(metadata: MetadataStore, incarnation: string): Promise<boolean> {
    const { env } = this.process;
    const isMine = () => metadata.view().nodes.get(this.nodeId)?.incarnation === incarnation;
    if (!isMine()) return true;
    await whileStoreFails({ env, storeName: "sim:", limitMs: null }, () => metadata.fresh());
    return !isMine();
  }

  /** As the node does it when another one has recovered it while it lived. */
  async #giveUp(serving: Serving, fault: FaultError): Promise<void> {
    const { env } = this.process;
    env.log.log("warn", "node-recovers", { reason: fault.message });
    serving.incarnation.abandon(fault);
    if (!await settlesWithin(env.clock, close(serving), CLOSE_GRACE_MS)) {
      env.log.log("warn", "close-goes-on", { reason: "the store does not answer" });
    }
  }

  /** Reads the log to its end, whenever its poll would. */
  async look(): Promise<void> {
    await this.#metadata?.fresh().catch((error: unknown) => {
      if (!isFault(error)) throw error;
    });
  }

  /** A live node takes a dead one's place. Throws what `recoverNode` throws. */
  async recover(target: NodeId, epoch: NodeEpoch): Promise<void> {
    const { managers } = this.#serving!;
    const { env } = this.process;
    const { engine, recoveryBytesMax } = this.#parts.settings;
    await recoverNode({
      env,
      store: this.#line,
      clusterId: CLUSTER_ID,
      nodeId: this.nodeId,
      objects: managers.objects,
      recovery: managers.recovery,
      wals: [{ nodeId: target, epoch }],
      bytesMax: recoveryBytesMax,
      idBlock: engine.idBlock,
    });
  }

  /** SIGTERM: everything is uploaded and closed. */
  async stop(): Promise<void> {
    this.#stopping = true;
    const serving = this.#serving;
    this.#serving = null;
    try {
      if (serving !== null) await close(serving);
      await this.#metadata?.close();
    } catch (error) {
      if (!isFault(error)) throw error;
    }
    this.process.kill("stopped");
  }
}

async function close({ auditor, collector, incarnation }: Serving): Promise<void> {
  await auditor?.close();
  await collector.close();
  await incarnation.close();
}
