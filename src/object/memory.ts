/** The object store in memory: the reference for the port's semantics, and the default of tests and examples. */
import type { Clock } from "../env/clock.ts";
import { concatBytes } from "../lib/bytes.ts";
import { FaultError } from "../lib/errors.ts";
import { assertKey } from "./object_key.ts";
import type { GotObject, ObjectInfo, ObjectStore } from "./object_store.ts";
import { equalParts } from "./parts.ts";

interface Stored {
  readonly bytes: Uint8Array;
  readonly lastModifiedMs: number;
}

function throwIfAborted(signal: AbortSignal | undefined): void {
  if (signal?.aborted === true) {
    throw new FaultError("aborted", "Request to the memory store aborted", { retriable: true });
  }
}

/** Bodies are copied on their way in and out, so that neither side can change the other's bytes. */
export function createMemoryStore(clock: Clock): ObjectStore {
  const objects = new Map<string, Stored>();
  let sortedKeys: readonly string[] | null = null;

  function write(key: string, bytes: Uint8Array): void {
    if (!objects.has(key)) sortedKeys = null;
    objects.set(key, { bytes, lastModifiedMs: clock.nowMs() });
  }

  function info(key: string, stored: Stored): ObjectInfo {
    return { key, size: stored.bytes.length, lastModifiedMs: stored.lastModifiedMs };
  }

  return {
    async put(key, body, { ifAbsent = false, signal } = {}) {
      assertKey(key);
      throwIfAborted(signal);
      const created = !ifAbsent || !objects.has(key);
      if (created) write(key, body.slice());
      return { created, storeNowMs: clock.nowMs() };
    },

    async putParts(key, parts) {
      assertKey(key);
      const copies: Uint8Array[] = [];
      for await (const part of equalParts(parts)) copies.push(part.slice());
      write(key, concatBytes(copies));
    },

    async get(key, { range, signal } = {}): Promise<GotObject | null> {
      assertKey(key);
      throwIfAborted(signal);
      const stored = objects.get(key);
      if (stored === undefined) return null;
      const bytes = range === undefined
        ? stored.bytes.slice()
        : stored.bytes.slice(range.start, range.end);
      return { ...info(key, stored), bytes, storeNowMs: clock.nowMs() };
    },

    async head(key) {
      assertKey(key);
      const stored = objects.get(key);
      return stored === undefined ? null : info(key, stored);
    },

    async *list(prefix, { startAfter } = {}) {
      sortedKeys ??= [...objects.keys()].toSorted();
      for (const key of sortedKeys) {
        if (!key.startsWith(prefix) || (startAfter !== undefined && key <= startAfter)) continue;
        const stored = objects.get(key);
        if (stored !== undefined) yield info(key, stored);
      }
    },

    async delete(keys) {
      for (const key of keys) {
        assertKey(key);
        if (objects.delete(key)) sortedKeys = null;
      }
      return { gone: [...keys], failed: [] };
    },

    async close() {},
  };
}
