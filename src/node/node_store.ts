/** The raw store as the node uses it: metered, limited, and with safe requests repeated. */
import type { Env } from "../env/env.ts";
import {
  COMPACTION_READS_MAX,
  OPEN_READS_MAX,
  STORE_LOG_READS_MAX,
  STORE_READS_MAX,
  STORE_UPLOADS_MAX,
  STORE_WRITES_MAX,
} from "../lib/limits.ts";
import { Semaphore } from "../lib/semaphore.ts";
import { limitedStore, storePermits } from "../object/limited.ts";
import { meteredStore } from "../object/metered.ts";
import type { ObjectStore } from "../object/object_store.ts";
import { type Purpose, requestClass } from "../object/request_class.ts";
import { retryingStore } from "../object/retrying.ts";

/** Views of one store: permits are shared, but for reads of compaction and of opens; requests are counted by who asks. */
export type NodeStores = Readonly<Record<Purpose, ObjectStore>>;

function showStorePermits(env: Env, permits: Readonly<Record<string, Semaphore>>): void {
  env.metrics.onRender((gauge) => {
    for (const [permit, { used, waiting }] of Object.entries(permits)) {
      gauge("skerry_object_store_active", used, { permit });
      gauge("skerry_object_store_waiting", waiting, { permit });
    }
  });
}

export function nodeStores(raw: ObjectStore, env: Env): NodeStores {
  const { clock, random, metrics } = env;
  const permits = storePermits({
    readsMax: STORE_READS_MAX,
    logReadsMax: STORE_LOG_READS_MAX,
    writesMax: STORE_WRITES_MAX,
    uploadsMax: STORE_UPLOADS_MAX,
  });
  const { reads: read, logReads: log, writes: write, uploads: upload } = permits;
  // Cold readers of many small objects would keep compaction from making them few.
  const compaction = new Semaphore(COMPACTION_READS_MAX);
  // Produces wait for a partition that opens: after a restart they must not wait for cold readers.
  const open = new Semaphore(OPEN_READS_MAX);
  const readsOf: Partial<Record<Purpose, Semaphore>> = { compaction, open };
  showStorePermits(env, { read, log, write, upload, compaction, open });
  const viewFor = (purpose: Purpose): ObjectStore => {
    const classOf = requestClass(purpose);
    const own = { ...permits, reads: readsOf[purpose] ?? read };
    const limited = limitedStore(meteredStore(raw, { clock, metrics, classOf }), own);
    const onRetry = (op: string, key: string) =>
      metrics.count("skerry_object_store_retries_total", { op, class: classOf(op, key) });
    return retryingStore(limited, { clock, random, onRetry });
  };
  return {
    serve: viewFor("serve"),
    open: viewFor("open"),
    compaction: viewFor("compaction"),
    recovery: viewFor("recovery"),
  };
}
