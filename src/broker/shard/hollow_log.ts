/**
 * Writes a shard's log anew once most of it is dead: all that is alive goes behind it, and what stands before is
 * cut off. The start of the rewrite is taken in the same stretch as the picture, so nothing that comes later can
 * be lost.
 */
import type { Env } from "../../env/env.ts";
import type { PartitionLog } from "../../log/partition_log.ts";
import { appendRecords, type KeyValue } from "./shard_log.ts";

/** The log is rewritten when it is this many times larger than what is alive in it. */
const HOLLOW_FACTOR = 4;

export interface HollowLogOptions {
  readonly env: Env;
  readonly log: PartitionLog;
  /** What the log calls a rewrite. */
  readonly event: string;
  /** A smaller log is not rewritten. */
  readonly bytesMin: number;
}

/** What a reload would find of all that was appended: keys and values, in bytes and one by one. */
export interface AliveRecords {
  readonly bytes: number;
  records(): readonly KeyValue[];
}

export class HollowLog {
  readonly #options: HollowLogOptions;
  #rewriting = false;

  constructor(options: HollowLogOptions) {
    this.#options = options;
  }

  /** Large enough that what is alive is worth a look; never while a rewrite is under way. */
  get isLarge(): boolean {
    return !this.#rewriting && this.#options.log.sizeBytes >= this.#options.bytesMin;
  }

  /** Asks for the records only when it writes them. Throws FaultError; the log is whole then as well. */
  async rewriteIfHollow(alive: AliveRecords): Promise<void> {
    const { env, log, event } = this.#options;
    const { bytes } = alive;
    if (!this.isLarge || log.sizeBytes < HOLLOW_FACTOR * bytes) return;
    this.#rewriting = true;
    try {
      const start = log.logEndOffset;
      await appendRecords(env, log, alive.records()).durable;
      await log.deleteRecords(start);
      env.log.log("debug", event, { bytes, start });
    } finally {
      this.#rewriting = false;
    }
  }
}
