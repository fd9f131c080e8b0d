/**
 * Compares our message schemas with Kafka's own JSON descriptions: fields, order, types, versions,
 * nullability, tags, defaults. Usage: bun scripts/check_schemas.ts FOLDER-WITH-THE-JSON-FILES
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { APIS } from "../src/protocol/api_key.ts";
import type { FieldInfo, Type } from "../src/protocol/codec.ts";
import {
  consumerProtocolAssignment,
  consumerProtocolSubscription,
} from "../src/protocol/message/consumer_protocol.ts";
import type { Schema } from "../src/protocol/schema.ts";

interface JsonField {
  readonly name: string;
  readonly type: string;
  readonly versions: string;
  readonly nullableVersions?: string;
  readonly taggedVersions?: string;
  readonly tag?: number;
  readonly default?: string | number | boolean;
  readonly fields?: readonly JsonField[];
}

interface JsonMessage {
  readonly apiKey?: number;
  readonly name: string;
  readonly validVersions: string;
  readonly flexibleVersions: string;
  readonly latestVersionUnstable?: boolean;
  readonly fields: readonly JsonField[];
  readonly commonStructs?: readonly JsonField[];
}

interface Range {
  readonly from: number;
  readonly to: number;
}

const NEVER: Range = { from: 1, to: 0 };

/** Kafka's notation: `3`, `3-7`, `3+` or `none`. */
function parseRange(text: string | undefined): Range {
  if (text === undefined || text === "none") return NEVER;
  const match = /^(\d+)(?:(\+)|-(\d+))?$/.exec(text);
  if (match === null) throw new Error(`Not a version range: ${text}`);
  const from = Number(match[1]);
  if (match[2] !== undefined) return { from, to: Infinity };
  return { from, to: match[3] === undefined ? from : Number(match[3]) };
}

function clip(range: Range, within: Range): Range {
  const from = Math.max(range.from, within.from);
  const to = Math.min(range.to, within.to);
  return from > to ? NEVER : { from, to };
}

function show(range: Range): string {
  return range === NEVER ? "none" : `${range.from}-${range.to}`;
}

const NUMBER = /^(?:u?int\d+|float64)$/;

/** The value that Kafka gives to the field when it is absent, in our representation. */
function defaultOf(field: JsonField): unknown {
  const given = field.default;
  if (given === "null" || (given === undefined && field.type === "records")) return null;
  if (field.type.startsWith("[]") || field.type === "bytes") return "empty";
  if (field.type === "string") return given ?? "";
  if (field.type === "bool") return String(given ?? false) === "true";
  if (field.type === "uuid") return "0".repeat(32);
  if (!NUMBER.test(field.type)) return "struct";
  const value = Number(given ?? 0);
  return Math.min(value, Number.MAX_SAFE_INTEGER);
}

function ourDefault(field: FieldInfo): unknown {
  const { zero } = field;
  if (Array.isArray(zero) || zero instanceof Uint8Array) return zero.length === 0 ? "empty" : zero;
  if (zero !== null && typeof zero === "object") return "struct";
  return zero;
}

const lowerCamel = (name: string): string => name.charAt(0).toLowerCase() + name.slice(1);

class Checker {
  readonly problems: string[] = [];
  fields = 0;
  readonly #structs: ReadonlyMap<string, readonly JsonField[]>;

  constructor(json: JsonMessage) {
    this.#structs = new Map((json.commonStructs ?? []).map((one) => [one.name, one.fields ?? []]));
  }

  equal(where: string, what: string, ours: unknown, theirs: unknown): void {
    if (ours !== theirs) this.problems.push(`${where}: ${what} is ${ours}, Kafka has ${theirs}`);
  }

  struct(where: string, ours: Type, theirs: readonly JsonField[], within: Range): void {
    const mine = Object.entries(ours.fields ?? {});
    const present = theirs.filter((one) => clip(parseRange(one.versions), within) !== NEVER);
    const names = present.map((one) => lowerCamel(one.name));
    this.equal(where, "field list", mine.map(([name]) => name).join(" "), names.join(" "));
    for (const [name, field] of mine) {
      const json = present.find((one) => lowerCamel(one.name) === name);
      if (json !== undefined) this.field(`${where}.${name}`, field, json, within);
    }
  }

