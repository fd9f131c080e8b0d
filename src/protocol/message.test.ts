/** Every message in every version: golden bytes, round trips, truncation, garbage. */
import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import golden from "../../tests/golden/protocol_messages.json" with { type: "json" };
import { valueOf } from "../../tests/support/schema_arbitrary.ts";
import { ByteReader, DecodeError, fromHex, toHex } from "../lib/bytes.ts";
import { APIS } from "./api_key.ts";
import {
  consumerProtocolAssignment,
  consumerProtocolSubscription,
} from "./message/consumer_protocol.ts";
import {
  groupMetadataKey,
  groupMetadataValue,
  offsetCommitKey,
  offsetCommitValue,
} from "./message/offsets_topic.ts";
import { decode, encode, type Schema } from "./schema.ts";

const SCHEMAS: readonly Schema[] = [
  ...APIS.flatMap((api): readonly Schema[] => [api.request, api.response]),
  consumerProtocolSubscription,
  consumerProtocolAssignment,
  groupMetadataKey,
  groupMetadataValue,
  offsetCommitKey,
  offsetCommitValue,
];

function versionsOf(schema: Schema): number[] {
  return Array.from({ length: schema.max - schema.min + 1 }, (_, i) => schema.min + i);
}

/** Golden values write bytes as { hex }. */
function revive(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(revive);
  if (value === null || typeof value !== "object") return value;
  const entries = Object.entries(value);
  const [first] = entries;
  if (entries.length === 1 && first?.[0] === "hex") return fromHex(String(first[1]));
  return Object.fromEntries(entries.map(([name, field]) => [name, revive(field)]));
}

/** Compares the fields that the golden value has; the others do not exist in its version. */
function assertIncludes(actual: unknown, expected: unknown, where: string): void {
  if (Array.isArray(expected)) {
    assert.ok(Array.isArray(actual) && actual.length === expected.length, where);
    expected.forEach((item, i) => assertIncludes(actual[i], item, `${where}[${i}]`));
  } else if (
    expected !== null && typeof expected === "object" && !(expected instanceof Uint8Array)
  ) {
    for (const [name, item] of Object.entries(expected)) {
      assertIncludes((actual as Record<string, unknown>)[name], item, `${where}.${name}`);
    }
  } else assert.deepEqual(actual, expected, where);
}

for (const schema of SCHEMAS) {
  const frames = golden.filter((one) => one.message === schema.name);
  if (frames.length > 0) {
    test(`${schema.name}: golden bytes of Kafka's descriptions`, () => {
      assert.deepEqual([...new Set(frames.map((one) => one.version))], versionsOf(schema));
      for (const { version, value, hex } of frames) {
        const where = `${schema.name} v${version}`;
        const expected = revive(value);
        assertIncludes(decode(schema, version, fromHex(hex)), expected, where);
        assert.equal(toHex(encode(schema, version, expected)), hex, where);
      }
    });
  }

  test(`${schema.name}: decode(encode(x)) = x in every version`, () => {
    for (const version of versionsOf(schema)) {
      fc.assert(
        fc.property(valueOf(schema.body, version), (value) => {
          const bytes = encode(schema, version, value);
          const read = decode(schema, version, bytes);
          assert.deepEqual(read, value);
          assert.deepEqual(encode(schema, version, read), bytes);
        }),
        { numRuns: 15 },
      );
    }
  });

  test(`${schema.name}: cut off at every byte, it does not decode`, () => {
    for (const version of versionsOf(schema)) {
      const values = fc.sample(valueOf(schema.body, version), { numRuns: 2, seed: version });
      for (const value of values) {
        const bytes = encode(schema, version, value);
        for (let length = 0; length < bytes.length; length++) {
          // A view into a longer buffer shows reads past the end.
          const cut = bytes.subarray(0, length);
          assert.throws(() => decode(schema, version, cut), DecodeError);
        }
        const longer = new Uint8Array([...bytes, 0]);
        assert.throws(() => decode(schema, version, longer), DecodeError);
      }
    }
  });

  test(`${schema.name}: damaged bytes decode or fail cleanly`, () => {
    for (const version of versionsOf(schema)) {
      const [value] = fc.sample(valueOf(schema.body, version), { numRuns: 1, seed: 7 });
      const bytes = encode(schema, version, value);
      for (let at = 0; at < bytes.length; at++) {
        const damaged = bytes.slice();
        damaged[at] = (damaged[at] ?? 0) ^ 0xff;
        const reader = new ByteReader(damaged);
        try {
          schema.codec(version).read(reader);
        } catch (error) {
          assert.ok(error instanceof DecodeError, String(error));
        }
        assert.ok(reader.remaining >= 0);
      }
    }
  });
}
