/**
 * The object store in a local directory; the path is the key. A file is written under a temporary
 * name, synced, and then gets its key by link(2), which fails if the name is taken: that is the
 * create-if-absent, and a reader never sees half a file. Not `O_EXCL` plus write: a crash in
 * between would leave a torn object under a name that nobody may use again.
 */
import type { FileHandle } from "node:fs/promises";
import { link, mkdir, open, rename, stat, unlink } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import type { Clock } from "../env/clock.ts";
import { FaultError, isFault, messageOf } from "../lib/errors.ts";
import { Semaphore } from "../lib/semaphore.ts";
import type {
  ByteRange,
  DeleteAnswer,
  GetOptions,
  GotObject,
  ListOptions,
  ObjectInfo,
  ObjectStore,
  PutAnswer,
  PutOptions,
} from "../object/object_store.ts";
import { equalParts } from "../object/parts.ts";
import { errnoOf, fileFault } from "./dir_store_fault.ts";
import { infoOf, isAbsent, walkKeys } from "./dir_store_list.ts";
import { pathOf, TEMP_NAME } from "./dir_store_path.ts";
import { DirectorySync, syncDirectory } from "./dir_store_sync.ts";
import { TempFiles } from "./dir_store_temp.ts";

/** A delete may prune a directory between its creation and the link; more often is no accident. */
const NAMING_ATTEMPTS_MAX = 5;
const DELETES_AT_ONCE = 16;

export interface DirStoreOptions {
  readonly clock: Clock;
  /** False: the directory must be there. By default it is created. */
  readonly create?: boolean;
}

/** Opens a store, creating the directory if needed; FaultError("config") says in one line what is wrong. */
export async function openDirStore(
  path: string,
  { clock, create = true }: DirStoreOptions,
): Promise<ObjectStore> {
  const root = resolve(path);
  try {
    if (create) await createRoot(root);
    else if (!(await stat(root)).isDirectory()) throw new Error("it is not a directory");
    const directories = new DirectorySync(root);
    const temp = new TempFiles(join(root, TEMP_NAME), clock);
    await directories.ensure(join(root, TEMP_NAME));
    await temp.tryLink().catch((error: unknown) => {
      throw NO_LINK_ERRORS.has(errnoOf(error)) ? new Error(NO_LINKS, { cause: error }) : error;
    });
    await temp.sweep();
    return new DirStore(root, directories, temp);
  } catch (error) {
    const why = OPEN_ERRORS[errnoOf(error)] ?? messageOf(error);
    const message = `Cannot keep data in the directory ${root}: ${why}`;
    throw new FaultError("config", message, { retriable: false, cause: error });
  }
}

const NO_LINKS = "its file system has no hard links";
const NO_LINK_ERRORS: ReadonlySet<string> = new Set([
  "EPERM",
  "ENOTSUP",
  "EOPNOTSUPP",
  "ENOSYS",
  "EMLINK",
]);
const OPEN_ERRORS: Readonly<Record<string, string>> = {
  EEXIST: "it is not a directory",
  ENOTDIR: "it, or a part of its path, is not a directory",
  ENOENT: "it does not exist",
  EACCES: "no permission to write to it",
  EPERM: "no permission to write to it",
  EROFS: "the file system is read-only",
  ENOSPC: "no space left on the device",
};

/** Creates the root; its name and those of created ancestors are durable afterwards. */
async function createRoot(root: string): Promise<void> {
  const first = await mkdir(root, { recursive: true });
  if (!(await stat(root)).isDirectory()) throw new Error("it is not a directory");
  if (first === undefined) return;
  for (let at = root; at.length >= first.length; at = dirname(at)) await syncDirectory(dirname(at));
}

class DirStore implements ObjectStore {
  readonly #root: string;
  readonly #directories: DirectorySync;
  readonly #temp: TempFiles;
  readonly #deletes = new Semaphore(DELETES_AT_ONCE);

  constructor(root: string, directories: DirectorySync, temp: TempFiles) {
    this.#root = root;
    this.#directories = directories;
    this.#temp = temp;
  }

