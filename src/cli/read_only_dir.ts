/**
 * A directory store for looking only: it creates no directory and no temporary file, so it works on a copy
 * that is mounted read-only, and a wrong path stays a wrong path.
 */
import { open, stat } from "node:fs/promises";
import { resolve } from "node:path";
import { fileFault } from "../adapters/dir_store_fault.ts";
import { infoOf, isAbsent, walkKeys } from "../adapters/dir_store_list.ts";
import { pathOf } from "../adapters/dir_store_path.ts";
import type { Clock } from "../env/clock.ts";
import { FaultError, messageOf } from "../lib/errors.ts";
import type { ObjectStore } from "../object/object_store.ts";

function refuse(): Promise<never> {
  const message = "Cannot write: the store was opened for reading";
  return Promise.reject(new FaultError("store-denied", message, { retriable: false }));
}

/** Exactly [start, end) of a file. */
export async function readFileRange(
  path: string,
  start: number,
  end: number,
): Promise<Uint8Array> {
  const handle = await open(path, "r");
  try {
    const bytes = new Uint8Array(end - start);
    for (let at = 0; at < bytes.length;) {
      const { bytesRead } = await handle.read(bytes, at, bytes.length - at, start + at);
      if (bytesRead === 0) throw new Error(`${path} ended after ${start + at} bytes`);
      at += bytesRead;
    }
    return bytes;
  } finally {
    await handle.close();
  }
}

/** Throws FaultError `config` when there is no such directory. */
export async function openReadOnlyDir(
  path: string,
  { clock }: { readonly clock: Clock },
): Promise<ObjectStore> {
  const root = resolve(path);
  const isDirectory = await stat(root).then((found) => found.isDirectory(), (error: unknown) => {
    if (isAbsent(error)) return false;
    throw new FaultError("config", `Cannot read the directory ${root}: ${messageOf(error)}`, {
      retriable: false,
      cause: error,
    });
  });
  if (!isDirectory) {
    throw new FaultError("config", `Cannot read the directory ${root}: there is none`, {
      retriable: false,
    });
  }
  return {
    put: refuse,
    putParts: refuse,
    delete: refuse,
    async get(key, { range } = {}) {
      try {
        const info = await infoOf(root, key);
        if (info === null) return null;
        const start = Math.min(range?.start ?? 0, info.size);
        const end = Math.max(start, Math.min(range?.end ?? info.size, info.size));
        const bytes = await readFileRange(pathOf(root, key), start, end);
        return { ...info, bytes, storeNowMs: clock.nowMs() };
      } catch (error) {
        if (isAbsent(error)) return null;
        throw fileFault(error, `get ${key}`);
      }
    },
    async head(key) {
      try {
        return await infoOf(root, key);
      } catch (error) {
        throw fileFault(error, `head ${key}`);
      }
    },
    async *list(prefix, { startAfter = "" } = {}) {
      try {
        yield* walkKeys(root, prefix, startAfter);
      } catch (error) {
        throw fileFault(error, `list ${prefix}`);
      }
    },
    close: () => Promise.resolve(),
  };
}
