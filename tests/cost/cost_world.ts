/**
 * What a node's requests cost, in virtual time: a whole incarnation (metadata, WAL, uploads, compaction,
 * garbage collection) over a store that counts, under producers that send at a steady rate.
 */
import assert from "node:assert/strict";
import { createCollector } from "../../src/controller/collector.ts";
import { openMetadata } from "../../src/controller/controller.ts";
import type { Image } from "../../src/controller/image.ts";
import { createMetrics, type Metrics } from "../../src/env/metrics.ts";
import { costOf, type CostReport, readUsage, type Usage } from "../../src/config/cost.ts";
import { nodeId, streamEpoch } from "../../src/lib/brand.ts";
import { LOG_CACHE_BYTES_MAX } from "../../src/lib/limits.ts";
import { PRICES } from "../../src/config/prices.ts";
import { startIncarnation } from "../../src/node/incarnation.ts";
import { nodeStores } from "../../src/node/node_store.ts";
import {
  type CompactionOptions,
  DEFAULT_COMPACTION_OPTIONS,
  pricedCompaction,
} from "../../src/storage/compaction/options.ts";
import { DEFAULT_ENGINE_OPTIONS, type EngineOptions } from "../../src/storage/engine_options.ts";
import { DEFAULT_PUT_SIZES, pricedPutSizes, type PutSizes } from "../../src/storage/put_sizes.ts";
import { softCapBytes } from "../../src/storage/wal/batching.ts";
import type { Stream } from "../../src/stream/stream.ts";
import { testEnv } from "../support/test_env.ts";
import { createSparseStore } from "./sparse_store.ts";
import { createVirtualClock, type VirtualClock } from "./virtual_clock.ts";

const CLUSTER = "cost";
const NODE = nodeId(1);
const INCARNATION = "1".padStart(32, "0");
const STREAMS = 100;

export interface Arrivals {
  readonly perSecond: number;
  readonly bytes: number;
}

export interface CostOptions {
  readonly arrivals: Arrivals | null;
  readonly putsPerHour: number;
  readonly engine?: Partial<EngineOptions>;
  readonly compaction?: Partial<CompactionOptions>;
  readonly streams?: number;
  /** Whether the store charges for requests; true when absent. */
  readonly priced?: boolean;
  /** All sizes are divided by this, and so is the work: the number of requests stays the same. */
  readonly scale?: number;
}

/** Options that are bytes, or bytes per second. */
const ENGINE_BYTES = ["logCacheBytesMax", "uploadBytes", "splitBytes"] as const;
const COMPACTION_BYTES = [
  "memoryBytes",
  "bytesPerSecond",
  "splitBytes",
  "setBytesMax",
  "mergeBytesMax",
  "linkBytesMin",
  "linkBytesMax",
  "deadBytesMin",
  "deadBytesMax",
  "readBytesMax",
  "holeBytesMax",
  "wholeBytesMax",
] as const;

function scaled<T extends { readonly puts: PutSizes }>(
  options: T,
  names: readonly (keyof T)[],
  scale: number,
): T {
  const { singleBytesMax, partBytes } = options.puts;
  const bytes = Object.fromEntries(names.map((name) => [name, Number(options[name]) / scale]));
  const puts = { singleBytesMax: singleBytesMax / scale, partBytes: partBytes / scale };
  return { ...options, ...bytes, puts };
}

/** Requests of one hour. */
export interface Hourly {
  readonly puts: number;
  readonly gets: number;
  readonly deletes: number;
  readonly byOp: Readonly<Record<string, number>>;
  readonly dollarsPerMonth: number;
  readonly dollarsPerGib: number | null;
  readonly report: CostReport;
}

export class CostWorld {
  readonly clock: VirtualClock = createVirtualClock();
  readonly metrics: Metrics = createMetrics();
  readonly #options: CostOptions;
  readonly #streams: Stream[] = [];
  #sent = 0;
  #image: (() => Image) | null = null;

  constructor(options: CostOptions) {
    this.#options = options;
  }

  usage(): Usage {
    const usage = readUsage(this.metrics.render());
    assert.ok(usage !== null);
    return usage;
  }

