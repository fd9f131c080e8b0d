/** Walks a directory store in key order, one directory in memory at a time. */
import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import type { ObjectInfo } from "../object/object_store.ts";
import { errnoOf } from "./dir_store_fault.ts";
import { TEMP_NAME } from "./dir_store_path.ts";

/** Files whose size is asked for at once. */
const STATS_AT_ONCE = 32;

interface Walk {
  readonly root: string;
  readonly prefix: string;
  readonly startAfter: string;
}

/** Absent and not-a-directory both mean: nothing there. */
export function isAbsent(error: unknown): boolean {
  return errnoOf(error) === "ENOENT" || errnoOf(error) === "ENOTDIR";
}

export async function* walkKeys(
  root: string,
  prefix: string,
  startAfter: string,
): AsyncGenerator<ObjectInfo> {
  yield* walkDirectory({ root, prefix, startAfter }, prefix.slice(0, prefix.lastIndexOf("/") + 1));
}

/** `directory` is empty or ends with a slash. */
async function* walkDirectory(walk: Walk, directory: string): AsyncGenerator<ObjectInfo> {
  let files: string[] = [];
  for (const name of await namesIn(walk, directory)) {
    const isDirectory = name.endsWith("/");
    if (!isDirectory) files.push(name);
    if (isDirectory || files.length === STATS_AT_ONCE) {
      yield* infosOf(walk.root, files);
      files = [];
    }
    if (isDirectory) yield* walkDirectory(walk, name);
  }
  yield* infosOf(walk.root, files);
}

/** Wanted keys in order; those of directories end with a slash, which is how their content sorts. */
async function namesIn(walk: Walk, directory: string): Promise<readonly string[]> {
  const entries = await readdir(join(walk.root, directory), { withFileTypes: true })
    .catch((error: unknown) => {
      if (isAbsent(error)) return [];
      throw error;
    });
  const names: string[] = [];
  for (const entry of entries) {
    if (directory === "" && entry.name === TEMP_NAME) continue;
    const name = directory + entry.name;
    if (entry.isFile() && name.startsWith(walk.prefix) && name > walk.startAfter) names.push(name);
    if (entry.isDirectory() && mayHold(walk, `${name}/`)) names.push(`${name}/`);
  }
  return names.toSorted();
}

function mayHold({ prefix, startAfter }: Walk, directory: string): boolean {
  const matches = directory.startsWith(prefix) || prefix.startsWith(directory);
  return matches && (directory > startAfter || startAfter.startsWith(directory));
}

async function* infosOf(root: string, keys: readonly string[]): AsyncGenerator<ObjectInfo> {
  const infos = await Promise.all(keys.map((key) => infoOf(root, key)));
  for (const info of infos) if (info !== null) yield info;
}

/** Null when the file is gone, or is not a file. */
export async function infoOf(root: string, key: string): Promise<ObjectInfo | null> {
  try {
    const found = await stat(join(root, key));
    if (!found.isFile()) return null;
    return { key, size: found.size, lastModifiedMs: Math.floor(found.mtimeMs) };
  } catch (error) {
    if (isAbsent(error)) return null;
    throw error;
  }
}
