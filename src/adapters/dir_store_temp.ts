/** Files that are being written. They get a key by link or rename; what a crash leaves is swept at the next open. */
import { randomBytes } from "node:crypto";
import type { FileHandle } from "node:fs/promises";
import { link, open, readdir, stat, unlink } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "../env/clock.ts";
import { toHex } from "../lib/bytes.ts";

/** An older file belongs to a dead process: a live one's was written to a moment ago. */
const LEFTOVER_AGE_MS = 60_000;

type Parts = Iterable<Uint8Array> | AsyncIterable<Uint8Array>;

export class TempFiles {
  readonly #directory: string;
  readonly #clock: Clock;
  /** Several processes may share the directory, also from containers where pids repeat. */
  readonly #owner = toHex(randomBytes(8));
  #count = 0;
  #skewMs = 0;

  constructor(directory: string, clock: Clock) {
    this.#directory = directory;
    this.#clock = clock;
  }

  /** The file system's clock, as last seen in a file that we wrote: on a network mount it is not ours. */
  storeNowMs(): number {
    return Math.floor(this.#clock.nowMs() + this.#skewMs);
  }

  #path(): string {
    this.#count++;
    return join(this.#directory, `${this.#owner}-${this.#count}`);
  }

  /** Writes and syncs a new file; leaves nothing behind when it fails. */
  async write(parts: Parts): Promise<string> {
    const path = this.#path();
    const handle = await open(path, "wx");
    try {
      for await (const part of parts) await writeAll(handle, part);
      await handle.sync();
      this.#skewMs = (await handle.stat()).mtimeMs - this.#clock.nowMs();
    } catch (error) {
      await handle.close().catch(() => undefined);
      await this.discard(path);
      throw error;
    }
    await handle.close();
    return path;
  }

  /** What cannot be removed now goes with the next sweep. */
  async discard(path: string): Promise<void> {
    await unlink(path).catch(() => undefined);
  }

  async sweep(): Promise<void> {
    for (const name of await readdir(this.#directory)) {
      const path = join(this.#directory, name);
      const found = await stat(path).catch(() => null);
      const isLeftover = found !== null && found.mtimeMs < this.storeNowMs() - LEFTOVER_AGE_MS;
      if (isLeftover) await this.discard(path);
    }
  }

  /** Rejects with the error of link(2) when the file system has no hard links. */
  async tryLink(): Promise<void> {
    const first = await this.write([Uint8Array.of(1)]);
    const second = this.#path();
    try {
      await link(first, second);
    } finally {
      await this.discard(first);
      await this.discard(second);
    }
  }
}

/** A write may be short, for one when the disk fills up. */
async function writeAll(handle: FileHandle, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) {
    at += (await handle.write(bytes, at, bytes.length - at)).bytesWritten;
  }
}
