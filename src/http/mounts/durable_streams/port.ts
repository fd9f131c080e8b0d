/** What durable streams need of the broker beside reading: their settings, their ends, and appends in steps. */
import type { NamedWriter } from "../../../log/writer_step.ts";
import type { Failure, ReadAnswer, ReadQuery, TopicSummary } from "../../port.ts";

/** A topic as streams see it, one for each partition. */
export interface StreamTopic extends TopicSummary {
  readonly contentType: string;
  /** From its last use; null for ever. */
  readonly ttlSeconds: number | null;
  readonly expiresMs: number | null;
  /** It is there for its forks only. */
  readonly isDeleted: boolean;
  readonly fork: Fork | null;
}

export interface Fork {
  readonly source: StreamPlace;
  /** Where it leaves its source: its own records begin at this offset. */
  readonly start: number;
  /** How much of a message it was asked to take. */
  readonly part: number;
  /** Whose offsets are its own up to where. */
  readonly inherited: readonly { readonly topicId: string; readonly to: number }[];
}

/** Only what is durable. */
export interface StreamTail {
  readonly ok: true;
  readonly earliest: number;
  /** Behind the last record that a read shows. */
  readonly next: number;
  /** Nothing comes behind this offset; null while the stream is open. */
  readonly closedAt: number | null;
}

export interface StreamPlace {
  readonly topicId: string;
  readonly partition: number;
}

/** One request to append, to close, or both. */
export interface StepAsk {
  /** Values of records; none only closes. */
  readonly values: readonly Uint8Array[];
  readonly closes: boolean;
  /** Stream-Seq: has to rise. */
  readonly order: string | null;
  readonly writer: NamedWriter | null;
  /** Of a stream that is being created: does nothing where something is in it already. */
  readonly isFirst: boolean;
}

export type StepRefusal =
  | { readonly reason: "closed"; readonly next: number }
  | { readonly reason: "order"; readonly last: string }
  | { readonly reason: "stale-epoch"; readonly epoch: number }
  | { readonly reason: "epoch-start" }
  | { readonly reason: "gap"; readonly expected: number; readonly received: number };

export type Stepped =
  | {
    readonly ok: true;
    /** False for what was in already. */
    readonly isNew: boolean;
    readonly next: number;
    readonly isClosed: boolean;
    /** How far the writer is. */
    readonly writer: NamedWriter | null;
  }
  | { readonly ok: false; readonly refusal: StepRefusal };

export interface StreamGateway {
  /** Null too for one whose time is over. */
  findStream(name: string): StreamTopic | null;
  /** It is used: its time to live begins anew. */
  touchStream(topicId: string): void;
  /** With one partition; one of that name whose time is over goes first. */
  createStream(
    name: string,
    configs: readonly (readonly [name: string, value: string])[],
  ): Promise<{ readonly ok: true } | Failure>;
  /** Null where the topic is gone. */
  streamById(topicId: string): StreamTopic | null;
  /** Hides one that has forks; the topic goes with the last of them. */
  removeStream(topicId: string): Promise<{ readonly ok: true } | Failure>;
  /** As `read`, in the offsets of the stream: what a fork inherited is part of it. */
  readStream(place: StreamPlace, query: ReadQuery): Promise<ReadAnswer>;
  streamTail(place: StreamPlace): Promise<StreamTail | Failure>;
  /** Null where it is not known without waiting. */
  peekTail(place: StreamPlace): StreamTail | null;
  /** Resolves once the outcome is durable. The caller holds the node's produce permits. */
  step(place: StreamPlace, ask: StepAsk): Promise<Stepped | Failure>;
}
