/** What the gateway needs of the broker: plain calls with typed outcomes, no wire protocol. */
import type { MetricsFormat } from "../env/metrics.ts";
import type { ErrorName } from "../protocol/error_code.ts";
import type { ReadGateway } from "./read_port.ts";
import type { WriteGateway } from "./write_port.ts";
import type { StreamGateway } from "./mounts/durable_streams/port.ts";

/** A record to be written; `null` fields are filled in by the broker. */
export interface RecordInput {
  readonly key: Uint8Array | null;
  /** Null is a tombstone. */
  readonly value: Uint8Array | null;
  readonly headers: readonly RecordHeader[];
  readonly timestampMs: number | null;
  /** Null: by hash of the key as Kafka's clients do, or any partition without a key. */
  readonly partition: number | null;
}

export interface RecordHeader {
  readonly name: string;
  readonly value: Uint8Array | null;
}

export interface RecordOutput {
  readonly offset: number;
  readonly timestampMs: number;
  readonly key: Uint8Array | null;
  readonly value: Uint8Array | null;
  readonly headers: readonly RecordHeader[];
}

export interface Failure {
  readonly ok: false;
  readonly error: ErrorName;
  readonly message?: string;
}

export type Written =
  | {
    readonly ok: true;
    readonly partition: number;
    readonly offset: number;
    /** The timestamp that a read of this offset shows. */
    readonly timestampMs: number;
    /** It was stored by an earlier request. */
    readonly duplicate?: boolean;
  }
  | Failure;

/** The first record at or after a time, or the last so many offsets; without any, the end of the log. */
export type ReadStart =
  | number
  | "earliest"
  | "latest"
  | { readonly timestampMs: number }
  | { readonly tail: number };

export interface ReadQuery {
  readonly offset: ReadStart;
  readonly recordsMax: number;
  readonly bytesMax: number;
  /** The answer ends before a larger record. */
  readonly recordBytesMax: number;
  /** How long to wait at the end of the log for a first record. */
  readonly waitMs: number;
  /** `committed` ends before open transactions and leaves out what was aborted. */
  readonly isolation: "uncommitted" | "committed";
  readonly signal: AbortSignal;
  /** The topic of that name must be this one: names are used again. */
  readonly topicId?: string;
  /** Records for which it is false are passed over; only `next` tells of them. */
  readonly filter?: (record: RecordOutput) => boolean;
  /** `false` throws at once where memory would have to be waited for: for those who hold some already. */
  readonly mayWait?: boolean;
  /** Long-lived readers have a share of memory of their own. */
  readonly isLive?: boolean;
}

/** A record that is left out because of its size. */
export interface Oversized {
  readonly offset: number;
  readonly bytes: number;
}

export type ReadAnswer =
  | {
    readonly ok: true;
    readonly records: readonly RecordOutput[];
    /** Offset to ask for next; past offsets that compaction removed. */
    readonly next: number;
    /** The record at `next`, when it is above `recordBytesMax`. */
    readonly oversized: Oversized | null;
    readonly highWatermark: number;
    readonly logStart: number;
    readonly topicId: string;
    /** Below it a read finds the same for ever, or nothing; 0 where compaction removes records. */
    readonly fixedBelow: number;
    /** Gives back the memory that the records take; they are not looked at afterwards. Does it once. */
    readonly release: () => void;
  }
  | (Failure & {
    readonly logStart?: number;
    readonly highWatermark?: number;
    /** Offset behind records that cannot be read. */
    readonly next?: number;
  });

export interface TopicSummary {
  readonly name: string;
  readonly topicId: string;
  readonly partitions: number;
}

export interface TopicDetail extends TopicSummary {
  readonly leaders: readonly {
    readonly partition: number;
    readonly leader: number | null;
    readonly leaderEpoch: number;
  }[];
  readonly configs: Readonly<Record<string, string>>;
}

export interface TopicToCreate {
  readonly name: string;
  /** Null takes the broker's default. */
  readonly partitions: number | null;
  /** Names are whatever the client wrote, so they are no keys of an object. */
  readonly configs: readonly (readonly [name: string, value: string])[];
}

export interface Gateway extends ReadGateway, WriteGateway, StreamGateway {
  listTopics(): readonly TopicSummary[];
  describeTopic(name: string): Promise<TopicDetail | null>;
  createTopic(topic: TopicToCreate): Promise<({ readonly ok: true } & TopicSummary) | Failure>;
  deleteTopic(name: string): Promise<{ readonly ok: true } | Failure>;
}

/** What health and metrics routes show. */
export interface NodeStatus {
  /** Null when ready; otherwise why not, in one line. */
  notReady(): string | null;
  renderMetrics(format: MetricsFormat): string;
  readonly version: string;
  readonly clusterId: string;
  readonly nodeId: number;
}
