import assert from "node:assert/strict";
import { test } from "node:test";
import { createHttpTopic } from "../../../tests/support/http_topic.ts";
import { DESCRIBED_ROUTES } from "../app.ts";
import { documentOf } from "./document.ts";

type Json = Record<string, unknown>;

interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly schema: Json;
  }[];
  readonly requestBody?: { readonly content: Record<string, { readonly schema?: Json }> };
  readonly responses: Record<string, Json>;
}

interface Document {
  readonly openapi: string;
  readonly paths: Record<string, Record<string, Operation>>;
  readonly tags: readonly { readonly name: string }[];
  readonly components: Record<string, Record<string, Json>>;
}

const document = documentOf(DESCRIBED_ROUTES, "1.2.3") as unknown as Document;

function operations(): { path: string; method: string; operation: Operation }[] {
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation }))
  );
}

function refsIn(value: unknown): string[] {
  if (typeof value !== "object" || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) =>
    name === "$ref" ? [inner as string] : refsIn(inner)
  );
}

test("references lead somewhere, and nothing is described that nobody refers to", () => {
  const refs = new Set(refsIn(document));
  const known = Object.entries(document.components).flatMap(([kind, parts]) =>
    Object.keys(parts).map((name) => `#/components/${kind}/${name}`)
  );
  assert.deepEqual([...refs].toSorted(), known.toSorted());
  assert.ok(refs.has("#/components/schemas/Record"));
});

test("operations have names of their own, known tags, and the parameters of their paths", () => {
  const all = operations();
  assert.ok(all.length > 30);
  assert.equal(new Set(all.map(({ operation }) => operation.operationId)).size, all.length);
  const tags = new Set(document.tags.map(({ name }) => name));
  for (const { path, operation } of all) {
    assert.ok(operation.tags.every((tag) => tags.has(tag)), path);
    const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name!);
    const parameters = (operation.parameters ?? []).filter((one) => one.in === "path");
    assert.deepEqual(parameters.map(({ name }) => name), named, path);
  }
});

test("what a schema says of a parameter is what the parameter takes", () => {
  const { parameters = [] } = document
    .paths["/v1/topics/{topic}/partitions/{partition}/records"]!["get"]!;
  const schemas = Object.fromEntries(parameters.map(({ name, schema }) => [name, schema]));
  assert.deepEqual(schemas["limit"], {
    type: "integer",
    minimum: 1,
    maximum: 10_000,
    default: 500,
  });
  assert.deepEqual(schemas["isolation"], {
    type: "string",
    enum: ["read_uncommitted", "read_committed"],
    default: "read_uncommitted",
  });
  assert.deepEqual(schemas["offset"], {
    anyOf: [
      { type: "string", enum: ["earliest", "latest"] },
      { type: "integer", minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
    ],
  });
  assert.deepEqual(schemas["partition"], { type: "integer", minimum: 0, maximum: 2 ** 31 - 1 });
});

/** Dialects of others have documents of their own. */
const MOUNTS = /^\/(upstash|rest|v3|kafka\/v3|streams|v1\/stream)(\/|$)/;

test("the table is all that there is: every native route is described, and every described one is there", async () => {
  const { app } = createHttpTopic();
  const described = new Set(
    DESCRIBED_ROUTES.map(({ method, path }) => `${method} ${path.replaceAll(/\{(\w+)\}/g, ":$1")}`),
  );
  const there = new Set(
    app.routes.filter(({ method, path }) => method !== "ALL" && !MOUNTS.test(path))
      .map(({ method, path }) => `${method} ${path}`),
  );
  assert.deepEqual([...there].toSorted(), [...described].toSorted());
  const answer = await app.request("/openapi.json");
  assert.equal(answer.headers.get("content-type"), "application/json");
  const served = await answer.json() as Document;
  assert.deepEqual(served.paths, document.paths);
  assert.equal(served.openapi, "3.1.0");
});

test("a parameter that is not described is refused on every route that checks parameters", async () => {
  const { app } = createHttpTopic();
  const probes = operations().filter(({ operation }) => operation.tags[0] !== "system");
  for (const { path, method } of probes) {
    const url = path.replaceAll(/\{(\w+)\}/g, (_, name) => name === "topic" ? "t" : "0");
    const answer = await app.request(`${url}?nonsense=1`, { method: method.toUpperCase() });
    assert.equal(answer.status, 400, `${method} ${path}`);
    assert.match(await answer.text(), /nonsense/, `${method} ${path}`);
  }
});
