/** Share states in memory, which fail or wait as a test wants, and a book of what groups said of their members. */
import type { ErrorName } from "../../src/protocol/error_code.ts";
import type {
  ShareListener,
  SharePartitionKey,
  ShareStates,
  ShareStateSummary,
} from "../../src/broker/share/share_states.ts";

export function nameOfShare({ groupId, topicId, partition }: SharePartitionKey): string {
  return `${groupId}:${topicId}:${partition}`;
}

export class MemoryShareGroups implements ShareStates, ShareListener {
  readonly states = new Map<string, ShareStateSummary>();
  /** What comes next, in order, instead of success. */
  readonly errors: ErrorName[] = [];
  /** Everything waits for it. */
  gate: Promise<void> = Promise.resolve();
  readonly told: string[] = [];

  async initialize(
    key: SharePartitionKey,
    stateEpoch: number,
    startOffset: number,
  ): Promise<ErrorName | null> {
    await this.gate;
    const error = this.errors.shift();
    if (error !== undefined) return error;
    const known = this.states.get(nameOfShare(key));
    if (known !== undefined && known.stateEpoch > stateEpoch) return "FENCED_STATE_EPOCH";
    this.states.set(nameOfShare(key), {
      stateEpoch,
      leaderEpoch: 0,
      startOffset,
      deliveryCompleteCount: startOffset < 0 ? -1 : 0,
    });
    return null;
  }

  async summary(key: SharePartitionKey): Promise<ShareStateSummary | ErrorName | null> {
    await this.gate;
    return this.errors.shift() ?? this.states.get(nameOfShare(key)) ?? null;
  }

  async remove(key: SharePartitionKey): Promise<ErrorName | null> {
    await this.gate;
    const error = this.errors.shift();
    if (error !== undefined) return error;
    this.states.delete(nameOfShare(key));
    return null;
  }

  memberLeft(groupId: string, memberId: string): void {
    this.told.push(`${memberId} left ${groupId}`);
  }

  groupEmptied(groupId: string): void {
    this.told.push(`${groupId} is empty`);
  }
}
