/**
 * How far share groups have come in the partitions that they read (KIP-932), as the group coordinator sees it:
 * it begins, restarts and ends such states; fetches and acknowledgements move them on.
 */
import type { ErrorName } from "../../protocol/error_code.ts";

/** A partition of a topic as one share group sees it. */
export interface SharePartitionKey {
  readonly groupId: string;
  readonly topicId: string;
  readonly partition: number;
}

export interface ShareStateSummary {
  readonly stateEpoch: number;
  readonly leaderEpoch: number;
  /** -1 while its first reader has not chosen one. */
  readonly startOffset: number;
  readonly deliveryCompleteCount: number;
}

export interface ShareStates {
  /**
   * Makes the state of a partition, or starts it anew. An epoch below the stored one is FENCED_STATE_EPOCH.
   * Resolves once it is durable.
   */
  initialize(
    key: SharePartitionKey,
    stateEpoch: number,
    startOffset: number,
  ): Promise<ErrorName | null>;
  /** Null: there is none. */
  summary(key: SharePartitionKey): Promise<ShareStateSummary | ErrorName | null>;
  remove(key: SharePartitionKey): Promise<ErrorName | null>;
}

/** What fetches hear of the groups that they serve. Called in the stretch of the change; must not throw. */
export interface ShareListener {
  /** It left or was fenced: its records are free again. */
  memberLeft(groupId: string, memberId: string): void;
  groupEmptied(groupId: string): void;
}
