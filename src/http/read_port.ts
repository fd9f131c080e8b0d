/** What reading over HTTP needs of the broker. */
import type { Failure, ReadAnswer, ReadQuery, TopicSummary } from "./port.ts";

export type Isolation = ReadQuery["isolation"];

export interface Bounds {
  readonly ok: true;
  readonly earliest: number;
  /** Behind the last record that a read shows. */
  readonly latest: number;
  /** Not below `latest`: what is not committed counts as well. */
  readonly highWatermark: number;
}

export type BatchesQuery = Omit<ReadQuery, "recordsMax" | "recordBytesMax" | "filter">;

export type BatchesAnswer =
  | {
    readonly ok: true;
    /** As they are stored; views of memory that is used again after `release`. */
    readonly batches: readonly Uint8Array[];
    readonly next: number;
    readonly highWatermark: number;
    readonly logStart: number;
    readonly topicId: string;
    readonly fixedBelow: number;
    readonly release: () => void;
  }
  | Exclude<ReadAnswer, { ok: true }>;

export interface ReadGateway {
  /** The caller releases what it got. Throws ProblemError when there is no memory for it. */
  read(topic: string, partition: number, query: ReadQuery): Promise<ReadAnswer>;
  /** The same as whole batches; the first one may begin before the offset. */
  readBatches(topic: string, partition: number, query: BatchesQuery): Promise<BatchesAnswer>;
  findTopic(name: string): TopicSummary | null;
  bounds(topicId: string, partition: number, isolation: Isolation): Promise<Bounds | Failure>;
  /** Where reads find nothing more for now; null when that is not known without waiting. */
  peekEnd(topicId: string, partition: number, isolation: Isolation): number | null;
  /**
   * Calls `wake` whenever one of these partitions (null: any) has moved or closed, or the topic has changed,
   * until the returned function is called. Sees only partitions whose end can be peeked.
   */
  watch(topicId: string, partitions: readonly number[] | null, wake: () => void): () => void;
}
