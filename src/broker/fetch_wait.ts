/**
 * Long polls: waits until a watched log moves or closes, the time is up, or nobody listens any more.
 * A move between reading and waiting is not lost: watch first, then read, then wait.
 */
import type { Clock } from "../env/clock.ts";

/** A log, or something else that moves. */
export interface Watched {
  onAdvance(listener: () => void): () => void;
}

export interface FetchWait {
  /** Adds a log; one that is watched already is not added again. */
  watch(log: Watched): void;
  /** Counts as a move of one of them. */
  wake(): void;
  /** `moved` at once when a log moved since the last call. */
  next(): Promise<"moved" | "over">;
  stop(): void;
}

export function createFetchWait(clock: Clock, waitMs: number, signal: AbortSignal): FetchWait {
  const watched = new Map<Watched, () => void>();
  let moved = false;
  let over = signal.aborted;
  let wake: () => void = () => {};

  function finish(): void {
    over = true;
    wake();
  }

  function move(): void {
    moved = true;
    wake();
  }

  const cancel = clock.after(waitMs, finish);
  signal.addEventListener("abort", finish, { once: true });

  return {
    watch(log) {
      if (watched.has(log)) return;
      watched.set(log, log.onAdvance(move));
    },
    wake: move,
    async next() {
      if (!moved && !over) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
        wake = () => {};
      }
      if (over) return "over";
      moved = false;
      return "moved";
    },
    stop() {
      cancel();
      signal.removeEventListener("abort", finish);
      for (const unsubscribe of watched.values()) unsubscribe();
      watched.clear();
    },
  };
}
