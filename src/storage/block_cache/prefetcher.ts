/** Reads ahead of sequential readers, in the background. Its failures are nobody's: the read will see them. */
import type { Env } from "../../env/env.ts";
import type { Offset } from "../../lib/brand.ts";
import { messageOf } from "../../lib/errors.ts";
import { READ_AHEADS_IN_FLIGHT_MAX } from "../../lib/limits.ts";
import type { BlockFinder } from "./block_finder.ts";
import type { DataBlockCache } from "./data_block_cache.ts";
import type { Window } from "./read_ahead.ts";
import type { StreamReader } from "./stream_readers.ts";

export class Prefetcher {
  readonly #env: Env;
  readonly #finder: BlockFinder;
  readonly #blocks: DataBlockCache;
  #running = 0;
  #isClosed = false;

  constructor(env: Env, finder: BlockFinder, blocks: DataBlockCache) {
    this.#env = env;
    this.#finder = finder;
    this.#blocks = blocks;
  }

  /** The reader has come to `at`; nothing is in objects from `end` on. Returns at once. */
  follow(reader: StreamReader, at: Offset, end: Offset): void {
    if (this.#isClosed || this.#running >= READ_AHEADS_IN_FLIGHT_MAX) return;
    const nowMs = this.#env.clock.monotonicMs();
    const window = reader.ahead.begin(at, nowMs, this.#blocks.roomAhead);
    if (window === null) return;
    this.#running += 1;
    void this.#read(reader, window, end)
      .catch((error: unknown) => {
        const { stream } = reader;
        this.#env.log.log("debug", "read-ahead-failed", { stream, error: messageOf(error) });
        return window.from;
      })
      .then((next) => {
        this.#running -= 1;
        reader.ahead.end(next);
      });
  }

  /** Returns how far it came. */
  async #read({ stream, ahead }: StreamReader, window: Window, end: Offset): Promise<Offset> {
    const onDropped = () => ahead.reset(this.#env.clock.monotonicMs());
    const loads: Promise<void>[] = [];
    let { from: next, bytes } = window;
    while (next < end && bytes > 0 && !this.#isClosed) {
      const found = await this.#finder.find(stream, next, end, bytes);
      if (found === null) break;
      for (const entry of found.entries) {
        bytes -= entry.size;
        next = entry.end;
      }
      const load = this.#blocks.readAhead(found.objectId, found.entries, onDropped);
      // Awaited below; until then a failure must not be nobody's.
      load.catch(() => {});
      loads.push(load);
    }
    this.#env.metrics.count("skerry_read_ahead_bytes_total", {}, Math.max(0, window.bytes - bytes));
    await Promise.all(loads);
    return next;
  }

  close(): void {
    this.#isClosed = true;
  }
}