  field(where: string, ours: FieldInfo, theirs: JsonField, within: Range): void {
    this.fields++;
    const range = clip(parseRange(theirs.versions), within);
    const mine = clip({ from: ours.since, to: ours.until }, within);
    this.equal(where, "versions", show(mine), show(range));
    this.equal(
      where,
      "nullable versions",
      show(clip({ from: ours.nullableSince, to: Infinity }, range)),
      show(clip(parseRange(theirs.nullableVersions), range)),
    );
    this.equal(where, "tag", ours.tag, theirs.tag ?? null);
    if (theirs.tag !== undefined) {
      const tagged = clip(parseRange(theirs.taggedVersions), range);
      this.equal(where, "tagged versions", show(range), show(tagged));
    }
    this.default(where, ours, theirs);
    this.type(where, ours.type, theirs.type, theirs, range);
  }

  default(where: string, ours: FieldInfo, theirs: JsonField): void {
    const expected = defaultOf(theirs);
    // Records have no default in Kafka, and no sender leaves them out.
    if (theirs.type !== "records") this.equal(where, "default", ourDefault(ours), expected);
  }

  type(where: string, ours: Type, theirs: string, field: JsonField, within: Range): void {
    if (theirs.startsWith("[]")) {
      this.equal(where, "type", ours.kind, "array");
      if (ours.element !== undefined) {
        this.type(`${where}[]`, ours.element, theirs.slice(2), field, within);
      }
      return;
    }
    const fields = field.fields ?? this.#structs.get(theirs);
    this.equal(where, "type", ours.kind, fields === undefined ? theirs : "struct");
    if (fields !== undefined) this.struct(where, ours, fields, within);
  }
}

function load(folder: string, name: string): JsonMessage {
  const text = readFileSync(join(folder, `${name}.json`), "utf8");
  return JSON.parse(text.replace(/^\s*\/\/.*$/gm, "")) as JsonMessage;
}

function check(schema: Schema, json: JsonMessage, newest: number): Checker {
  const checker = new Checker(json);
  const valid = parseRange(json.validVersions);
  const flexible = parseRange(json.flexibleVersions);
  const within = { from: valid.from, to: Math.min(valid.to, newest) };
  checker.equal(schema.name, "versions", `${schema.min}-${schema.max}`, show(within));
  const from = flexible === NEVER ? null : flexible.from;
  checker.equal(schema.name, "flexible from", schema.flexibleFrom, from);
  checker.struct(schema.name, schema.body, json.fields, within);
  return checker;
}

/** The unstable flag stands on the request and holds for the response too. */
function stableMax(request: JsonMessage): number {
  const { to } = parseRange(request.validVersions);
  return request.latestVersionUnstable === true ? to - 1 : to;
}

function main(folder: string | undefined): number {
  if (folder === undefined) {
    console.error("Usage: check_schemas.ts FOLDER");
    return 2;
  }
  const checkers: Checker[] = [];
  for (const api of APIS) {
    const request = load(folder, `${api.name}Request`);
    for (const schema of [api.request, api.response] as readonly Schema[]) {
      const json = load(folder, schema.name);
      const checker = check(schema, json, stableMax(request));
      checker.equal(schema.name, "API key", api.key, json.apiKey);
      checkers.push(checker);
    }
  }
  for (const schema of [consumerProtocolSubscription, consumerProtocolAssignment]) {
    checkers.push(check(schema, load(folder, schema.name), Infinity));
  }
  const problems = checkers.flatMap((one) => one.problems);
  for (const problem of problems) console.error(problem);
  const fields = checkers.reduce((sum, one) => sum + one.fields, 0);
  console.log(`${checkers.length} messages, ${fields} fields, ${problems.length} differences`);
  return problems.length === 0 ? 0 : 1;
}

process.exitCode = main(process.argv[2]);
