/** Records of partitions that a client names with their offsets, after a wait for the first of them. */
import type { Clock } from "../../env/clock.ts";
import {
  type ManyQuery,
  readMany,
  release,
  type Results,
  type Target,
  waitForMany,
} from "../read/many.ts";
import type { ReadGateway } from "../read_port.ts";

function hasNews(results: Results): boolean {
  return results.some((one) =>
    one !== null && (!one.ok || one.records.length > 0 || one.oversized !== null)
  );
}

/** The caller releases what it got. Throws ProblemError when there is no memory for it. */
export async function fetchNamed(
  { gateway, clock }: { readonly gateway: ReadGateway; readonly clock: Clock },
  first: readonly Target[],
  query: ManyQuery,
  waitMs: number,
): Promise<Results> {
  const endMs = clock.monotonicMs() + waitMs;
  let targets = first;
  for (;;) {
    const results = await readMany(gateway, clock, targets, query);
    const leftMs = endMs - clock.monotonicMs();
    if (hasNews(results) || leftMs <= 0 || query.signal.aborted) return results;
    release(results);
    targets = targets.map((target, i) => {
      const one = results[i];
      return one?.ok === true ? { ...target, offset: one.next } : target;
    });
    await waitForMany(gateway, clock, targets, query, leftMs);
  }
}
