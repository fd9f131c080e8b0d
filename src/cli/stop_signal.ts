/** The end that was asked for: the first signal asks, the second one or too much time cuts it off. */
import type { Env } from "../env/env.ts";

/** A stop that takes longer is cut off: nothing acknowledged is lost either way, it lies in the WAL. */
export const STOP_MS_MAX = 30_000;

export interface StopHost {
  /** Calls the listener for each SIGTERM and SIGINT. */
  onSignal(listener: (name: string) => void): void;
  /** Ends the process at once. */
  exit(): void;
}

/** Resolves with the name of the first signal; from then on the end comes for sure. */
export function stopSignal({ clock, log }: Pick<Env, "clock" | "log">, host: StopHost) {
  return new Promise<string>((resolve) => {
    let isStopping = false;
    host.onSignal((name) => {
      if (isStopping) {
        log.log("warn", "stopped-at-once", { signal: name });
        return host.exit();
      }
      isStopping = true;
      clock.after(STOP_MS_MAX, () => {
        log.log("warn", "stop-cut-off", { afterMs: STOP_MS_MAX });
        host.exit();
      });
      resolve(name);
    });
  });
}
