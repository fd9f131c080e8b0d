/** What a group is in its shard's log, without its offsets and leases: the records of its kind, and what ends them. */
import { recordsOf, tombstonesOf } from "./consumer/records.ts";
import type { KeyValue } from "../shard/shard_log.ts";
import { type GroupEntry, liveOf } from "./group_entry.ts";
import { groupTombstone } from "./records.ts";
import { shareRecordsOf, shareTombstonesOf } from "./share/records.ts";

/** What a reload would find. */
export function groupRecords({ consumer, share, record }: GroupEntry): KeyValue[] {
  if (share !== null) return shareRecordsOf(share.group);
  if (consumer !== null) return recordsOf(consumer.group);
  return record === null ? [] : [record];
}

/** Of all that may stand in the log. */
export function groupTombstones(entry: GroupEntry): KeyValue[] {
  const { consumer, share, record, group: { groupId } } = entry;
  const isClassic = liveOf(entry) === null || record !== null;
  return [
    ...(isClassic ? [groupTombstone(groupId)] : []),
    ...(consumer === null ? [] : tombstonesOf(consumer.group)),
    ...(share === null ? [] : shareTombstonesOf(share.group)),
  ];
}
