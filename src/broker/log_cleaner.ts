/**
 * Compacts topics on this node: at each look the partition with the largest share of dirty bytes, one at a time,
 * in the background. Nothing dirty enough, nothing done. `__consumer_offsets` and `__transaction_state` are left
 * to their shards, which write their logs anew and delete what is old.
 */
import type { Env } from "../env/env.ts";
import { FaultError, messageOf } from "../lib/errors.ts";
import { CLEAN_FAILED_PAUSE_MS_MAX } from "../lib/limits.ts";
import type { Cleanable, Cleaned, CleanOptions } from "../log/partition_log.ts";
import { FailurePauses } from "./failure_pauses.ts";
import type { NamedLog } from "./partition_metrics.ts";
import { OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC } from "./topic_name.ts";

export interface LogCleanerSettings extends CleanOptions {
  readonly isEnabled: boolean;
}

export interface LogCleanerOptions {
  readonly env: Env;
  /** As they are now. */
  readonly settings: () => LogCleanerSettings;
}

interface Candidate {
  readonly named: NamedLog;
  readonly cleanable: Cleanable;
}

/** Their owners write them anew, and records of share states must not be compacted by key at all. */
const WRITTEN_ANEW: ReadonlySet<string> = new Set([
  OFFSETS_TOPIC,
  TRANSACTIONS_TOPIC,
  SHARE_STATE_TOPIC,
]);

const OVERTAKEN = new FaultError("aborted", "The pass was overtaken", { retriable: true });

function keyOf({ topic, partition }: NamedLog): string {
  return `${topic}-${partition}`;
}

export class LogCleaner {
  readonly #options: LogCleanerOptions;
  readonly #failures: FailurePauses<string, NamedLog>;
  #isBusy = false;

  constructor(options: LogCleanerOptions) {
    this.#options = options;
    this.#failures = new FailurePauses(options.env.clock, CLEAN_FAILED_PAUSE_MS_MAX);
  }

  /** Begins a pass if one is due and none is under way. */
  look(logs: readonly NamedLog[]): void {
    const { isEnabled, ...how } = this.#options.settings();
    if (!isEnabled) return;
    const candidates = this.#candidates(logs);
    this.#show(candidates);
    if (this.#isBusy) return;
    const due = candidates
      .filter(({ named, cleanable }) => cleanable.isDue && this.#mayTry(named))
      .toSorted((a, b) => b.cleanable.dirtyRatio - a.cleanable.dirtyRatio);
    const [first] = due;
    if (first !== undefined) void this.#clean(first.named, how);
  }

  #candidates(logs: readonly NamedLog[]): readonly Candidate[] {
    const nowMs = this.#options.env.clock.nowMs();
    this.#failures.forgetWhere(({ log }) => !logs.some((named) => named.log === log));
    return logs.flatMap((named) => {
      const { topic, log } = named;
      if (WRITTEN_ANEW.has(topic)) return [];
      const cleanable = log.cleanable(nowMs);
      return cleanable === null ? [] : [{ named, cleanable }];
    });
  }

  #show(candidates: readonly Candidate[]): void {
    const { metrics } = this.#options.env;
    const ratios = candidates.map(({ cleanable }) => cleanable.dirtyRatio);
    metrics.gauge("skerry_log_cleaner_dirty_ratio_max", Math.max(0, ...ratios));
    const due = candidates.filter(({ cleanable }) => cleanable.isDue);
    metrics.gauge("skerry_log_cleaner_due", due.length);
  }

  #mayTry(named: NamedLog): boolean {
    try {
      this.#failures.check(keyOf(named));
      return true;
    } catch {
      return false;
    }
  }

  async #clean(named: NamedLog, how: CleanOptions): Promise<void> {
    const { clock, metrics } = this.#options.env;
    const beganMs = clock.monotonicMs();
    this.#isBusy = true;
    try {
      const cleaned = await named.log.clean(how);
      const workedMs = clock.monotonicMs() - beganMs;
      if (cleaned !== null) this.#failures.forget(keyOf(named));
      // What overtook it, as retention does, may come as often as passes do: it must not be all that this node does.
      else this.#failures.failed(keyOf(named), OVERTAKEN, named, workedMs);
      const outcome = cleaned === null ? "overtaken" : "done";
      metrics.count("skerry_log_cleaner_runs_total", { outcome });
      metrics.observe("skerry_log_cleaner_seconds", workedMs / 1000);
      if (cleaned !== null) this.#note(named, cleaned);
    } catch (error) {
      this.#failed(named, error, clock.monotonicMs() - beganMs);
    } finally {
      this.#isBusy = false;
    }
  }

  #note(named: NamedLog, { bytesRead, bytesWritten, unreadable }: Cleaned): void {
    const { log, metrics } = this.#options.env;
    metrics.count("skerry_log_cleaner_read_bytes_total", {}, bytesRead);
    metrics.count("skerry_log_cleaner_written_bytes_total", {}, bytesWritten);
    if (unreadable === 0) return;
    log.log("warn", "batches-not-compacted", { partition: keyOf(named), unreadable });
  }

  #failed(named: NamedLog, error: unknown, workedMs: number): void {
    const { log, metrics } = this.#options.env;
    metrics.count("skerry_log_cleaner_runs_total", { outcome: "failed" });
    const pauseMs = this.#failures.failed(keyOf(named), error, named, workedMs);
    const reason = messageOf(error);
    log.log("warn", "log-cleaning-failed", { partition: keyOf(named), pauseMs, reason });
  }
}
