/** What writing over HTTP needs of the broker. */
import type { Failure, RecordInput, Written } from "./port.ts";

/** As a Kafka producer without transactions numbers its records, in one partition. */
export interface ProducerStamp {
  readonly producerId: number;
  readonly producerEpoch: number;
  /** Of the first record. */
  readonly sequence: number;
}

/** At most one of them orders or recognises a request; a condition may stand beside a key. */
export interface ProduceOptions {
  /** The same key with the same records is stored once. */
  readonly idempotencyKey?: string;
  readonly producer?: ProducerStamp;
  /** Appends only where the log ends: all records are then for one partition. */
  readonly nextOffset?: number;
  /** The topic is not created. */
  readonly mustExist?: boolean;
  /** Called once all that is going to be appended has its place. */
  readonly onAdmitted?: () => void;
}

export interface BatchWritten {
  readonly ok: true;
  readonly partition: number;
  readonly baseOffset: number;
  readonly lastOffset: number;
  /** The largest one of its records. */
  readonly timestampMs: number;
  readonly duplicate: boolean;
}

export interface NewProducer {
  readonly ok: true;
  readonly producerId: number;
  readonly producerEpoch: number;
}

export interface WriteGateway {
  /**
   * `results[i]` answers `records[i]`; each resolves only once the record is durable. The caller holds
   * the node's produce permits. Throws ProblemError where the request as a whole is refused.
   */
  produce(
    topic: string,
    records: readonly RecordInput[],
    options?: ProduceOptions,
  ): Promise<readonly Written[]>;
  /** One record batch v2 as Kafka's Produce carries it; its memory may be written to. */
  produceBatch(
    topic: string,
    partition: number,
    batch: Uint8Array,
    options?: ProduceOptions,
  ): Promise<BatchWritten | Failure>;
  createProducer(): Promise<NewProducer | Failure>;
}
