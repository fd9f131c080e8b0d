/** What requests and answers of administration are made of. */
import * as v from "valibot";
import { HTTP_ADMIN_ROWS_MAX } from "../../lib/limits.ts";
import { described, integer, named, offset, partition, shownAs, topicName } from "../api/fields.ts";
import { failure } from "../api/answers.ts";

/** A larger integer is not the one that was sent any more. */
const number = v.pipe(
  v.number(),
  v.check((value) => !Number.isInteger(value) || Number.isSafeInteger(value), "too large a number"),
);
const scalar = v.pipe(
  v.union([v.string(), number, v.boolean()], "not a string, safe number or boolean"),
  v.transform(String),
);

/** Entry by entry: `v.record` would pass over names like `__proto__` in silence. */
function settingsOf<T extends string | null>(
  value: v.GenericSchema<unknown, T>,
  shown: readonly string[],
) {
  const settings = v.pipe(
    v.custom<Readonly<Record<string, unknown>>>(
      (input) => typeof input === "object" && input !== null && !Array.isArray(input),
      "not an object of settings",
    ),
    v.rawTransform(
      ({ dataset, addIssue, NEVER }): readonly (readonly [name: string, value: T])[] => {
        const found: [string, T][] = [];
        for (const [name, given] of Object.entries(dataset.value)) {
          const result = v.safeParse(value, given);
          if (result.success) found.push([name, result.output]);
          else {
            addIssue({ message: `${name.slice(0, 100)}: ${result.issues[0].message}` });
            return NEVER;
          }
        }
        return found;
      },
    ),
  );
  return shownAs(settings, { type: "object", additionalProperties: { type: shown } });
}

const configs = settingsOf(scalar, ["string", "number", "boolean"]);
export const configChanges = settingsOf(v.nullable(scalar), [
  "string",
  "number",
  "boolean",
  "null",
]);
const count = described(v.pipe(v.number(), v.safeInteger()), "partitions in all");

export const newTopic = v.strictObject({
  name: topicName,
  partitions: v.optional(v.nullable(count), null),
  configs: v.optional(described(configs, "Kafka's settings of topics"), {}),
});
export const topicChange = v.strictObject({
  partitions: v.optional(count),
  configs: v.optional(described(configChanges, "null takes a setting back"), {}),
});
export const growth = v.strictObject({ partitions: count });
export const deletion = v.strictObject({
  partitions: v.pipe(
    v.array(v.strictObject({
      partition,
      before: described(
        v.union([offset, v.literal("all")], "not an offset or all"),
        "the first offset that stays; all is the end of the log",
      ),
    })),
    v.minLength(1),
    v.maxLength(HTTP_ADMIN_ROWS_MAX),
  ),
});

const ROWS_DEFAULT = 100;
export const partitionsQuery = v.strictObject({
  from: v.optional(described(partition, "the first one"), 0),
  limit: v.optional(integer(1, HTTP_ADMIN_ROWS_MAX), ROWS_DEFAULT),
});

const id = described(v.string(), "hex digits; another topic of the same name has another one");
export const summary = named(
  "TopicSummary",
  v.strictObject({ name: v.string(), topicId: id, partitions: integer(1) }),
);
export const detail = named(
  "Topic",
  v.strictObject({
    name: v.string(),
    topicId: id,
    partitions: integer(1),
    leaders: v.array(v.strictObject({
      partition,
      leader: v.nullable(integer(0)),
      leaderEpoch: integer(-1),
    })),
    configs: described(v.record(v.string(), v.string()), "what is set on the topic itself"),
  }),
);
export const configRow = named(
  "Config",
  v.strictObject({
    name: v.string(),
    value: v.string(),
    default: described(v.string(), "what holds without the topic's own setting"),
    source: described(v.string(), "topic, dynamicBroker, dynamicDefault, staticBroker or default"),
    type: v.string(),
    documentation: v.string(),
  }),
);
export const partitionRow = named(
  "Partition",
  v.strictObject({
    partition,
    leader: v.nullable(integer(0)),
    leaderEpoch: integer(-1),
    log: described(
      v.nullable(v.strictObject({
        earliest: offset,
        latest: described(offset, "the high watermark"),
        lastStable: described(offset, "where reads of committed records end"),
        bytes: described(integer(0), "of records from the first offset on"),
      })),
      "null where it cannot be opened here and now",
    ),
  }),
);
export const deleted = v.strictObject({
  partitions: v.array(v.union([
    v.strictObject({ partition, logStart: offset }),
    v.strictObject({ partition, error: failure }),
  ])),
});
export const cluster = v.strictObject({
  clusterId: v.string(),
  nodeId: described(integer(0), "of the node that answers"),
  version: v.string(),
  nodes: v.array(v.strictObject({ nodeId: integer(0), host: v.string(), port: integer(0) })),
  features: described(v.record(v.string(), v.number()), "levels of Kafka's features"),
});

const limit = v.optional(
  described(v.pipe(v.number("not a number"), v.finite(), v.gtValue(0, "not above 0")), "above 0"),
);
export const quota = named(
  "Quota",
  v.strictObject({
    entity: described(
      v.strictObject({
        "user": v.optional(v.nullable(v.string())),
        "client-id": v.optional(v.nullable(v.string())),
        "ip": v.optional(v.nullable(v.string())),
      }),
      "null is the default of a type",
    ),
    limits: v.strictObject({
      producer_byte_rate: limit,
      consumer_byte_rate: limit,
      request_percentage: limit,
      controller_mutation_rate: limit,
      connection_creation_rate: limit,
    }),
  }),
);
const requests = v.strictObject({
  writes: integer(0),
  reads: integer(0),
  deletes: integer(0),
  bytesIn: integer(0),
  bytesOut: integer(0),
});
export const costs = v.strictObject({
  produced: described(integer(0), "bytes of records that became durable since the start"),
  requests,
  byClass: described(v.record(v.string(), requests), "what they are for"),
  costs: described(
    v.array(v.strictObject({
      store: v.string(),
      total: v.number(),
      perGib: v.nullable(v.number()),
    })),
    "US dollars at list prices and at those of the configuration",
  ),
});
