/** Expected values: `Utils.abs(text.hashCode()) % 50` of kafka-clients 4.2.1 on Java 21. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { partitionOfId } from "./java_hash.ts";

const IDS = [
  "g",
  "group-1",
  "orders",
  "my-consumer-group",
  "polygenelubricants",
  "tx-0",
  "résumé",
  "🙂",
];

test("ids lie where Kafka puts them", () => {
  const partitions = IDS.map((id) => partitionOfId(id, 50, "kafka"));
  assert.deepEqual(partitions, [3, 49, 31, 13, 0, 19, 25, 15]);
});

test("what earlier builds stored lies where they put it", () => {
  // The hash of "orders" is -1008770331, that of "résumé" -812521675.
  const partitions = IDS.map((id) => partitionOfId(id, 50, "masked"));
  assert.deepEqual(partitions, [3, 49, (2 ** 31 - 1008770331) % 50, 13, 0, 19, 23, 15]);
});