  /** Metadata as it is now. */
  image(): Image {
    assert.ok(this.#image !== null, "started");
    return this.#image();
  }

  /** Resolves work that sleeps on the clock. */
  async drive<T>(work: Promise<T>): Promise<T> {
    let settled = false;
    const done = work.finally(() => {
      settled = true;
    });
    done.catch(() => {});
    while (!settled) await this.clock.run(this.clock.monotonicMs() + 100);
    return await done;
  }

  async start(): Promise<void> {
    const { clock, metrics } = this;
    const env = testEnv({ clock, metrics });
    const stores = nodeStores(createSparseStore(clock), env);
    const store = stores.serve;
    const base = { store, env, clusterId: CLUSTER, nodeId: NODE };
    const metadata = await this.drive(openMetadata({ ...base, incarnation: INCARNATION }));
    this.#image = () => metadata.view();
    const {
      engine = {},
      compaction = {},
      putsPerHour,
      scale = 1,
      streams = STREAMS,
      priced = true,
    } = this.#options;
    const policy = { kind: "metered", putsPerHour } as const;
    const puts = priced
      ? pricedPutSizes(engine.logCacheBytesMax ?? LOG_CACHE_BYTES_MAX)
      : DEFAULT_PUT_SIZES;
    const engineOptions = { ...DEFAULT_ENGINE_OPTIONS, puts, ...engine };
    const defaults = { ...DEFAULT_COMPACTION_OPTIONS, ...compaction };
    const compactionOptions = priced
      ? { ...defaults, ...pricedCompaction(defaults.memoryBytes) }
      : defaults;
    const incarnation = await this.drive(startIncarnation({
      ...base,
      stores,
      metadata,
      incarnation: INCARNATION,
      host: "h",
      port: 1,
      walPolicy: { ...policy, bulkBytes: softCapBytes(policy) / scale },
      engineOptions: scaled(engineOptions, ENGINE_BYTES, scale),
      storeKind: "s3",
      again: false,
      storeWait: { env, storeName: "store", limitMs: null },
      compaction: scaled(compactionOptions, COMPACTION_BYTES, scale),
      onHealth: (problem) => assert.equal(problem, null),
      onFatal: (fault) => assert.fail(fault),
    }));
    createCollector({ ...base, metadata, requester: () => incarnation.requester });
    for (let i = 0; i < streams; i++) {
      this.#streams.push(await this.drive(incarnation.streams.create(streamEpoch(1))));
    }
    if (this.#options.arrivals !== null) this.#produce(this.#options.arrivals);
  }

  /** Evenly spaced; many in one moment where there are many. */
  #produce({ perSecond, bytes }: Arrivals): void {
    const payload = new Uint8Array(bytes / (this.#options.scale ?? 1) - 57);
    const startedMs = this.clock.monotonicMs();
    const stepMs = Math.max(10, 1_000 / perSecond);
    const step = () => {
      const due = Math.floor((this.clock.monotonicMs() - startedMs) / 1_000 * perSecond) + 1;
      for (; this.#sent < due; this.#sent++) {
        const stream = this.#streams[this.#sent % this.#streams.length]!;
        stream.append(1, payload).durable.catch((error: unknown) => assert.fail(String(error)));
      }
      this.clock.after(stepMs, step);
    };
    step();
  }

  async run(ms: number): Promise<void> {
    await this.clock.run(this.clock.monotonicMs() + ms);
  }

  /** What an hour costs at the rate of the next `ms`. */
  async hourly(ms: number): Promise<Hourly> {
    const before = this.usage();
    await this.run(ms);
    const input = { before: { usage: before, seconds: ms / 1_000 }, usage: this.usage() };
    const report = costOf({ ...input, prices: PRICES.slice(0, 1) });
    const { rate, costs: [costs] } = report;
    assert.ok(rate !== null && costs !== undefined && costs.perMonth !== null);
    const perHour = (count: number) => Math.round(count * 3_600_000 / ms);
    const { writes, reads, deletes, produced, byOp } = rate.usage;
    const gib = produced / 2 ** 30;
    const hours = ms / 3_600_000;
    return {
      puts: perHour(writes),
      gets: perHour(reads),
      deletes: perHour(deletes),
      byOp: Object.fromEntries(Object.entries(byOp).map(([op, n]) => [op, perHour(n)])),
      dollarsPerMonth: costs.perMonth,
      dollarsPerGib: gib === 0 ? null : costs.perMonth / 730 * hours / gib,
      report,
    };
  }
}
