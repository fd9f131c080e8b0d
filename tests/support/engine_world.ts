/** A storage engine with everything around it in memory: can be killed and started again. */
import type { Env } from "../../src/env/env.ts";
import { nodeId, type StreamEpoch, streamEpoch } from "../../src/lib/brand.ts";
import { createMemoryStore } from "../../src/object/memory.ts";
import type { ObjectStore } from "../../src/object/object_store.ts";
import { createStorage } from "../../src/storage/engine.ts";
import type { EngineOptions } from "../../src/storage/engine_options.ts";
import { recoverNode } from "../../src/storage/recover.ts";
import type { Storage } from "../../src/storage/storage.ts";
import { createObjectWal } from "../../src/storage/wal/object_wal.ts";
import type { Wal } from "../../src/storage/wal/wal.ts";
import type { StreamClient } from "../../src/stream/stream.ts";
import { createStreamClient } from "../../src/stream/stream_client.ts";
import { createFakeClock, type FakeClock } from "./fake_clock.ts";
import { faulty, type Judge, METADATA_METHODS, STORE_METHODS } from "./faulty.ts";
import { MemoryMetadata, type NodePorts } from "./memory_metadata.ts";
import { testEnv } from "./test_env.ts";

export const CLUSTER = "test";
export const NODE = nodeId(1);

export interface RunningEngine {
  readonly ports: NodePorts;
  readonly store: ObjectStore;
  readonly wal: Wal;
  readonly storage: Storage;
  readonly streams: StreamClient;
  readonly health: (string | null)[];
  readonly fatal: unknown[];
  /** kill -9: every later call of this engine hangs for ever. */
  kill(): void;
}

export interface StartOptions {
  readonly options?: Partial<EngineOptions>;
  /** Decides about each store and metadata call of this engine. */
  readonly judge?: Judge;
  readonly recover?: boolean;
  readonly recoveryBytesMax?: number;
}

export class EngineWorld {
  readonly clock: FakeClock = createFakeClock();
  readonly env: Env = testEnv({ clock: this.clock });
  readonly store: ObjectStore = createMemoryStore(this.clock);
  readonly metadata = new MemoryMetadata();
  #epoch = 0;

  nextEpoch(): StreamEpoch {
    return streamEpoch(++this.#epoch);
  }

  /** Moves time until the work has its outcome: its retries sleep on the fake clock. */
  async drive<T>(work: Promise<T>): Promise<T> {
    const pending = new Set([work]);
    const settled = () => void pending.delete(work);
    work.then(settled, settled);
    await this.clock.settle();
    for (let i = 0; pending.size > 0 && i < 100; i++) await this.clock.advance(1_000);
    return await work;
  }

  async start(start: StartOptions = {}): Promise<RunningEngine> {
    const { env } = this;
    const { judge = () => "ok", recover = true, recoveryBytesMax } = start;
    let isDead = false;
    const guarded: Judge = (method) => isDead ? "hang" : judge(method);
    const store = faulty(this.store, STORE_METHODS, guarded);
    const { nodeId: id, epoch, ...managers } = this.metadata.register(NODE);
    const ports: NodePorts = {
      nodeId: id,
      epoch,
      streams: faulty(managers.streams, METADATA_METHODS, guarded),
      objects: faulty(managers.objects, METADATA_METHODS, guarded),
      recovery: faulty(managers.recovery, METADATA_METHODS, guarded),
    };
    const shared = { env, store, clusterId: CLUSTER, nodeId: id };
    if (recover) {
      await recoverNode({
        ...shared,
        objects: ports.objects,
        recovery: ports.recovery,
        ...(recoveryBytesMax === undefined ? {} : { bytesMax: recoveryBytesMax }),
      });
    }
    const wal = createObjectWal({ ...shared, epoch, policy: { kind: "unmetered" } });
    const health: (string | null)[] = [];
    const fatal: unknown[] = [];
    const storage = createStorage({
      ...shared,
      wal,
      objects: ports.objects,
      streams: ports.streams,
      options: start.options ?? {},
      onHealth: (problem) => void health.push(problem),
      onFatal: (error) => void fatal.push(error),
    });
    const streams = createStreamClient({ storage, streams: ports.streams, env });
    return { ports, store, wal, storage, streams, health, fatal, kill: () => void (isDead = true) };
  }
}
