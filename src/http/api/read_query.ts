/**
 * Query strings by schema. Text becomes what the schema of its field is about: digits a number, `1` and `0` a
 * flag; lists of numbers stand between commas, or are given several times as lists of texts are.
 */
import * as v from "valibot";
import { badRequest } from "../problem.ts";
import { expectOnly, parameter, queryOf } from "../query.ts";
import { hasQuery } from "../target.ts";

export type QuerySchema = v.StrictObjectSchema<v.ObjectEntries, undefined>;

const SHOWN_CHARS_MAX = 100;
const DIGITS = /^\d{1,16}$/;
const FLAGS: ReadonlyMap<string, boolean> = new Map([
  ["", true],
  ["1", true],
  ["true", true],
  ["0", false],
  ["false", false],
]);

/** The schema within those that only say that it may be absent. */
export function innermost(schema: v.GenericSchema): v.GenericSchema {
  return "wrapped" in schema ? innermost(schema.wrapped as v.GenericSchema) : schema;
}

function itemOf(schema: v.GenericSchema): v.GenericSchema | null {
  return "item" in schema ? innermost(schema.item as v.GenericSchema) : null;
}

/** Also used to describe it. */
export function isCommaList(schema: v.GenericSchema): boolean {
  return itemOf(innermost(schema))?.type === "number";
}

/** Text that is no number stays text, which the schema then refuses, or takes as a word. */
function numberOr(text: string): number | string {
  return DIGITS.test(text) ? Number(text) : text;
}

function decoded(query: URLSearchParams, name: string, schema: v.GenericSchema): unknown {
  const plain = innermost(schema);
  if (plain.type === "array") {
    const texts = query.getAll(name);
    // Clients that are generated repeat the parameter instead.
    return isCommaList(plain) ? texts.flatMap((text) => text.split(",")).map(numberOr) : texts;
  }
  const text = parameter(query, name) ?? "";
  if (plain.type === "boolean") return FLAGS.get(text) ?? text;
  return plain.type === "number" || plain.type === "union" ? numberOr(text) : text;
}

function refused(query: URLSearchParams, issue: v.BaseIssue<unknown>) {
  const key = issue.path?.[0]?.key;
  const name = typeof key === "string" ? key : "query";
  const given = query.getAll(name);
  if (given.length === 0) return badRequest(`Cannot do without the parameter ${name}`);
  const shown = given.length > 1 ? name : `${name}=${given[0]!.slice(0, SHOWN_CHARS_MAX)}`;
  return badRequest(`Cannot use ${shown}: ${issue.message}`);
}

const EMPTY = new URLSearchParams();

function checked<S extends QuerySchema>(
  query: URLSearchParams,
  input: Record<string, unknown>,
  schema: S,
): v.InferOutput<S> {
  const result = v.safeParse(schema, input);
  if (result.success) return result.output;
  throw refused(query, result.issues[0]);
}

/** What a request without a query gets, made once. */
const defaults = new WeakMap<QuerySchema, unknown>();

function defaultsOf<S extends QuerySchema>(schema: S): v.InferOutput<S> {
  const known = defaults.get(schema) as v.InferOutput<S> | undefined;
  if (known !== undefined) return known;
  const made = checked(EMPTY, {}, schema);
  defaults.set(schema, made);
  return made;
}

/** Throws ProblemError: also for a parameter that the schema does not know, or that is given twice. */
export function readQuery<S extends QuerySchema>(request: Request, schema: S): v.InferOutput<S> {
  if (!hasQuery(request)) return defaultsOf(schema);
  const query = queryOf(request);
  expectOnly(query, Object.keys(schema.entries));
  const input: Record<string, unknown> = {};
  for (const name of query.keys()) {
    input[name] ??= decoded(query, name, schema.entries[name] as v.GenericSchema);
  }
  return checked(query, input, schema);
}
