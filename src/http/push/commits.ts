/**
 * Commits how far a subscription is: the first time at once, then with a least time in between. While it cannot be
 * committed nothing more is sent, or a crash would deliver all of that again.
 */
import type { Cancel } from "../../env/clock.ts";
import type { Env } from "../../env/env.ts";
import { isFault, messageOf } from "../../lib/errors.ts";
import {
  PUSH_COMMIT_MS,
  PUSH_REFRESH_MS,
  PUSH_REPEAT_MS_MAX,
  PUSH_REPEAT_MS_MIN,
} from "../../lib/limits.ts";
import type { OffsetAt } from "../mounts/group_port.ts";
import type { PushGroups } from "./push_port.ts";
import type { Source } from "./sources.ts";

export interface CommitsOptions {
  readonly group: string;
  readonly groups: PushGroups;
  readonly env: Env;
  readonly signal: AbortSignal;
  readonly sources: () => readonly Source[];
  /** The group has members now: what is known of its positions counts for nothing. */
  readonly onLost: () => void;
  /** Null: it works again. */
  readonly onProblem: (problem: string | null) => void;
}

export class Commits {
  readonly #options: CommitsOptions;
  #timer: { readonly atMs: number; readonly cancel: Cancel } | null = null;
  #isUnderWay = false;
  #refreshedMs: number;
  #notBeforeMs = 0;
  #pauseMs = PUSH_COMMIT_MS;

  constructor(options: CommitsOptions) {
    this.#options = options;
    this.#refreshedMs = options.env.clock.monotonicMs();
  }

  /** Positions may have moved. */
  want(): void {
    if (this.#hasNews()) this.#schedule(this.#notBeforeMs);
    else this.#schedule(this.#refreshedMs + PUSH_REFRESH_MS);
  }

  close(): void {
    this.#timer?.cancel();
    this.#timer = null;
  }

  #hasNews(): boolean {
    return this.#options.sources().some(({ window, committed }) => window.position > committed);
  }

  /** No later than any time that it was called with. */
  #schedule(atMs: number): void {
    const { clock } = this.#options.env;
    if (this.#isUnderWay || this.#options.signal.aborted) return;
    if (this.#timer !== null && this.#timer.atMs <= atMs) return;
    this.close();
    const delayMs = atMs - clock.monotonicMs();
    if (delayMs <= 0) return this.#run();
    const cancel = clock.after(delayMs, () => {
      this.#timer = null;
      this.#run();
    });
    this.#timer = { atMs, cancel };
  }

  #run(): void {
    this.#isUnderWay = true;
    void this.#commit().then((problem) => {
      this.#isUnderWay = false;
      this.#pauseMs = problem === null
        ? PUSH_COMMIT_MS
        : Math.min(PUSH_REPEAT_MS_MAX, Math.max(PUSH_REPEAT_MS_MIN, 2 * this.#pauseMs));
      this.#notBeforeMs = this.#options.env.clock.monotonicMs() + this.#pauseMs;
      this.#options.onProblem(problem);
      this.want();
    });
  }

  /** Null when all is committed; else why not. */
  async #commit(): Promise<string | null> {
    const { groups, group, env, sources } = this.#options;
    const isRefresh = env.clock.monotonicMs() - this.#refreshedMs >= PUSH_REFRESH_MS;
    const moved = sources().filter(({ window, committed }) =>
      isRefresh || window.position > committed
    );
    if (isRefresh) this.#refreshedMs = env.clock.monotonicMs();
    if (moved.length === 0) return null;
    const offsets = moved.map(({ place: { topic, partition }, window }): OffsetAt => ({
      topic,
      partition,
      offset: window.position,
      metadata: "",
    }));
    try {
      const outcomes = await groups.commit({ group, member: null }, offsets);
      for (const [i, outcome] of outcomes.entries()) {
        if (outcome === "NONE") moved[i]!.committed = offsets[i]!.offset;
      }
      if (outcomes.includes("UNKNOWN_MEMBER_ID")) {
        this.#options.onLost();
        return null;
      }
      return outcomes.find((outcome) => outcome !== "NONE") ?? null;
    } catch (error) {
      if (!isFault(error)) env.log.log("error", "push-commit-failed", { error: messageOf(error) });
      return isFault(error) ? error.message : "the broker logged why";
    }
  }
}
