/** Whole batches of one partition for HTTP, as they are stored: views of the log's memory under a lease. */
import type { Env } from "../env/env.ts";
import type { LogRead } from "../log/partition_log.ts";
import { AbortedFilter } from "../log/aborted_filter.ts";
import type { Located } from "../broker/partitions.ts";
import type { BatchesQuery } from "../http/read_port.ts";
import {
  damaged,
  endOf,
  headerOf,
  type Page,
  readPage,
  type Refused,
  type Services,
  type Taken,
} from "./http_read.ts";

/**
 * Readers check the checksums themselves. With `committed` the batches of aborted transactions and the markers
 * are left out, so that nobody needs the list of them.
 */
function takeBatches(
  read: LogRead,
  start: number,
  { isolation }: BatchesQuery,
): Taken<Uint8Array> | Refused {
  const filter = new AbortedFilter(read.aborted);
  const found: Uint8Array[] = [];
  let next = start;
  let heldBytes = 0;
  for (const batch of read.batches) {
    const header = headerOf(batch, next, read.highWatermark);
    if (header === null) {
      if (next > start) break;
      return damaged(start, null);
    }
    next = endOf(header);
    if (isolation === "committed" && filter.hides(header, batch)) continue;
    found.push(batch);
    heldBytes += batch.length;
  }
  return { ok: true, found, next, oversized: null, heldBytes, viewsLog: true };
}

export async function readBatchesFrom(
  locate: () => Promise<Located>,
  query: BatchesQuery,
  services: Services,
): Promise<Page<Uint8Array> | Refused> {
  const take = (read: LogRead, start: number, _env: Env) => takeBatches(read, start, query);
  return await readPage(locate, query, services, take);
}
