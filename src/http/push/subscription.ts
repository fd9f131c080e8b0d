/** A subscription: which records go where, and how. The same schema checks requests and what is stored. */
import * as v from "valibot";
import {
  PUSH_ATTEMPTS_MAX,
  PUSH_BATCH_RECORDS_MAX,
  PUSH_IN_FLIGHT_MAX,
  PUSH_PAUSE_MS_MAX,
  PUSH_TIMEOUT_MS_MAX,
  PUSH_TOPICS_MAX,
  PUSH_URL_CHARS_MAX,
  PUSH_WINDOW_BYTES,
} from "../../lib/limits.ts";
import { OFFSETS_TOPIC, SHARE_STATE_TOPIC, TRANSACTIONS_TOPIC } from "../../broker/topic_name.ts";
import { choice, described, integer, shownAs } from "../api/fields.ts";
import { ENCODINGS } from "../record_json.ts";

const ID_CHARS_MAX = 100;
const GROUP_CHARS_MAX = 249;

const ID = /^[A-Za-z0-9_.-]{1,100}$/;

export function isSubscriptionId(text: string): boolean {
  return ID.test(text);
}

export const subscriptionId = shownAs(v.string(), {
  minLength: 1,
  maxLength: ID_CHARS_MAX,
  pattern: ID.source,
});

const topic = v.pipe(v.string(), v.regex(/^[A-Za-z0-9._-]{1,249}$/, "not a name of a topic"));
/** Each delivery is committed there: pushing them would never come to an end. */
const INTERNAL: ReadonlySet<string> = new Set([
  OFFSETS_TOPIC,
  SHARE_STATE_TOPIC,
  TRANSACTIONS_TOPIC,
]);

const group = v.pipe(
  v.string(),
  v.minLength(1, "empty"),
  v.maxLength(GROUP_CHARS_MAX, `more than ${GROUP_CHARS_MAX} characters`),
);

const retry = v.pipe(
  v.strictObject({
    attempts: described(
      v.optional(integer(1, PUSH_ATTEMPTS_MAX), 16),
      "before a record goes to the dead-letter topic; without one it is tried for ever",
    ),
    minMs: described(v.optional(integer(100, PUSH_PAUSE_MS_MAX), 1_000), "the first pause"),
    maxMs: described(
      v.optional(integer(100, PUSH_PAUSE_MS_MAX), 300_000),
      "the longest: each is twice the one before",
    ),
  }),
  v.check(({ minMs, maxMs }) => minMs <= maxMs, "minMs is more than maxMs"),
);

const batch = v.strictObject({
  records: v.optional(integer(1, PUSH_BATCH_RECORDS_MAX), 100),
  bytes: v.optional(integer(1, PUSH_WINDOW_BYTES), 262_144),
});

export const subscription = v.pipe(
  v.strictObject({
    group: described(
      v.optional(group),
      "whose committed offsets are its positions; the id where it is missing",
    ),
    topics: v.pipe(
      v.array(topic),
      v.minLength(1, "names no topic"),
      v.maxLength(PUSH_TOPICS_MAX, `more than ${PUSH_TOPICS_MAX} topics`),
      v.check((names) => names.every((one) => !INTERNAL.has(one)), "names an internal topic"),
      v.check((names) => new Set(names).size === names.length, "names a topic twice"),
    ),
    url: described(v.pipe(v.string(), v.maxLength(PUSH_URL_CHARS_MAX)), "of the handler"),
    from: v.optional(
      described(choice(["earliest", "latest"]), "where a group begins that has no offset"),
      "latest",
    ),
    format: v.optional(
      described(
        choice(["json", "raw"]),
        "json: a batch of records; raw: the value of one record as the body",
      ),
      "json",
    ),
    encoding: v.optional(described(choice(ENCODINGS), "how bytes stand in JSON"), "auto"),
    batch: v.optional(batch, {}),
    maxInFlight: described(
      v.optional(integer(1, PUSH_IN_FLIGHT_MAX), 4),
      "deliveries under way at once; those of one key never are",
    ),
    timeoutMs: described(
      v.optional(integer(100, PUSH_TIMEOUT_MS_MAX), 30_000),
      "for an answer of the handler",
    ),
    retry: v.optional(retry, {}),
    deadLetter: described(
      v.optional(v.nullable(topic), null),
      "topic for records that were not taken",
    ),
    paused: v.optional(v.boolean(), false),
  }),
  v.check(
    ({ topics, deadLetter }) => deadLetter === null || !topics.includes(deadLetter),
    "its dead-letter topic is one of its topics",
  ),
);

export type SubscriptionInput = v.InferOutput<typeof subscription>;
export type Subscription = SubscriptionInput & { readonly id: string; readonly group: string };

export function subscriptionOf(id: string, input: SubscriptionInput): Subscription {
  return { ...input, id, group: input.group ?? id };
}
