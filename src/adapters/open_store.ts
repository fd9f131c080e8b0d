/** The configured location to an object store. The S3 client is loaded only where it is used. */
import type { Config } from "../config/config.ts";
import type { Env } from "../env/env.ts";
import { createMemoryStore } from "../object/memory.ts";
import type { ObjectStore } from "../object/object_store.ts";
import { openDirStore } from "./dir_store.ts";

export async function openStore(
  config: Pick<Config, "store" | "s3"> & Partial<Pick<Config, "createCluster">>,
  env: Env,
): Promise<ObjectStore> {
  const { store, s3, createCluster: create = true } = config;
  if (store.kind === "memory") return createMemoryStore(env.clock);
  if (store.kind === "dir") return await openDirStore(store.path, { clock: env.clock, create });
  const { openS3Store } = await import("./s3_store.ts");
  return openS3Store({ bucket: store.bucket, prefix: store.prefix, ...s3, clock: env.clock });
}
