/** What groups over HTTP need of the broker: leases, and what tools show of groups of any kind. */
import type { GroupLeases } from "../../broker/group/lease/group_leases.ts";
import type { LeasedPartition } from "../../broker/group/lease/leases.ts";
import type { Failure } from "../port.ts";
import type { PollWaits } from "./poll_waits.ts";

export interface GroupRow {
  readonly group: string;
  /** `classic` where nobody ever joined it, as groups over HTTP. */
  readonly type: string;
  /** As Kafka's tools write it. */
  readonly state: string;
  readonly protocolType: string;
}

export interface MemberRow {
  readonly member: string;
  readonly instance: string | null;
  readonly client: string;
  readonly host: string;
}

export interface OffsetRow extends LeasedPartition {
  readonly offset: number;
  readonly metadata: string;
  readonly committedAtMs: number;
}

export interface GroupShown extends GroupRow {
  readonly ok: true;
  readonly members: readonly MemberRow[];
  /** Of topics that are there. */
  readonly offsets: readonly OffsetRow[];
  /** Partitions with something under way. */
  readonly leased: readonly LeasedPartition[];
}

export interface LeaseGateway {
  readonly polls: PollWaits;
  /** The group on this node, whether it is there yet or not. */
  open(group: string): Promise<{ readonly ok: true; readonly leases: GroupLeases } | Failure>;
  list(): Promise<{ readonly ok: true; readonly groups: readonly GroupRow[] } | Failure>;
  describe(group: string): Promise<GroupShown | Failure>;
  delete(group: string): Promise<{ readonly ok: true } | Failure>;
}
