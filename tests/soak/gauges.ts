/** Looks at the broker once a second and at its store every few seconds, and tells how the figures develop. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import type { Broker } from "./broker.ts";
import { pause } from "./cluster.ts";
import type { Stored } from "./store_server.ts";

const LOOK_MS = 1_000;
const LIST_MS = 5_000;

export interface ProcessSample {
  readonly atMs: number;
  readonly residentBytes: number;
  readonly files: number;
  readonly sockets: number;
}

export interface CacheSample {
  readonly atMs: number;
  /** Records, blocks and indexes in memory, by the broker's own metrics. */
  readonly cacheBytes: number;
}

export interface StoreSample {
  readonly atMs: number;
  readonly data: number;
  readonly wal: number;
  readonly entries: number;
  readonly snapshots: number;
  readonly bytes: number;
}

function lookAt(pid: number): ProcessSample | null {
  try {
    const found = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"));
    const links = readdirSync(`/proc/${pid}/fd`).map((each) => {
      try {
        return readlinkSync(`/proc/${pid}/fd/${each}`);
      } catch {
        return "";
      }
    });
    return {
      atMs: performance.now(),
      residentBytes: Number(found?.[1] ?? 0) * 1024,
      files: links.length,
      sockets: links.filter((each) => each.startsWith("socket:")).length,
    };
  } catch {
    return null;
  }
}

async function cachesOf(http: string): Promise<CacheSample | null> {
  try {
    const answer = await fetch(`${http}/metrics`, { signal: AbortSignal.timeout(2_000) });
    const found = (await answer.text()).matchAll(/^skerry_(?:log|block)_cache_bytes (\S+)$/gm);
    const cacheBytes = [...found].reduce((sum, [, value]) => sum + Number(value), 0);
    return { atMs: performance.now(), cacheBytes };
  } catch {
    return null;
  }
}

export function sampleOf(stored: readonly Stored[]): StoreSample {
  const counts = { data: 0, wal: 0, entries: 0, snapshots: 0, bytes: 0 };
  for (const { key, size } of stored) {
    counts.bytes += size;
    if (/^meta\/_kafka_[^/]+\/log\//.test(key)) counts.entries += 1;
    else if (/^meta\/_kafka_[^/]+\/snap\//.test(key)) counts.snapshots += 1;
    else if (key.includes("/wal/")) counts.wal += 1;
    else if (!key.startsWith("meta/")) counts.data += 1;
  }
  return { atMs: performance.now(), ...counts };
}

export class Gauges {
  readonly process: ProcessSample[] = [];
  readonly store: StoreSample[] = [];
  readonly caches: CacheSample[] = [];
  readonly #broker: Broker;
  readonly #list: () => Promise<Stored[] | null>;
  #stopped = false;
  readonly #done: Promise<unknown>;

  constructor(broker: Broker, list: () => Promise<Stored[] | null>) {
    this.#broker = broker;
    this.#list = list;
    this.#done = Promise.all([this.#watchProcess(), this.#watchStore()]);
  }

  async #watchProcess(): Promise<void> {
    while (!this.#stopped) {
      const sample = this.#broker.pid === null ? null : lookAt(this.#broker.pid);
      if (sample !== null) this.process.push(sample);
      await pause(LOOK_MS);
    }
  }

  async #watchStore(): Promise<void> {
    while (!this.#stopped) {
      await this.look();
      const caches = await cachesOf(this.#broker.http);
      if (caches !== null) this.caches.push(caches);
      await pause(LIST_MS);
    }
  }

  async look(): Promise<StoreSample | null> {
    const stored = await this.#list();
    if (stored === null) return null;
    const sample = sampleOf(stored);
    this.store.push(sample);
    return sample;
  }

  /** All samples, a line each, in seconds since `fromMs`. */
  json(fromMs: number): string {
    const lines = [...this.process, ...this.store, ...this.caches].toSorted((a, b) =>
      a.atMs - b.atMs
    )
      .map(({ atMs, ...rest }) =>
        JSON.stringify({ s: Math.round((atMs - fromMs) / 1_000), ...rest })
      );
    return lines.join("\n");
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#done;
  }
}

export function median(numbers: readonly number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b);
  return sorted[sorted.length >> 1] ?? Number.NaN;
}

/** Medians of the second and of the last quarter of a time. */
export function quarters<T extends { readonly atMs: number }>(
  samples: readonly T[],
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
  pick: (sample: T) => number,
): { readonly second: number; readonly last: number } {
  const quarter = (toMs - fromMs) / 4;
  const within = (from: number) =>
    median(samples.filter(({ atMs }) => atMs >= from && atMs < from + quarter).map(pick));
  return { second: within(fromMs + quarter), last: within(toMs - quarter) };
}
