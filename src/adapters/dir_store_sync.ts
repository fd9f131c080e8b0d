/**
 * Makes names durable. A file's name survives a power cut only after its directory was synced, and
 * the directory's own name only after its parent was. Syncs of one directory are grouped: those
 * that ask while one runs share the next, because the running one may have started too early.
 */
import { mkdir, open, rmdir } from "node:fs/promises";
import { dirname } from "node:path";
import { platform } from "node:process";
import { Lru } from "../lib/lru.ts";
import { errnoOf } from "./dir_store_fault.ts";

/** Directories known to be durable; forgetting one costs an extra sync. */
const KNOWN_DIRECTORIES_MAX = 4_096;

export async function syncDirectory(path: string): Promise<void> {
  // Windows cannot open a directory for syncing; NTFS journals names by itself.
  if (platform === "win32") return;
  const handle = await open(path, "r");
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

interface Sync {
  readonly running: Promise<void>;
  next: Promise<void> | null;
}

export class DirectorySync {
  readonly #root: string;
  readonly #syncs = new Map<string, Sync>();
  readonly #known = new Lru<string, true>(KNOWN_DIRECTORIES_MAX, () => 1);

  constructor(root: string) {
    this.#root = root;
  }

  /** Resolves once every name that was in the directory at the call is durable. */
  sync(path: string): Promise<void> {
    const busy = this.#syncs.get(path);
    if (busy === undefined) return this.#start(path);
    busy.next ??= busy.running.then(() => this.#start(path), () => this.#start(path));
    return busy.next;
  }

  #start(path: string): Promise<void> {
    const running = syncDirectory(path).finally(() => {
      // A waiting caller has already replaced this entry, or replaces it in its own turn.
      if (this.#syncs.get(path)?.running === running) this.#syncs.delete(path);
    });
    this.#syncs.set(path, { running, next: null });
    return running;
  }

  isKnown(path: string): boolean {
    return path === this.#root || this.#known.get(path) === true;
  }

  /** Creates the directory and its ancestors below the root, durably. */
  async ensure(path: string): Promise<void> {
    if (this.isKnown(path)) return;
    const parent = dirname(path);
    await this.ensure(parent);
    await mkdir(path).catch((error: unknown) => {
      if (errnoOf(error) !== "EEXIST") throw error;
    });
    // Also when it existed: whoever made it may not have come to this line.
    await this.sync(parent);
    this.#known.set(path, true);
  }

  /** Forgets what was known of a directory and of its ancestors. */
  forget(path: string): void {
    for (let at = path; at.length > this.#root.length; at = dirname(at)) this.#known.delete(at);
  }

  /** Removes the directory and its ancestors as far as they are empty; answers the first that stays. */
  async prune(path: string): Promise<string> {
    let at = path;
    for (; at.length > this.#root.length; at = dirname(at)) {
      this.#known.delete(at);
      try {
        await rmdir(at);
      } catch (error) {
        if (errnoOf(error) !== "ENOENT") break;
      }
    }
    return at;
  }
}
