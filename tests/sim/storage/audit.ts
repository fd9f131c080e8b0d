/**
 * The audit among the blows: it is told that everything is a day older than it is, so that only its judgement by
 * metadata protects what is needed. Left as they are: snapshots, whose age counts for itself, and probes, which
 * nothing but their age protects.
 */
import type { Auditor, AuditorOptions } from "../../../src/controller/auditor.ts";
import { sleep } from "../../../src/env/clock.ts";
import { AUDIT_AGE_MS_MIN } from "../../../src/lib/limits.ts";
import { parseDataKey, PROBE_PREFIX } from "../../../src/object/object_key.ts";
import type { ObjectStore } from "../../../src/object/object_store.ts";

export function agedLine(line: ObjectStore): ObjectStore {
  return {
    ...line,
    async *list(prefix, options) {
      for await (const info of line.list(prefix, options)) {
        const isAged = prefix === "" && !info.key.startsWith(PROBE_PREFIX);
        const lastModifiedMs = info.lastModifiedMs - (isAged ? AUDIT_AGE_MS_MIN : 0);
        yield { ...info, lastModifiedMs };
      }
    },
  };
}

/** The wrong one: a data object that has no row and is a day old is taken for garbage. */
export function auditByAge({ store, env, clusterId, metadata, options }: AuditorOptions): Auditor {
  const abort = new AbortController();
  const { signal } = abort;
  let running: Promise<void> = Promise.resolve();
  const look = async (): Promise<void> => {
    const doomed: string[] = [];
    for await (const { key, lastModifiedMs } of store.list("")) {
      const id = parseDataKey(clusterId, key);
      const isOld = env.clock.nowMs() - lastModifiedMs >= AUDIT_AGE_MS_MIN;
      if (id !== null && isOld && !metadata.view().objects.has(id)) doomed.push(key);
    }
    await store.delete(doomed);
  };
  const loop = async (): Promise<void> => {
    while (!signal.aborted) {
      await sleep(env.clock, options.intervalMs, signal);
      if (!signal.aborted) await look().catch(() => {});
    }
  };
  return {
    start: () => void (running = loop()),
    audit: () => Promise.resolve(null),
    close() {
      abort.abort();
      return running;
    },
  };
}
