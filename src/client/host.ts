/** What the client takes from where it runs: fetch, time, chance. All else is arguments, so that tests own them. */

export type Fetch = (url: string, init: RequestInit) => Promise<Response>;

export interface Host {
  readonly fetch: Fetch;
  /** Milliseconds since some start; never goes back. */
  readonly nowMs: () => number;
  /** Calls once after the delay; what comes back cancels it. */
  readonly after: (delayMs: number, work: () => void) => () => void;
  /** From 0 up to 1. */
  readonly random: () => number;
  /** Text that nobody else has. */
  readonly token: () => string;
}

const TOKEN_BYTES = 16;

/** `crypto.randomUUID` is missing in pages without TLS. */
function token(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(TOKEN_BYTES));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

export function systemHost(given?: Fetch): Host {
  return {
    // Called as a method of anything else, Workers and browsers refuse it.
    fetch: given ?? ((url, init) => fetch(url, init)),
    nowMs: () => performance.now(),
    after: (delayMs, work) => {
      const timer = setTimeout(work, delayMs);
      return () => clearTimeout(timer);
    },
    random: () => Math.random(),
    token,
  };
}

/** Resolves after the delay, or when the signal aborts. */
export function sleep(host: Host, delayMs: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) return resolve();
    const end = () => {
      cancel();
      signal?.removeEventListener("abort", end);
      resolve();
    };
    const cancel = host.after(delayMs, end);
    signal?.addEventListener("abort", end);
  });
}
