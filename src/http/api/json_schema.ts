/**
 * Schemas that check requests, as JSON Schema (draft 2020-12, which OpenAPI 3.1 has). What is described is what
 * comes in, not what becomes of it. A kind of schema that is not known here is a bug that a test finds.
 */
import type * as v from "valibot";
import { assert } from "../../lib/assert.ts";

export type JsonSchema = Readonly<Record<string, unknown>>;

/** What of a schema is looked at: its kind has more fields, by its type. */
interface Schema {
  readonly type: string;
  readonly pipe?: readonly Step[];
  readonly wrapped?: Schema;
  readonly default?: unknown;
  readonly item?: Schema;
  readonly items?: readonly Schema[];
  readonly value?: Schema;
  readonly entries?: Readonly<Record<string, Schema>>;
  readonly options?: readonly unknown[];
  readonly literal?: unknown;
}

interface Step {
  readonly kind: string;
  readonly type: string;
  readonly requirement?: unknown;
  readonly description?: string;
  readonly metadata?: { readonly component?: string; readonly json?: JsonSchema };
}

/** Schemas with a name, which are written once. */
export type Components = Map<string, JsonSchema>;

export function isOptional(schema: v.GenericSchema): boolean {
  return schema.type === "optional";
}

function shape(schema: Schema, components: Components, isStrict: boolean): JsonSchema {
  const entries = Object.entries(schema.entries!);
  const required = entries.filter(([, entry]) => entry.type !== "optional").map(([name]) => name);
  return {
    type: "object",
    properties: Object.fromEntries(
      entries.map(([name, entry]) => [name, convert(entry, components)]),
    ),
    ...(required.length === 0 ? {} : { required }),
    ...(isStrict ? { additionalProperties: false } : {}),
  };
}

function withDefault(schema: Schema, inner: JsonSchema): JsonSchema {
  const { default: fallback } = schema;
  return fallback === undefined || fallback === null ? inner : { ...inner, default: fallback };
}

function orNull(inner: JsonSchema): JsonSchema {
  return typeof inner["type"] === "string" && !("enum" in inner)
    ? { ...inner, type: [inner["type"], "null"] }
    : { anyOf: [inner, { type: "null" }] };
}

const KINDS: Readonly<Record<string, (schema: Schema, components: Components) => JsonSchema>> = {
  string: () => ({ type: "string" }),
  number: () => ({ type: "number" }),
  boolean: () => ({ type: "boolean" }),
  unknown: () => ({}),
  custom: () => ({}),
  literal: ({ literal }) => ({ const: literal }),
  picklist: ({ options }) => ({ type: "string", enum: options }),
  optional: (schema, all) => withDefault(schema, convert(schema.wrapped!, all)),
  nullable: ({ wrapped }, all) => orNull(convert(wrapped!, all)),
  array: ({ item }, all) => ({ type: "array", items: convert(item!, all) }),
  tuple: ({ items }, all) => tuple(items!, all),
  strict_tuple: ({ items }, all) => tuple(items!, all),
  strict_object: (schema, all) => shape(schema, all, true),
  loose_object: (schema, all) => shape(schema, all, false),
  record: ({ value }, all) => ({ type: "object", additionalProperties: convert(value!, all) }),
  union: ({ options }, all) => ({
    anyOf: options!.map((option) => convert(option as Schema, all)),
  }),
};

function tuple(items: readonly Schema[], components: Components): JsonSchema {
  return {
    type: "array",
    prefixItems: items.map((item) => convert(item, components)),
    minItems: items.length,
    maxItems: items.length,
  };
}

/** What a step of a pipe adds; those that only check or change a value add nothing. */
function added({ type, requirement, description, metadata }: Step, to: JsonSchema): JsonSchema {
  const isText = to["type"] === "string";
  const isList = to["type"] === "array";
  switch (type) {
    case "integer":
    case "safe_integer":
      return { type: "integer" };
    case "min_value":
      return { minimum: requirement };
    case "max_value":
      return { maximum: requirement };
    case "gt_value":
      return { exclusiveMinimum: requirement };
    case "min_length":
      return isText ? { minLength: requirement } : isList ? { minItems: requirement } : {};
    case "max_length":
      return isText ? { maxLength: requirement } : isList ? { maxItems: requirement } : {};
    case "length":
      return isList ? { minItems: requirement, maxItems: requirement } : {};
    case "regex":
      return { pattern: (requirement as RegExp).source };
    case "description":
      return { description };
    case "metadata":
      return metadata?.json ?? {};
    default:
      return {};
  }
}

function nameOf(schema: Schema): string | null {
  const names = schema.pipe?.map((step) => step.metadata?.component)
    .filter((name) => name !== undefined);
  return names?.at(-1) ?? null;
}

function convert(schema: Schema, components: Components): JsonSchema {
  const name = nameOf(schema);
  if (name === null) return inFull(schema, components);
  if (!components.has(name)) components.set(name, inFull(schema, components));
  return { $ref: `#/components/schemas/${name}` };
}

/** A pipe begins with a schema, which may be a pipe of its own. */
function inFull(schema: Schema, components: Components): JsonSchema {
  if (schema.pipe === undefined) {
    const kind = KINDS[schema.type];
    assert(kind !== undefined, `a schema of the kind ${schema.type} can be described`);
    return kind(schema, components);
  }
  const [first, ...steps] = schema.pipe;
  let json = convert(first as unknown as Schema, components);
  for (const step of steps) {
    const isSchema = step.kind === "schema";
    json = { ...json, ...(isSchema ? convert(step, components) : added(step, json)) };
  }
  return json;
}

export function jsonSchemaOf(schema: v.GenericSchema, components: Components): JsonSchema {
  return convert(schema, components);
}
