/** House rules no linter knows: who may import whom, which packages, how long a file may be. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { posix } from "node:path";
import { test } from "node:test";

interface Layer {
  /** Folders it may import besides itself. */
  readonly imports: readonly string[];
  readonly packages?: RegExp;
}

const CORE = [
  "lib",
  "env",
  "protocol",
  "object",
  "storage",
  "stream",
  "log",
  "controller",
  "broker",
];

/** The law of ARCHITECTURE.md, section "Layers". */
const LAYERS: Record<string, Layer> = {
  lib: { imports: [] },
  env: { imports: ["lib"] },
  protocol: { imports: ["lib", "env"] },
  object: { imports: ["lib", "env"] },
  storage: { imports: ["lib", "env", "object"] },
  stream: { imports: ["lib", "env", "storage"] },
  log: { imports: ["lib", "env", "protocol", "storage", "stream"] },
  controller: { imports: ["lib", "env", "object", "storage"] },
  broker: { imports: ["lib", "env", "protocol", "stream", "log", "controller"] },
  inspect: { imports: ["lib", "env", "protocol", "object", "storage", "log", "controller"] },
  config: { imports: ["lib"], packages: /^valibot$/ },
  http: {
    imports: ["lib", "env", "config", "protocol", "log", "broker"],
    packages: /^(hono|valibot)(\/|$)/,
  },
  node: { imports: [...CORE, "config", "http"] },
  adapters: {
    imports: ["lib", "env", "object", "config", "http", "node"],
    packages: /^(node:|hysnappy$|@aws-sdk\/client-s3$|@smithy\/fetch-http-handler$)/,
  },
  cli: { imports: [...CORE, "inspect", "config", "http", "node", "adapters"], packages: /^node:/ },
};

/** The engine's types may be named above it; its parts may not be touched there. */
const TYPES_ONLY: Record<string, readonly string[]> = {
  log: ["storage"],
  broker: ["stream"],
  controller: ["storage"],
};

const LINES_MAX = 400;
const IMPORT =
  /(?:^|\n)\s*(import|export)\s+(type\s)?[^;'"]*?from\s*["']([^"']+)["']|(?:^|\n)\s*import\s*["']([^"']+)["']|import\(\s*["']([^"']+)["']/g;
const AMBIENT = /\bnew Date\(\s*\)/;

interface SourceFile {
  readonly path: string;
  readonly text: string;
}

function readTree(root: string): SourceFile[] {
  return readdirSync(root, { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts"))
    .map((file) => posix.join(root, file.replaceAll("\\", "/")))
    .map((path) => ({ path, text: readFileSync(path, "utf8") }));
}

const all = readTree("src");
const files = all.filter(({ path }) => !path.endsWith(".test.ts"));

function layerOf(path: string): string {
  return path.split("/")[1]!;
}

function importsOf(text: string): { target: string; typeOnly: boolean }[] {
  return [...text.matchAll(IMPORT)].map((match) => ({
    target: match[3] ?? match[4] ?? match[5]!,
    typeOnly: match[2] !== undefined,
  }));
}

test("imports follow the layer table", () => {
  assert.ok(files.length > 50, "no source files were read");
  const wrong: string[] = [];
  for (const { path, text } of files) {
    const from = layerOf(path);
    const layer = LAYERS[from];
    assert.ok(layer !== undefined, `${path}: folder ${from} is not in the layer table`);
    for (const { target, typeOnly } of importsOf(text)) {
      if (!target.startsWith(".")) {
        if (layer.packages?.test(target) !== true) wrong.push(`${path} imports ${target}`);
        continue;
      }
      const to = layerOf(posix.join(posix.dirname(path), target));
      if (to === from) continue;
      if (!layer.imports.includes(to)) wrong.push(`${path} imports ${target}`);
      else if (TYPES_ONLY[from]?.includes(to) === true && !typeOnly && !isTypeHeavy(text, target)) {
        wrong.push(`${path} imports values of ${target}`);
      }
    }
  }
  assert.deepEqual(wrong, []);
});

/** An import whose names all carry `type`, or which takes helpers of a port file. */
function isTypeHeavy(text: string, target: string): boolean {
  const at = text.indexOf(`"${target}"`);
  const clause = text.slice(text.lastIndexOf("import", at), at);
  const names = clause.match(/\{([^}]*)\}/)?.[1]?.split(",").map((name) => name.trim()).filter(
    Boolean,
  );
  return names?.every((name) => name.startsWith("type ")) === true ||
    target.endsWith("/stream_record.ts");
}

test("no file is too long", () => {
  const long = files.filter(({ text }) => text.split("\n").length > LINES_MAX + 1).map(({ path }) =>
    path
  );
  assert.deepEqual(long, []);
});

test("every file says what it is for", () => {
  const mute = files.filter(({ text }) => !/^(#!.*\n)?\/\*\*/.test(text)).map(({ path }) => path);
  assert.deepEqual(mute, []);
});

test("the core reads no ambient date", () => {
  const wrong = files.filter(({ path, text }) =>
    !/^src\/(adapters|cli)\//.test(path) && AMBIENT.test(text)
  );
  assert.deepEqual(wrong.map(({ path }) => path), []);
});

test("nothing is left to be done in a comment", () => {
  const marks = new RegExp(["TO", "DO|FIX", "ME|XX", "X"].join(""));
  assert.deepEqual(all.filter(({ text }) => marks.test(text)).map(({ path }) => path), []);
});
