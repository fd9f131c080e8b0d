/**
 * Whether the store still holds our cluster. The metadata log cannot tell: it looks for the next entry, which is
 * absent in an emptied store as well, and would be created there. So the cluster object is looked at now and then;
 * when it is gone, names another cluster or was made anew without our log, twice in a row, the node ends: what is
 * acknowledged from then on would lie in a store that nobody can read.
 */
import type { Cancel } from "../env/clock.ts";
import { sleep } from "../env/clock.ts";
import type { Env } from "../env/env.ts";
import type { Position } from "../lib/brand.ts";
import { FaultError, isFault, messageOf } from "../lib/errors.ts";
import { CLUSTER_LOOK_AGAIN_MS, CLUSTER_LOOK_MS } from "../lib/limits.ts";
import { readCluster } from "../controller/cluster.ts";
import { CLUSTER_KEY, logKey } from "../object/object_key.ts";
import type { ObjectStore } from "../object/object_store.ts";

export interface ClusterWatchOptions {
  readonly env: Env;
  readonly store: ObjectStore;
  readonly clusterId: string;
  /** The newest entry of the metadata log that we know; null before there is one. Throws what the store throws. */
  readonly lastEntry: () => Promise<Position | null>;
  readonly onLost: (fault: FaultError) => void;
}

export class ClusterWatch {
  readonly #options: ClusterWatchOptions;
  readonly #stop = new AbortController();
  #cancel: Cancel = () => {};
  #looking: Promise<void> | null = null;
  /** Nobody changes the object: another date means that it was made anew. */
  #writtenMs: number | null = null;

  constructor(options: ClusterWatchOptions) {
    this.#options = options;
    this.#schedule();
  }

  /** At once, for whoever has seen the store come back. Never throws. */
  look(): Promise<void> {
    const { log } = this.#options.env;
    return this.#looking ??= this.#look().catch((error: unknown) => {
      log.log("error", "cluster-look-failed", { error: messageOf(error) });
    }).finally(() => {
      this.#looking = null;
    });
  }

  async close(): Promise<void> {
    this.#stop.abort();
    this.#cancel();
    await this.#looking;
  }

  #schedule(): void {
    if (this.#stop.signal.aborted) return;
    this.#cancel = this.#options.env.clock.after(CLUSTER_LOOK_MS, () => {
      void this.look().then(() => this.#schedule());
    });
  }

  /** A store that fails says nothing about what it holds; a damaged object is for the next start to tell. */
  async #look(): Promise<void> {
    const { env, onLost } = this.#options;
    const { signal } = this.#stop;
    const problem = await this.#problem();
    if (problem === null || signal.aborted) return;
    await sleep(env.clock, CLUSTER_LOOK_AGAIN_MS, signal);
    if (signal.aborted || await this.#problem() === null) return;
    const message =
      `The store was emptied or replaced while the node ran: ${problem}. Nothing is made anew: ` +
      "bring the store back, or start on another one";
    onLost(new FaultError("data-loss", message, { retriable: false }));
  }

  async #problem(): Promise<string | null> {
    const { store, clusterId } = this.#options;
    const { signal } = this.#stop;
    try {
      const got = await store.get(CLUSTER_KEY, { signal });
      if (got === null) return `${CLUSTER_KEY} is missing`;
      const found = readCluster(got.bytes, Infinity).clusterId;
      if (found !== clusterId) return `${CLUSTER_KEY} names cluster ${found}, not ${clusterId}`;
      this.#writtenMs ??= got.lastModifiedMs;
      if (got.lastModifiedMs === this.#writtenMs) return null;
      const missing = await this.#missingEntry();
      if (missing === null) this.#writtenMs = got.lastModifiedMs;
      return missing === null ? null : `${CLUSTER_KEY} was made anew, and ${missing} is missing`;
    } catch (error) {
      if (!isFault(error)) throw error;
      return null;
    }
  }

  /** Somebody may have put the object back, or made another cluster of the same name: the log tells. */
  async #missingEntry(): Promise<string | null> {
    const { store, clusterId, lastEntry } = this.#options;
    const at = await lastEntry();
    if (at === null) return null;
    const key = logKey(clusterId, at);
    return await store.head(key) === null ? key : null;
  }
}