  put(
    key: string,
    body: Uint8Array,
    { ifAbsent = false, signal }: PutOptions = {},
  ): Promise<PutAnswer> {
    return this.#guard(`put ${key}`, async (path) => {
      throwIfAborted(key, signal);
      const temp = await this.#temp.write([body]);
      try {
        throwIfAborted(key, signal);
        const created = await this.#giveName(temp, path, ifAbsent);
        return { created, storeNowMs: this.#temp.storeNowMs() };
      } finally {
        await this.#temp.discard(temp);
      }
    }, key);
  }

  putParts(key: string, parts: AsyncIterable<Uint8Array>): Promise<void> {
    return this.#guard(`put ${key}`, async (path) => {
      const temp = await this.#temp.write(equalParts(parts));
      try {
        await this.#giveName(temp, path, false);
      } finally {
        await this.#temp.discard(temp);
      }
    }, key);
  }

  /** True when the file got the name, false when an object has it; either is durable then. */
  async #giveName(temp: string, path: string, ifAbsent: boolean): Promise<boolean> {
    const directory = dirname(path);
    for (let attempt = 1;; attempt++) {
      try {
        await this.#directories.ensure(directory);
        const created = await nameFile(temp, path, ifAbsent);
        // A delete may have pruned the directory, and another put created it anew without us.
        await this.#directories.ensure(directory);
        await this.#directories.sync(directory);
        return created;
      } catch (error) {
        if (errnoOf(error) !== "ENOENT" || attempt >= NAMING_ATTEMPTS_MAX) throw error;
        this.#directories.forget(directory);
      }
    }
  }

  get(key: string, { range, signal }: GetOptions = {}): Promise<GotObject | null> {
    return this.#guard(`get ${key}`, async (path) => {
      throwIfAborted(key, signal);
      const handle = await openIfThere(path);
      if (handle === null) return await this.#absent();
      try {
        const found = await handle.stat();
        if (!found.isFile()) return null;
        return {
          key,
          size: found.size,
          lastModifiedMs: Math.floor(found.mtimeMs),
          storeNowMs: this.#temp.storeNowMs(),
          bytes: await readRange(handle, clip(range, found.size)),
        };
      } finally {
        await handle.close();
      }
    }, key);
  }

  head(key: string): Promise<ObjectInfo | null> {
    return this.#guard(
      `head ${key}`,
      async () => await infoOf(this.#root, key) ?? await this.#absent(),
      key,
    );
  }

  async *list(prefix: string, { startAfter = "" }: ListOptions = {}): AsyncIterable<ObjectInfo> {
    try {
      await this.#absent();
      yield* walkKeys(this.#root, prefix, startAfter);
      // What was moved away on the way looked like the end.
      await this.#absent();
    } catch (error) {
      throw fileFault(error, `list ${prefix}`);
    }
  }

  async delete(keys: readonly string[]): Promise<DeleteAnswer> {
    const gone: string[] = [];
    const failed: string[] = [];
    await Promise.all(
      keys.map((key) =>
        this.#deletes.run(async () => void (await this.#remove(key) ? gone : failed).push(key))
      ),
    );
    await this.#pruneAll(new Set(gone.map((key) => dirname(join(this.#root, key)))));
    return { gone, failed };
  }

  async #remove(key: string): Promise<boolean> {
    try {
      await unlink(pathOf(this.#root, key));
      return true;
    } catch (error) {
      if (isFault(error)) return false;
      // Absent, or a directory of that name, which is no object; each host has its own error for that.
      return await this.head(key).then((found) => found === null, () => false);
    }
  }

  /**
   * What is absent from a directory that was emptied, moved or unmounted under our hands says nothing about the
   * store: it has lost the place for temporary files, too, which nobody else removes and writes do not make anew.
   */
  async #absent(): Promise<null> {
    try {
      await stat(join(this.#root, TEMP_NAME));
      return null;
    } catch (error) {
      if (!isAbsent(error)) throw error;
      throw new Error(`the directory ${this.#root} was emptied, moved or unmounted`, {
        cause: error,
      });
    }
  }

  /** Every data object has directories of its own; they must not outlive it. */
  async #pruneAll(directories: ReadonlySet<string>): Promise<void> {
    const left = new Set<string>();
    for (const directory of directories) left.add(await this.#directories.prune(directory));
    // An unlink that is not durable brings the object back after a power cut: waste, not a loss.
    await Promise.allSettled([...left].map((directory) => this.#directories.sync(directory)));
  }

  async close(): Promise<void> {}

  async #guard<T>(what: string, work: (path: string) => Promise<T>, key: string): Promise<T> {
    try {
      return await work(pathOf(this.#root, key));
    } catch (error) {
      throw fileFault(error, what);
    }
  }
}

function throwIfAborted(key: string, signal: AbortSignal | undefined): void {
  if (signal?.aborted !== true) return;
  throw new FaultError("aborted", `Request for ${key} aborted`, { retriable: true });
}

async function nameFile(temp: string, path: string, ifAbsent: boolean): Promise<boolean> {
  if (!ifAbsent) {
    await rename(temp, path);
    return true;
  }
  try {
    await link(temp, path);
    return true;
  } catch (error) {
    if (errnoOf(error) === "EEXIST") return false;
    throw error;
  }
}

async function openIfThere(path: string): Promise<FileHandle | null> {
  try {
    return await open(path, "r");
  } catch (error) {
    if (isAbsent(error)) return null;
    throw error;
  }
}

function clip(range: ByteRange | undefined, size: number): ByteRange {
  if (range === undefined) return { start: 0, end: size };
  const start = Math.min(range.start, size);
  return { start, end: Math.max(start, Math.min(range.end, size)) };
}

async function readRange(handle: FileHandle, { start, end }: ByteRange): Promise<Uint8Array> {
  const bytes = new Uint8Array(end - start);
  for (let at = 0; at < bytes.length;) {
    const { bytesRead } = await handle.read(bytes, at, bytes.length - at, start + at);
    // Objects never change once they have a name.
    if (bytesRead === 0) throw new Error(`file ended after ${at} of ${bytes.length} bytes`);
    at += bytesRead;
  }
  return bytes;
}
