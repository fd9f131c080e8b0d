/** Expected values: `Utils.abs(text.hashCode())` of kafka-clients 4.2.1 on Java 21. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { javaHash } from "./java_hash.ts";

test("ids lie where Kafka puts them", () => {
  assert.deepEqual(
    ["g", "group-1", "orders", "my-consumer-group", "polygenelubricants", "tx-0", "résumé", "🙂"]
      .map((id) => [javaHash(id), javaHash(id) % 50]),
    [
      [103, 3],
      [293427299, 49],
      [1008770331, 31],
      [1513705513, 13],
      [0, 0],
      [3572519, 19],
      [812521675, 25],
      [1772965, 15],
    ],
  );
});
