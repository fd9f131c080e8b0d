/**
 * What requests are made of: schemas that check them and describe them in `/openapi.json`. A name makes a
 * schema a component of its own there.
 */
import * as v from "valibot";

export function integer(min: number, max = Number.MAX_SAFE_INTEGER) {
  const message = `not an integer from ${min} to ${max}`;
  return v.pipe(
    v.number(message),
    v.safeInteger(message),
    v.minValue(min, message),
    v.maxValue(max, message),
  );
}

export function choice<const T extends readonly [string, ...string[]]>(words: T) {
  return v.picklist(words, `not ${words.join(" or ")}`);
}

/** Text that says what a field means, for readers of the document. */
export function described<S extends v.GenericSchema>(schema: S, text: string) {
  return v.pipe(schema, v.description(text));
}

export function named<S extends v.GenericSchema>(name: string, schema: S) {
  return v.pipe(schema, v.metadata({ component: name }));
}

/** A keyword of JSON Schema for what a schema of ours checks in its own way. */
export function shownAs<S extends v.GenericSchema>(schema: S, json: Record<string, unknown>) {
  return v.pipe(schema, v.metadata({ json }));
}

export const PARTITION_MAX = 2 ** 31 - 1;

export const partition = integer(0, PARTITION_MAX);
export const offset = integer(0);
export const topicId = v.pipe(
  v.string(),
  v.regex(/^[0-9a-f]{32}$/, "not 32 lower-case hex digits"),
);
/** Names that cannot be are no topics: which ones those are, the broker says. */
export const topicName = shownAs(v.string(), {
  minLength: 1,
  maxLength: 249,
  pattern: "^[A-Za-z0-9._-]+$",
});
/** Present and true, as `?bare`, `?bare=1` or `?bare=true`. */
export const flag = v.boolean("not 1 or 0");
