/** Records of one group into its shard's log. If the log takes them and then loses them, the shard ends. */
import type { Env } from "../../env/env.ts";
import type { PartitionLog } from "../../log/partition_log.ts";
import { appendRecords, type KeyValue } from "../shard/shard_log.ts";
import type { GroupEntry } from "./group_entry.ts";

export interface EntryLogPort {
  readonly env: Env;
  readonly log: PartitionLog;
  /** Ends the shard: only a reload can tell what is true. */
  close(): void;
}

/** Appends in this very stretch; throws FaultError when the log takes nothing. What memory says from here on. */
export function appendTo(
  port: EntryLogPort,
  entry: GroupEntry,
  records: readonly KeyValue[],
): Promise<void> {
  const { env, log } = port;
  const before = log.logEndOffset;
  try {
    const { durable } = appendRecords(env, log, records);
    entry.writes += 1;
    return settle(port, entry, durable);
  } catch (error) {
    // A part of it is in the log.
    if (log.logEndOffset !== before) port.close();
    throw error;
  }
}

async function settle(
  port: EntryLogPort,
  entry: GroupEntry,
  durable: Promise<unknown>,
): Promise<void> {
  try {
    await durable;
  } catch (error) {
    port.close();
    throw error;
  } finally {
    entry.writes -= 1;
  }
}
