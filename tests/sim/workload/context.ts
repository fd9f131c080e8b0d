/** What every simulated client works with, and the errors that clients of Kafka shrug off. */
import type { Env } from "../../../src/env/env.ts";
import type { Random } from "../../../src/env/random.ts";
import { type ErrorName, errorName } from "../../../src/protocol/error_code.ts";
import { buildBatch } from "../../../src/protocol/record_batch.ts";
import type { History } from "../checker/history.ts";
import type { Cluster } from "../cluster.ts";
import { between, type World } from "../world.ts";

export interface SimTopic {
  readonly name: string;
  readonly topicId: string;
  readonly partitions: number;
  /** Retention may take away its oldest records. */
  readonly mayTrim: boolean;
  /** Somebody has asked for its deletion. */
  doomed: boolean;
}

export interface Context {
  readonly world: World;
  readonly cluster: Cluster;
  readonly history: History;
  readonly topics: SimTopic[];
  /** One that is never deleted: for clients that know topics by name. Set before they start. */
  steady: SimTopic;
  readonly codecs: Env["codecs"];
  /** Clients begin nothing new once this is set. */
  draining: boolean;
  /** Nothing is to be seen any more for a while: clients look in once a minute. */
  resting: boolean;
  /** Clients end at once. */
  over: boolean;
}

const DRAINING_MS = 2_000;
const RESTING_MS = 60_000;

/** Clients that have nothing left to do look less often. */
export function pauseOf(
  { draining, resting }: Context,
  random: Random,
  pauseMs: number,
): number {
  return between(random, 0, pauseMs * 2) + (resting ? RESTING_MS : draining ? DRAINING_MS : 0);
}

const LEADERSHIP: readonly ErrorName[] = [
  "NOT_LEADER_OR_FOLLOWER",
  "LEADER_NOT_AVAILABLE",
  "NOT_ENOUGH_REPLICAS",
  "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
  "REQUEST_TIMED_OUT",
  "KAFKA_STORAGE_ERROR",
  "COORDINATOR_NOT_AVAILABLE",
  "COORDINATOR_LOAD_IN_PROGRESS",
  "NOT_COORDINATOR",
  "NETWORK_EXCEPTION",
];
const UNKNOWN: readonly ErrorName[] = ["UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID"];

export function isTransient(name: ErrorName): boolean {
  return LEADERSHIP.includes(name);
}

export function isUnknownTopic(name: ErrorName): boolean {
  return UNKNOWN.includes(name);
}

/** An error that no fault explains. `by` may be a process that was replaced: it knows less, but nothing else. */
export function unexpected(context: Context, who: string, code: number): void {
  context.world.violated(`${who} is answered ${errorName(code)}`);
}

export interface Sequence {
  readonly producerId: number;
  readonly producerEpoch: number;
  readonly baseSequence: number;
}

export function batchOf(
  { codecs, world }: Context,
  values: readonly string[],
  over: {
    readonly padBytes?: number;
    readonly codec?: "gzip" | "lz4" | "snappy" | null;
    readonly sequence?: Sequence;
  } = {},
): Uint8Array {
  const { padBytes = 0, codec = null, sequence = {} } = over;
  const encoder = new TextEncoder();
  return buildBatch({
    records: values.map((value) => ({
      key: encoder.encode("x".repeat(padBytes)),
      value: encoder.encode(value),
      headers: [],
      timestampMs: world.wallMs,
    })),
    codec,
    codecs,
    ...sequence,
  });
}
