/** The memory permits of a node in its metrics: who holds how much, and who waits. */
import type { Permits } from "../broker/handler.ts";
import type { Env } from "../env/env.ts";

export function showPermits({ metrics }: Env, permits: Permits): void {
  const classes = {
    produce: permits.produce,
    hot_fetch: permits.hotFetch,
    cold_fetch: permits.coldFetch,
  };
  metrics.onRender((gauge) => {
    for (const [name, { used, limit, waiting }] of Object.entries(classes)) {
      gauge("skerry_permits_used_bytes", used, { class: name });
      gauge("skerry_permits_limit_bytes", limit, { class: name });
      gauge("skerry_permits_waiting", waiting, { class: name });
    }
  });
}
