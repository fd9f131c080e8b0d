/** The raw store as the node uses it: metered, limited, and with safe requests repeated. */
import type { Env } from "../env/env.ts";
import { STORE_READS_MAX, STORE_UPLOADS_MAX, STORE_WRITES_MAX } from "../lib/limits.ts";
import { limitedStore } from "../object/limited.ts";
import { meteredStore } from "../object/metered.ts";
import type { ObjectStore } from "../object/object_store.ts";
import { retryingStore } from "../object/retrying.ts";

export function nodeStore(raw: ObjectStore, env: Env): ObjectStore {
  const limits = {
    readsMax: STORE_READS_MAX,
    writesMax: STORE_WRITES_MAX,
    uploadsMax: STORE_UPLOADS_MAX,
  };
  return retryingStore(limitedStore(meteredStore(raw, env), limits), env);
}
