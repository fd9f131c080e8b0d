/** What WebCrypto is at: it works on threads of its own, whose time no fake clock knows. */

const pending = new Set<Promise<unknown>>();

function track(name: "importKey" | "exportKey" | "sign" | "verify"): void {
  const { subtle } = crypto;
  const original = subtle[name].bind(subtle) as (...args: unknown[]) => Promise<unknown>;
  const value = (...args: unknown[]) => {
    const work = original(...args);
    pending.add(work);
    const end = () => void pending.delete(work);
    work.then(end, end);
    return work;
  };
  Object.defineProperty(subtle, name, { value, configurable: true });
}

for (const name of ["importKey", "exportKey", "sign", "verify"] as const) track(name);

/** Null for nothing; for clocks that stand still meanwhile. */
export function cryptoUnderWay(): Promise<unknown> | null {
  return pending.size === 0 ? null : Promise.allSettled(pending);
}
