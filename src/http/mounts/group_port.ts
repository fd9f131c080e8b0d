/** What the compatibility mounts need of consumer groups: members, committed offsets, what tools show. */
import type { ErrorName } from "../../protocol/error_code.ts";
import type { Failure } from "../port.ts";

export interface Place {
  readonly topic: string;
  readonly topicId: string;
  readonly partition: number;
}

/** A member of a group of the consumer protocol (KIP-848) at work. */
export interface Beat {
  readonly group: string;
  readonly memberId: string;
  /** 0 joins, or joins again. */
  readonly epoch: number;
  readonly subscription: Subscription;
  /** What it still reads: the rest it has let go of. */
  readonly owned: readonly Place[];
}

export type Subscription =
  | { readonly topics: readonly string[] }
  | { readonly pattern: string };

export interface Beaten {
  readonly ok: true;
  readonly epoch: number;
  /** Null: as before. */
  readonly assigned: readonly Place[] | null;
}

/** Who commits: a member of the group, or somebody who is none. */
export interface Committer {
  readonly group: string;
  readonly member: { readonly id: string; readonly epoch: number } | null;
}

export interface OffsetAt {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  readonly metadata: string;
}

export interface TopicPartition {
  readonly topic: string;
  readonly partition: number;
}

export interface GroupMember {
  readonly memberId: string;
  readonly instanceId: string | null;
  readonly clientId: string;
  readonly assigned: readonly TopicPartition[];
}

export interface GroupShown {
  readonly ok: true;
  readonly group: string;
  readonly type: "classic" | "consumer";
  /** As Kafka's tools write it. */
  readonly state: string;
  readonly assignor: string;
  readonly members: readonly GroupMember[];
}

export interface GroupGateway {
  /** What is answered is durable; a beat that changes nothing writes nothing. */
  beat(beat: Beat): Promise<Beaten | Failure>;
  leave(group: string, memberId: string): Promise<{ readonly ok: true } | Failure>;
  /** An outcome for each offset; those that change nothing are not written. */
  commit(by: Committer, offsets: readonly OffsetAt[]): Promise<readonly ErrorName[]>;
  /** Null for none; all that the group has without `of`. */
  committed(
    group: string,
    of: readonly TopicPartition[] | null,
  ): Promise<{ readonly ok: true; readonly offsets: readonly OffsetAt[] } | Failure>;
  groups(): Promise<{ readonly ok: true; readonly names: readonly string[] } | Failure>;
  describeGroup(group: string): Promise<GroupShown | Failure>;
}

/** Texts that outlive the node, few and small, each changed as a whole. */
export interface InstanceStore {
  readonly nodeId: number;
  get(key: string): string | null;
  keys(): readonly string[];
  /** False when there is one already. Throws ProblemError when it cannot be stored now. */
  add(key: string, value: string): Promise<boolean>;
  /** Null deletes. Throws ProblemError when it cannot be stored now. */
  put(key: string, value: string | null): Promise<void>;
  /** Whether such a node may still be at work. */
  isAlive(nodeId: number): boolean;
}
