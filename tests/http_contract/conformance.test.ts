/**
 * Random requests that the document allows, and some that it does not, against a node: whatever the answer is,
 * it is one that the document describes, and never a failure of ours.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import * as v from "valibot";
import { problem } from "../../src/http/api/answers.ts";
import { type Components, type JsonSchema, jsonSchemaOf } from "../../src/http/api/json_schema.ts";
import type { RouteDescription } from "../../src/http/api/route.ts";
import { DESCRIBED_ROUTES } from "../../src/http/app.ts";
import { createMemoryStore } from "../../src/object/memory.ts";
import { type RunningNode, startNode } from "../../src/node/node.ts";
import { createFakeClock } from "../support/fake_clock.ts";
import { nodeOptions } from "../support/node_options.ts";
import { testEnv } from "../support/test_env.ts";

/** Answers without end, those that are no answers, and those that call others. */
const PASSED_OVER = new Set(["streamTopic", "streamRecords", "streamToPartition"]);
const TAGS_PASSED_OVER = new Set(["sockets", "push"]);
/** Nobody moves the clock on. */
const WAITS = new Set(["wait", "max_wait_ms"]);
const COMMON = [400, 403, 500, 503];
const TOPICS = ["orders", "audit.log", "none", "", "a b", "\u{1f600}"];
const components: Components = new Map();

function integers(schema: JsonSchema): fc.Arbitrary<unknown> {
  const min = Number(schema["minimum"] ?? -5);
  const max = Number(schema["maximum"] ?? 1_000);
  return fc.oneof(
    fc.integer({ min, max: Math.min(max, min + 9) }),
    fc.constantFrom(min, max),
  );
}

function objects(schema: JsonSchema): fc.Arbitrary<unknown> {
  const properties = Object.entries((schema["properties"] ?? {}) as Record<string, JsonSchema>);
  const required = (schema["required"] ?? []) as string[];
  const fields = properties.map(([name, inner]): [string, fc.Arbitrary<unknown>] => [
    name,
    WAITS.has(name) ? fc.constant(0) : valuesOf(inner),
  ]);
  const record = fc.record(Object.fromEntries(fields), { requiredKeys: required });
  const more = schema["additionalProperties"];
  return typeof more === "object"
    ? fc.dictionary(fc.constantFrom("retention.ms", "x"), valuesOf(more as JsonSchema))
    : record;
}

function lists(schema: JsonSchema): fc.Arbitrary<unknown> {
  const pair = schema["prefixItems"] as JsonSchema[] | undefined;
  if (pair !== undefined) return fc.tuple(...pair.map(valuesOf));
  return fc.array(valuesOf((schema["items"] ?? {}) as JsonSchema), { maxLength: 3 });
}

function texts(schema: JsonSchema): fc.Arbitrary<unknown> {
  const pattern = schema["pattern"];
  if (typeof pattern !== "string") return fc.oneof(fc.string({ maxLength: 8 }), fc.constant("t"));
  return fc.oneof(
    { weight: 3, arbitrary: fc.constantFrom("orders", "0".repeat(32)) },
    { weight: 1, arbitrary: fc.string({ maxLength: 8 }) },
  );
}

const KINDS: Readonly<Record<string, (schema: JsonSchema) => fc.Arbitrary<unknown>>> = {
  integer: integers,
  number: integers,
  boolean: () => fc.boolean(),
  null: () => fc.constant(null),
  string: texts,
  array: lists,
  object: objects,
};

function valuesOf(schema: JsonSchema): fc.Arbitrary<unknown> {
  const ref = schema["$ref"];
  if (typeof ref === "string") return valuesOf(components.get(ref.split("/").at(-1)!)!);
  if ("const" in schema) return fc.constant(schema["const"]);
  if (Array.isArray(schema["enum"])) return fc.constantFrom(...schema["enum"]);
  if (Array.isArray(schema["anyOf"])) {
    return fc.oneof(...(schema["anyOf"] as JsonSchema[]).map(valuesOf));
  }
  const types = [schema["type"] ?? "any"].flat() as string[];
  return fc.oneof(...types.map((type) => KINDS[type]?.(schema) ?? fc.jsonValue({ maxDepth: 1 })));
}

const JUNK = fc.constantFrom<unknown>(
  "",
  "-1",
  "1e9",
  "9007199254740993",
  "\0",
  "nonsense",
  "\u{1f600}",
);

