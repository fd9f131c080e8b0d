/** Share groups in their shard: read from its log, begun with their first member, and ended. */
import { decodeShareGroupKey } from "../../../protocol/message/share_group_records.ts";
import { appendTo, type EntryLogPort } from "../entry_log.ts";
import type { GroupHost } from "../group.ts";
import type { GroupEntry } from "../group_entry.ts";
import { emptyShareGroup, type ShareGroup } from "./group.ts";
import { LiveShareGroup, type ShareHost, type SharePort } from "./live.ts";
import { applyShareRecord, emptyShareDraft, isStored, type ShareDraft } from "./records.ts";

export interface ShareSidePort extends EntryLogPort {
  readonly host: GroupHost;
  readonly shares: ShareHost;
  find(groupId: string): GroupEntry | undefined;
  findOrCreate(groupId: string): GroupEntry;
  reschedule(entry: GroupEntry): void;
}

export class ShareSide {
  readonly #shard: ShareSidePort;
  /** Groups while the log is read. */
  readonly #drafts = new Map<string, ShareDraft>();

  constructor(shard: ShareSidePort) {
    this.#shard = shard;
  }

  get settings(): ShareHost {
    return this.#shard.shares;
  }

  /** A record of the shard's log; false when it is of another kind. Throws DecodeError. */
  replay(key: Uint8Array, value: Uint8Array | null): boolean {
    const of = decodeShareGroupKey(key);
    if (of === null) return false;
    const { groupId } = of;
    if (of.kind === "group" && value === null) {
      this.#drafts.delete(groupId);
      return true;
    }
    const known = this.#drafts.get(groupId);
    // A tombstone for what was never there begins nothing.
    if (known === undefined && value === null) return true;
    const draft = known ?? emptyShareDraft(groupId);
    this.#drafts.set(groupId, draft);
    applyShareRecord(draft, of, value);
    return true;
  }

  loaded(): void {
    for (const [groupId, draft] of this.#drafts) {
      if (isStored(draft)) this.#begin(this.#shard.findOrCreate(groupId), draft, draft);
    }
    this.#drafts.clear();
  }

  #begin(entry: GroupEntry, group: ShareGroup, written: ShareGroup): LiveShareGroup {
    const { host, shares } = this.#shard;
    const { groupId } = group;
    const port: SharePort = {
      monotonicMs: () => host.monotonicMs(),
      hasRoom: (bytes) => host.hasRoom(bytes),
      write: (records) => appendTo(this.#shard, entry, records),
      changed: () => this.#shard.reschedule(entry),
      isAlive: () => this.#shard.find(groupId) === entry && entry.share === live,
    };
    const live: LiveShareGroup = new LiveShareGroup(shares, port, group, written);
    entry.share = live;
    return live;
  }

  /**
   * The share group of a name; null when the name is another group's, or nobody's and none may be made: groups do
   * not turn into share groups, as in Kafka. Call `reschedule` after what is done with it.
   */
  of(groupId: string, canCreate: boolean): LiveShareGroup | null {
    const known = this.#shard.find(groupId);
    if (known !== undefined) return known.share;
    if (!canCreate) return null;
    const empty = emptyShareGroup(groupId);
    return this.#begin(this.#shard.findOrCreate(groupId), empty, empty);
  }

  /** Drops what was begun and never written. Called after every change of a group. */
  review(entry: GroupEntry): void {
    if (entry.share?.isUnwritten === true) entry.share = null;
  }
}
