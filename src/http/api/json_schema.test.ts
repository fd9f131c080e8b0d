import assert from "node:assert/strict";
import { test } from "node:test";
import * as v from "valibot";
import { choice, described, integer, named, shownAs } from "./fields.ts";
import { type Components, type JsonSchema, jsonSchemaOf } from "./json_schema.ts";

function shown(schema: v.GenericSchema): { readonly json: JsonSchema; readonly parts: JsonSchema } {
  const components: Components = new Map();
  const json = jsonSchemaOf(schema, components);
  return { json, parts: Object.fromEntries(components) };
}

test("what a schema takes is what its JSON Schema says", () => {
  const { json } = shown(v.strictObject({
    name: described(v.pipe(v.string(), v.minLength(1), v.maxLength(9)), "of the thing"),
    count: v.optional(integer(1, 9), 5),
    either: v.optional(v.nullable(v.union([choice(["a", "b"]), v.literal(3)]))),
    pair: v.pipe(v.array(v.unknown()), v.length(2), v.tuple([v.string(), v.unknown()])),
    rest: v.optional(v.looseObject({ any: v.optional(v.unknown()) })),
    table: v.optional(v.record(v.string(), v.number())),
    text: v.optional(v.pipe(v.string(), v.regex(/^[a-z]+$/), v.transform((text) => text.length))),
  }));
  assert.deepEqual(json, {
    type: "object",
    properties: {
      name: { type: "string", minLength: 1, maxLength: 9, description: "of the thing" },
      count: { type: "integer", minimum: 1, maximum: 9, default: 5 },
      either: {
        anyOf: [
          { anyOf: [{ type: "string", enum: ["a", "b"] }, { const: 3 }] },
          { type: "null" },
        ],
      },
      pair: {
        type: "array",
        items: {},
        minItems: 2,
        maxItems: 2,
        prefixItems: [{ type: "string" }, {}],
      },
      rest: { type: "object", properties: { any: {} } },
      table: { type: "object", additionalProperties: { type: "number" } },
      text: { type: "string", pattern: "^[a-z]+$" },
    },
    required: ["name", "pair"],
    additionalProperties: false,
  });
});

test("a schema with a name is written once, and one that checks in its own way says what it takes", () => {
  const one = named("One", v.strictObject({ a: v.string() }));
  const { json, parts } = shown(v.strictObject({
    first: one,
    others: v.array(one),
    own: shownAs(v.custom<object>((value) => typeof value === "object"), { type: "object" }),
  }));
  const ref = { $ref: "#/components/schemas/One" };
  const { first, others, own } = json["properties"] as Record<string, unknown>;
  assert.deepEqual([first, others, own], [ref, { type: "array", items: ref }, { type: "object" }]);
  assert.deepEqual(Object.keys(parts), ["One"]);
});

test("a kind of schema that nobody has described is a bug", () => {
  assert.throws(() => shown(v.date()), /date/);
});
