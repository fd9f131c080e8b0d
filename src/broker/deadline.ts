/** How long a client waits for what it asked; the work itself goes on, as Kafka's does. */
import type { Clock } from "../env/clock.ts";

export interface Deadline {
  /** The outcome of the work, or `late`. Nothing is begun once the time has passed. */
  run<T>(work: () => Promise<T>, late: T): Promise<T>;
}

/** No time to wait at all cannot be meant: 0 and less are no limit. */
export async function withDeadline<R>(
  clock: Clock,
  timeoutMs: number,
  all: (deadline: Deadline) => Promise<R>,
): Promise<R> {
  let hasPassed = false;
  let pass = (): void => {};
  const passed = new Promise<void>((resolve) => {
    pass = () => {
      hasPassed = true;
      resolve();
    };
  });
  const cancel = timeoutMs > 0 ? clock.after(timeoutMs, pass) : () => {};
  try {
    return await all({
      run: async (work, late) =>
        hasPassed ? late : await Promise.race([work(), passed.then(() => late)]),
    });
  } finally {
    cancel();
  }
}