interface Sent {
  readonly path: string;
  readonly init: RequestInit;
}

function queries({ query }: RouteDescription): fc.Arbitrary<string> {
  const fields = Object.entries(query?.entries ?? {}).map(([name, field]) => {
    const good = valuesOf(jsonSchemaOf(field as v.GenericSchema, components));
    const values = WAITS.has(name) ? fc.constant(0) : fc.oneof({ weight: 9, arbitrary: good }, {
      weight: 1,
      arbitrary: JUNK,
    });
    return [name, values] as const;
  });
  return fc.record(Object.fromEntries(fields), { requiredKeys: [] }).map((given) =>
    new URLSearchParams(Object.entries(given).map(([name, value]) => [name, String(value)]))
      .toString()
  );
}

function bodies({ json, content }: RouteDescription): fc.Arbitrary<RequestInit> {
  const schemas = json === null ? content ?? {} : { "application/json": json };
  const types = Object.entries(schemas);
  if (types.length === 0) return fc.constant({});
  return fc.oneof(...types.map(([type, schema]) => {
    const isJson = type.endsWith("json") && schema !== null && schema.type !== "string";
    const good = isJson
      ? valuesOf(jsonSchemaOf(schema, components)).map((value) => JSON.stringify(value))
      : fc.string({ maxLength: 20 });
    const text = fc.oneof(
      { weight: 9, arbitrary: good },
      { weight: 1, arbitrary: fc.constantFrom("", "{", "[]", "null", '"\\ud800"') },
    );
    const headers = { "content-type": type === "*/*" ? "application/octet-stream" : type };
    return text.map((body) => ({ body, headers }));
  }));
}

function requests(route: RouteDescription): fc.Arbitrary<Sent> {
  const names = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!);
  const parts = fc.tuple(
    ...names.map((name) =>
      name === "topic"
        ? fc.oneof({ weight: 3, arbitrary: fc.constant("orders") }, fc.constantFrom(...TOPICS))
        : fc.constantFrom("0", "0", "1", "7", "x", "9007199254740993")
    ),
  );
  return fc.tuple(parts, queries(route), bodies(route)).map(([values, query, init]) => {
    let at = 0;
    const path = route.path.replaceAll(/\{\w+\}/g, () => encodeURIComponent(values[at++]!));
    return {
      path: query === "" ? path : `${path}?${query}`,
      init: { ...init, method: route.method },
    };
  });
}

function contentOf(route: RouteDescription, status: number, type: string) {
  const content = route.answers[status]?.content;
  return content?.[type] ?? content?.["*/*"] ?? null;
}

async function judge(node: RunningNode, route: RouteDescription, { path, init }: Sent) {
  const request = new Request(`http://node${path}`, init);
  const answer = await node.fetch(request);
  const { status } = answer;
  const what = `${route.method} ${path} ${
    typeof init.body === "string" ? init.body : ""
  }: ${status}`;
  const text = await answer.text();
  assert.ok(status < 500, `${what} ${text}`);
  const type = (answer.headers.get("content-type") ?? "").split(";")[0]!;
  // A path with an empty or strange part is another path.
  if (status === 404 && route.problems?.includes(404) !== true) return;
  if (status >= 400) {
    assert.ok(
      [...COMMON, ...route.problems ?? []].includes(status) || status === 404 || status === 405,
      what,
    );
    assert.equal(type, "application/problem+json", what);
    assert.ok(v.is(problem, JSON.parse(text)), `${what} ${text}`);
    return;
  }
  assert.ok(status in route.answers, what);
  const schema = contentOf(route, status, type);
  if (schema === null || !type.endsWith("/json")) return;
  const result = v.safeParse(schema, JSON.parse(text));
  assert.ok(result.success, `${what} ${text} ${result.issues?.[0]?.message}`);
}

test("whatever is asked, the answer is one that the document describes", async () => {
  const clock = createFakeClock();
  const node = await startNode(nodeOptions(createMemoryStore(clock), { env: testEnv({ clock }) }));
  const routes = DESCRIBED_ROUTES.filter(({ id, tag }) =>
    !PASSED_OVER.has(id) && !TAGS_PASSED_OVER.has(tag)
  );
  assert.ok(routes.length > 30);
  try {
    for (const route of routes) {
      await fc.assert(
        fc.asyncProperty(requests(route), (sent) => judge(node, route, sent)),
        { numRuns: 12 },
      );
    }
  } finally {
    await node.close();
  }
});
