/** Garbage collection on demand, on Bun, Deno and Node: whether something is let go of is not a matter of luck. */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";

function collectGarbage(): void {
  if ("Bun" in globalThis) return Bun.gc(true);
  setFlagsFromString("--expose-gc");
  runInNewContext("gc")();
}

/** How many are gone after collecting garbage. */
export async function collected(refs: readonly WeakRef<object>[]): Promise<number> {
  // Weak references hold until the turn that made them is over.
  await new Promise((resolve) => setTimeout(resolve, 0));
  collectGarbage();
  return refs.filter((ref) => ref.deref() === undefined).length;
}
