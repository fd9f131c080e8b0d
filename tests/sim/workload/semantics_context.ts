/** What clients of transactional and compacted topics share. */
import type { CompactedLedger } from "../checker/compacted.ts";
import type { PartitionHistory } from "../checker/history.ts";
import type { TransactionLedger } from "../checker/transactions.ts";
import type { Context } from "./context.ts";

export interface SemanticTopic {
  readonly name: string;
  readonly topicId: string;
  readonly partitions: number;
  readonly isCompacted: boolean;
}

export interface Place {
  readonly topic: SemanticTopic;
  readonly partition: number;
}

export interface Semantics {
  readonly context: Context;
  readonly transactions: TransactionLedger;
  readonly compacted: CompactedLedger;
  /** All partitions of such topics. */
  readonly places: readonly Place[];
  /** Told when the end of a transaction is about to be asked for. */
  readonly onEnding: () => void;
}

export function historyOf({ history }: Context, { topic, partition }: Place): PartitionHistory {
  return history.of(topic.topicId, partition);
}
