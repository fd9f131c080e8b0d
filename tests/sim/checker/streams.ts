/**
 * I11 for streams: at rest a partition has those that it names, and of topic compaction only those that a segment
 * uses. What a crash leaves between making and naming a stream is empty, and goes with its topic.
 */
import type { StreamRow } from "../../../src/controller/image.ts";
import type { State } from "../../../src/controller/state.ts";
import type { World } from "../world.ts";
import type { WalWatch } from "./wal_watch.ts";

const CLEANED = /^(log|tim)(\.cleaned\.\d+)$/;

function isWritten({ start, end, objects }: StreamRow): boolean {
  return end > start || objects.length > 0;
}

export function checkStreams(world: World, { streams }: State, watch: WalWatch): void {
  const named = new Map<number, string>();
  for (const [meta, { streams: names, used }] of watch.named()) {
    const tag = streams.get(meta)?.tag;
    if (tag === undefined || tag === null) continue;
    named.set(meta, tag);
    for (const [name, id] of names) {
      const suffix = CLEANED.exec(name)?.[2];
      if (suffix !== undefined && !used.has(suffix)) {
        return world.violated(`I11: stream ${id} of ${tag} is left: no segment uses ${name}`);
      }
      named.set(id, tag);
    }
  }
  for (const row of streams.values()) {
    if (row.tag === null || named.get(row.streamId) === row.tag || !isWritten(row)) continue;
    world.violated(`I11: nothing of ${row.tag} names stream ${row.streamId}`);
  }
}
