/** What several reads take as parameters, and what becomes of it. Throws ProblemError. */
import * as v from "valibot";
import {
  HTTP_CURSOR_CHARS_MAX,
  HTTP_CURSOR_PARTITIONS_MAX,
  HTTP_FILTER_HEADERS_MAX,
  HTTP_FILTER_KEYS_MAX,
  HTTP_READ_BYTES_MAX,
  HTTP_READ_RECORDS_MAX,
  HTTP_WAIT_MS_MAX,
} from "../../lib/limits.ts";
import { choice, described, integer, offset, partition, topicId } from "../api/fields.ts";
import type { ReadQuery, ReadStart } from "../port.ts";
import { badRequest } from "../problem.ts";
import { ENCODINGS } from "../record_json.ts";

export const LIMIT_DEFAULT = 500;
export const BYTES_DEFAULT = 1_048_576;
/** Kafka's words and Kafka's default. */
export const ISOLATIONS = ["read_uncommitted", "read_committed"] as const;

const STARTS = ["offset", "timestamp", "tail"] as const;

export const isolationField = v.optional(
  described(choice(ISOLATIONS), "with read_committed, reads end before open transactions"),
  ISOLATIONS[0],
);
export const encodingField = v.optional(
  described(choice(ENCODINGS), "how keys, values and headers are shown"),
  ENCODINGS[0],
);
export const pageLimits = {
  limit: v.optional(
    described(integer(1, HTTP_READ_RECORDS_MAX), "records of a page"),
    LIMIT_DEFAULT,
  ),
  maxBytes: v.optional(
    described(
      integer(1, HTTP_READ_BYTES_MAX),
      "bytes of record batches behind a page; one batch always comes",
    ),
    BYTES_DEFAULT,
  ),
  wait: v.optional(
    described(integer(0, HTTP_WAIT_MS_MAX), "milliseconds to wait for a first record"),
    0,
  ),
  isolation: isolationField,
};
/** Where a read of one partition begins: at one of the three ways to say it. */
export const startFields = {
  offset: v.optional(
    described(
      v.union([choice(["earliest", "latest"]), offset], "not earliest, latest or an offset"),
      "of the first record; earliest, unless another start is given",
    ),
  ),
  timestamp: v.optional(
    described(integer(0), "instead: the first record at or after this time, in milliseconds"),
  ),
  tail: v.optional(described(integer(0), "instead: so many offsets before the end")),
};
export const idField = {
  topicId: v.optional(described(topicId, "the topic must still have this id")),
};
/** What is in it is looked at later. */
const cursorText = v.pipe(
  v.string(),
  v.regex(/^[A-Za-z0-9_-]*$/, "it is damaged"),
  v.maxLength(HTTP_CURSOR_CHARS_MAX, "it is damaged"),
);
/** Where a read of a whole topic begins, and what of it is wanted. */
export const topicFields = {
  cursor: v.optional(
    described(cursorText, "where the last read ended"),
  ),
  from: v.optional(described(choice(["earliest", "latest"]), "without a cursor"), "earliest"),
  partitions: v.optional(
    described(v.array(partition), `these only; at most ${HTTP_CURSOR_PARTITIONS_MAX}`),
  ),
  keys: v.optional(
    described(
      v.array(v.string()),
      `records with one of these keys, at most ${HTTP_FILTER_KEYS_MAX}; base64:... for bytes`,
    ),
    [],
  ),
  header: v.optional(
    described(
      v.array(v.string()),
      `records with all of these headers, at most ${HTTP_FILTER_HEADERS_MAX}, as name:value`,
    ),
    [],
  ),
  partitioned: v.optional(
    described(
      choice(["any", "key"]),
      "key: read only the partitions that Kafka's default gives the keys",
    ),
    "any",
  ),
};

type Outputs<E extends v.ObjectEntries> = v.InferOutput<v.StrictObjectSchema<E, undefined>>;
export type PageLimits = Outputs<typeof pageLimits>;
export type TopicFields = Outputs<typeof topicFields>;

export function limitsOf(
  { limit, maxBytes, wait, isolation: name }: PageLimits,
): Pick<ReadQuery, "recordsMax" | "bytesMax" | "waitMs" | "isolation"> {
  const isolation = isolationNamed(name);
  return { recordsMax: limit, bytesMax: maxBytes, waitMs: wait, isolation };
}

export function isolationNamed(name: (typeof ISOLATIONS)[number]): ReadQuery["isolation"] {
  return name === "read_committed" ? "committed" : "uncommitted";
}

export function startOf(query: Outputs<typeof startFields>): ReadStart {
  const given = STARTS.filter((name) => query[name] !== undefined);
  if (given.length > 1) throw badRequest(`Cannot use ${given.join(" and ")} together`);
  const { timestamp, tail } = query;
  if (timestamp !== undefined) return { timestampMs: timestamp };
  return tail === undefined ? query.offset ?? "earliest" : { tail };
}

/** Each once; null for all. */
export function partitionsOf({ partitions }: TopicFields): readonly number[] | null {
  if (partitions === undefined) return null;
  if (partitions.length > HTTP_CURSOR_PARTITIONS_MAX) throw tooManyPartitions(partitions.length);
  return [...new Set(partitions)];
}

export function tooManyPartitions(count: number) {
  return badRequest(
    `Cannot read ${count} partitions at once: at most ${HTTP_CURSOR_PARTITIONS_MAX}; ` +
      "name some with partitions=",
  );
}
