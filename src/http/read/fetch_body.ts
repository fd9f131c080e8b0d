/** Bodies of fetch requests, ours and WarpStream's, as targets. */
import * as v from "valibot";
import {
  HTTP_FETCH_PARTITIONS_MAX,
  HTTP_READ_BYTES_MAX,
  HTTP_READ_RECORDS_MAX,
  HTTP_WAIT_MS_MAX,
} from "../../lib/limits.ts";
import { described, integer, partition } from "../api/fields.ts";
import type { ReadStart } from "../port.ts";
import { badRequest } from "../problem.ts";
import type { Encoding } from "../record_json.ts";
import type { Isolation } from "../read_port.ts";
import {
  BYTES_DEFAULT,
  encodingField,
  idField,
  isolationField,
  isolationNamed,
  pageLimits,
  startFields,
} from "./parameters.ts";

const bytes = described(
  integer(1, HTTP_READ_BYTES_MAX),
  "bytes of record batches; one batch always comes",
);

export const nativeBody = v.strictObject({
  topics: v.array(v.strictObject({
    topic: v.string(),
    ...idField,
    partitions: v.array(v.strictObject({
      partition,
      offset: v.optional(startFields.offset.wrapped, "earliest"),
      maxBytes: v.optional(bytes, BYTES_DEFAULT),
    })),
  })),
  ...pageLimits,
  encoding: encodingField,
});

/** Larger wishes than ours are cut down instead of refused: its clients send Kafka's defaults. */
function atMost(max: number) {
  return v.pipe(integer(0), v.transform((value) => Math.min(value, max)));
}

export const warpBody = v.strictObject({
  topics: v.array(v.strictObject({
    topic: v.string(),
    partitions: v.array(v.strictObject({
      partition,
      fetch_offset: integer(0),
      partition_max_bytes: v.optional(atMost(HTTP_READ_BYTES_MAX), BYTES_DEFAULT),
    })),
  })),
  max_bytes: v.optional(atMost(HTTP_READ_BYTES_MAX), BYTES_DEFAULT),
  min_bytes: v.optional(atMost(HTTP_READ_BYTES_MAX), 1),
  max_wait_ms: v.optional(atMost(HTTP_WAIT_MS_MAX), 0),
  isolation_level: isolationField,
});

export interface FetchPartition {
  readonly partition: number;
  readonly offset: ReadStart;
  readonly bytesMax: number;
}

export interface FetchAsked {
  readonly topics: readonly {
    readonly topic: string;
    readonly topicId: string | null;
    readonly partitions: readonly FetchPartition[];
  }[];
  readonly recordsMax: number;
  readonly bytesMax: number;
  readonly waitMs: number;
  readonly isolation: Isolation;
  readonly encoding: Encoding;
}

function expectFew(topics: FetchAsked["topics"]): void {
  const total = topics.reduce((sum, { partitions }) => sum + partitions.length, 0);
  if (total > HTTP_FETCH_PARTITIONS_MAX || topics.length > HTTP_FETCH_PARTITIONS_MAX) {
    throw badRequest(
      `Cannot fetch ${total} partitions: at most ${HTTP_FETCH_PARTITIONS_MAX} in one request`,
    );
  }
}

export function nativeFetch(asked: v.InferOutput<typeof nativeBody>): FetchAsked {
  const { topics: given, limit, maxBytes, wait, encoding } = asked;
  const topics = given.map(({ topic, topicId, partitions }) => ({
    topic,
    topicId: topicId ?? null,
    partitions: partitions.map((one) => ({
      partition: one.partition,
      offset: one.offset,
      bytesMax: one.maxBytes,
    })),
  }));
  expectFew(topics);
  return {
    topics,
    recordsMax: limit,
    bytesMax: maxBytes,
    waitMs: wait,
    isolation: isolationNamed(asked.isolation),
    encoding,
  };
}

export function warpFetch(asked: v.InferOutput<typeof warpBody>): FetchAsked {
  const topics = asked.topics.map(({ topic, partitions }) => ({
    topic,
    topicId: null,
    partitions: partitions.map((one) => ({
      partition: one.partition,
      offset: one.fetch_offset,
      bytesMax: Math.max(1, one.partition_max_bytes),
    })),
  }));
  expectFew(topics);
  return {
    topics,
    recordsMax: HTTP_READ_RECORDS_MAX,
    bytesMax: Math.max(1, asked.max_bytes),
    // Without a least number of bytes nothing is waited for.
    waitMs: asked.min_bytes === 0 ? 0 : asked.max_wait_ms,
    isolation: isolationNamed(asked.isolation_level),
    encoding: "base64",
  };
}
