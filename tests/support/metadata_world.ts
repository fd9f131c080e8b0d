/** Several metadata stores on one object store, with a fake clock that is driven until promises settle. */
import type { FakeClock } from "./fake_clock.ts";
import { createFakeClock } from "./fake_clock.ts";
import { faultyStore } from "./faulty_store.ts";
import type { FaultPlan, FaultyStore } from "./faulty_store.ts";
import { testEnv } from "./test_env.ts";
import { type MetadataOptions, openMetadata } from "../../src/controller/controller.ts";
import type { MetadataStore } from "../../src/controller/metadata_store.ts";
import { dumpTables } from "../../src/controller/snapshot.ts";
import type { State } from "../../src/controller/state.ts";
import { type CapturedLine, capturingLogger } from "../../src/env/logger.ts";
import type { Env } from "../../src/env/env.ts";
import { seededRandom } from "../../src/env/random.ts";
import { nodeId } from "../../src/lib/brand.ts";
import { createMemoryStore } from "../../src/object/memory.ts";
import { logPrefix, parseLogKey } from "../../src/object/object_key.ts";
import type { ObjectStore } from "../../src/object/object_store.ts";
import { CLUSTER } from "./controller_world.ts";

export interface Opened {
  readonly metadata: MetadataStore;
  readonly store: FaultyStore;
  readonly env: Env;
  readonly lines: readonly CapturedLine[];
}

const STEPS_MAX = 5_000;

export class MetadataWorld {
  readonly clock: FakeClock;
  readonly base: ObjectStore;
  #seed = 1;

  constructor(seed = 1) {
    this.clock = createFakeClock();
    this.base = createMemoryStore(this.clock);
    this.#seed = seed;
  }

  /** Moves time until the promise settles. */
  async drive<T>(promise: Promise<T>, stepMs = 50): Promise<T> {
    const watch = { settled: false };
    const done = promise.finally(() => {
      watch.settled = true;
    });
    done.catch(() => {});
    for (let i = 0; i < STEPS_MAX && !watch.settled; i++) {
      await this.clock.settle();
      if (!watch.settled) await this.clock.advance(stepMs);
    }
    if (!watch.settled) throw new Error("The promise does not settle");
    return await done;
  }

  async open(
    node: number,
    plan?: FaultPlan,
    options: Partial<MetadataOptions> = {},
  ): Promise<Opened> {
    const store = faultyStore(this.base, this.clock, plan);
    const log = capturingLogger();
    const random = seededRandom(this.#seed++);
    const env = testEnv({ clock: this.clock, random, log });
    const opening = openMetadata({
      store,
      env,
      clusterId: CLUSTER,
      nodeId: nodeId(node),
      pollMs: null,
      ...options,
    });
    return { metadata: await this.drive(opening), store, env, lines: log.lines };
  }

  /** The log's entries by position, as the store holds them. */
  async log(): Promise<Map<number, Uint8Array>> {
    const found = new Map<number, Uint8Array>();
    for await (const { key } of this.base.list(logPrefix(CLUSTER))) {
      const got = await this.base.get(key);
      found.set(parseLogKey(CLUSTER, key)!, got!.bytes);
    }
    return found;
  }
}

export function dumpOf(metadata: MetadataStore): object {
  // The controller's own store shows its state as the image.
  return { at: metadata.view().at, ...dumpTables(metadata.view() as State) };
}
