/** What requests about groups take. */
import * as v from "valibot";
import {
  HTTP_GROUP_NACKS_MAX,
  HTTP_GROUP_TOPICS_MAX,
  HTTP_LEASE_MS_DEFAULT,
  HTTP_LEASE_MS_MAX,
  HTTP_LEASE_MS_MIN,
  HTTP_READ_BYTES_MAX,
  HTTP_READ_RECORDS_MAX,
  HTTP_WAIT_MS_MAX,
} from "../../lib/limits.ts";
import { choice, described, integer, offset, partition, topicName } from "../api/fields.ts";
import { ENCODINGS } from "../record_json.ts";

const MAX_DEFAULT = 100;
const BYTES_DEFAULT = 1_048_576;
const NAME_CHARS_MAX = 128;

/** What a client calls itself, or a poll. */
const name = v.pipe(
  v.string(),
  v.minLength(1, "empty"),
  v.maxLength(NAME_CHARS_MAX, `more than ${NAME_CHARS_MAX} characters`),
);
const ack = described(v.string(), "what the poll answered as `ack`");
const leaseMs = integer(HTTP_LEASE_MS_MIN, HTTP_LEASE_MS_MAX);

export const pollBody = v.pipe(
  v.strictObject({
    topics: v.pipe(
      v.array(topicName),
      v.minLength(1, "names no topic"),
      v.maxLength(HTTP_GROUP_TOPICS_MAX, `more than ${HTTP_GROUP_TOPICS_MAX} topics`),
    ),
    max: described(v.optional(integer(1, HTTP_READ_RECORDS_MAX), MAX_DEFAULT), "records"),
    maxBytes: v.optional(integer(1, HTTP_READ_BYTES_MAX), BYTES_DEFAULT),
    wait: described(
      v.optional(integer(0, HTTP_WAIT_MS_MAX), 0),
      "milliseconds to wait for a first record",
    ),
    lease: described(
      v.optional(leaseMs, HTTP_LEASE_MS_DEFAULT),
      "milliseconds after which they are given to others",
    ),
    member: described(v.optional(name), "who polls; made up otherwise"),
    retry: described(v.optional(name), "the same again finds the records of a lost answer"),
    ack: described(v.optional(v.string()), "acknowledges an earlier poll first"),
    autoCommit: described(v.optional(v.boolean(), false), "acknowledges at once: at most once"),
    isolation: v.optional(
      choice(["read_uncommitted", "read_committed"]),
      "read_uncommitted",
    ),
    from: described(
      v.optional(choice(["earliest", "latest"]), "earliest"),
      "where a group begins that has no offset",
    ),
    order: described(
      v.optional(choice(["partition", "none"]), "partition"),
      "whether one partition may be leased to several at a time",
    ),
    encoding: v.optional(choice(ENCODINGS), ENCODINGS[0]),
  }),
  v.check(
    ({ retry, member }) => retry === undefined || member !== undefined,
    "retry without member: whose it is must be known",
  ),
  v.check(
    ({ retry, autoCommit }) => retry === undefined || !autoCommit,
    "retry with autoCommit: what is acknowledged does not come again",
  ),
);
export type PollBody = v.InferOutput<typeof pollBody>;

const place = { topic: topicName, partition, offset };

export const ackBody = v.strictObject({
  ack,
  upTo: described(
    v.optional(v.pipe(v.array(v.strictObject(place)), v.maxLength(HTTP_GROUP_NACKS_MAX))),
    "only these partitions, up to and with the offset",
  ),
  nack: described(
    v.optional(
      v.pipe(
        v.array(v.strictObject({ ...place, delay: v.optional(integer(0, HTTP_LEASE_MS_MAX), 0) })),
        v.maxLength(HTTP_GROUP_NACKS_MAX),
      ),
      [],
    ),
    "records to deliver again, after a delay in milliseconds",
  ),
  extend: described(
    v.optional(leaseMs),
    "milliseconds from now that the lease lasts on; without `upTo` nothing is acknowledged",
  ),
});
export type AckBody = v.InferOutput<typeof ackBody>;

export const offsetsBody = v.strictObject({
  offsets: v.pipe(
    v.array(v.strictObject({
      topic: topicName,
      partition,
      offset: v.union([choice(["earliest", "latest"]), offset]),
      metadata: v.optional(v.string(), ""),
    })),
    v.minLength(1, "names no partition"),
    v.maxLength(HTTP_GROUP_NACKS_MAX, `more than ${HTTP_GROUP_NACKS_MAX} partitions`),
  ),
});
export type OffsetsBody = v.InferOutput<typeof offsetsBody>;
