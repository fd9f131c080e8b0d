/** House rules no linter knows: who may import whom, which packages, how long a file may be. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
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
    packages: /^(node:|ws$|hysnappy$|@aws-sdk\/client-s3$|@smithy\/fetch-http-handler$)/,
  },
  client: { imports: [] },
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

/** Rows of a table: cells without their spaces. */
function rowsOf(markdown: string): string[][] {
  return [...markdown.matchAll(/^\| (.*) \|$/gm)].map(([, row]) =>
    row!.split(" | ").map((cell) => cell.trim())
  );
}

test("every format has samples of all its versions, and every sample belongs to a format", () => {
  const page = readFileSync("docs/formats.md", "utf8");
  const rows = rowsOf(page.slice(page.indexOf("## Versions"), page.indexOf("## Differences")));
  const code = new Set(rows.flatMap(([, file]) => /^`(src.*)`$/.exec(file!)?.[1] ?? []));
  const described = [...page.matchAll(/<!-- from the code: (\S+) -->/g)].map(([, file]) => file!);
  assert.ok(described.length >= 14, "no layouts were found");
  assert.deepEqual(described.filter((file) => !code.has(file)), [], "formats without a sample");
  const listed = rows.flatMap(([, , , samples]) => {
    const [, name, versions] = /^`([\w-]+)`: (.*)$/.exec(samples!) ?? [];
    return versions?.split(", ").map((version) => `${name} ${version}`) ?? [];
  });
  const root = "tests/golden/samples";
  const found = readdirSync(root).flatMap((name) => {
    const bucket = /^(bucket)-(\d+)$/.exec(name);
    if (bucket !== null) return [`bucket ${bucket[2]}`];
    return readdirSync(posix.join(root, name)).map((file) => `${name} ${file.split(".")[0]}`);
  });
  assert.deepEqual([...new Set(listed)].toSorted(), found.toSorted());
});

/** Numbers of AutoMQ's pull requests that mended a fault which a broker like this one can have. */
const MENDED_ELSEWHERE = `
  3064 3057 3059 3056 3339 3530 2653 3307 3350 3512 3513 3514 3517 3485 3465 3474 2291 2888 2886 2805
  3000 2896 3088 2542 3198 2524 3418 3392 3527 3473 3476 3483 3425 2759 3097 2594 3049 3398 3412 3504
  3480 3442 2750 2427 2294 2109 2263 2115 3539 3370 3343 2720`.trim().split(/\s+/);

test("every fault of AutoMQ's list has a test here, or a reason", () => {
  const page = readFileSync("docs/storage.md", "utf8");
  const section = page.slice(page.indexOf("## What went wrong elsewhere"));
  const rows = rowsOf(section).filter(([fault]) => /^\d{4}/.test(fault!));
  const numbers = rows.flatMap(([fault]) => /^[\d, ]+/.exec(fault!)![0].match(/\d{4}/g)!);
  assert.deepEqual(numbers.toSorted(), MENDED_ELSEWHERE.toSorted());
  for (const [fault, here] of rows) {
    const tests = [...here!.matchAll(/`((?:src|tests)\/[\w/.]+\.test\.ts)`/g)].map(([, file]) =>
      file!
    );
    assert.ok(tests.length > 0 || here!.startsWith("cannot occur: "), `${fault}: ${here}`);
    assert.deepEqual(tests.filter((file) => !existsSync(file)), [], fault);
  }
});

test("every part in docs/storage.md has a file and a test that exist", () => {
  const page = readFileSync("docs/storage.md", "utf8");
  const rows = rowsOf(page.slice(0, page.indexOf("## What went wrong elsewhere")))
    .filter(([name]) => name !== "name" && !name!.startsWith("---"));
  assert.ok(rows.length > 60, "no rows were found");
  for (const [name, , file, proof] of rows) {
    const named = (cell: string | undefined, pattern: RegExp) =>
      [...(cell ?? "").matchAll(pattern)].map(([, path]) => path!);
    const files = named(file, /`(src\/[\w/.]+\.ts)`/g);
    const proofs = named(proof, /`((?:src|tests)\/[\w/.]+\.test\.ts)`/g);
    assert.ok(files.length > 0 && proofs.length > 0, name);
    assert.deepEqual([...files, ...proofs].filter((path) => !existsSync(path)), [], name);
  }
});

test("each of the thirty faults is a test by its number, and a row in docs/storage.md that names it", () => {
  const page = readFileSync("docs/storage.md", "utf8");
  const rows = rowsOf(page.slice(page.indexOf("## Thirty faults")))
    .filter(([fault]) => /^\d{2}$/.test(fault!));
  const numbers = Array.from({ length: 30 }, (_, i) => String(i + 1).padStart(2, "0"));
  assert.deepEqual(rows.map(([fault]) => fault), numbers);
  for (const [fault, , , proof] of rows) {
    const proofs = [...proof!.matchAll(/`([\w/.]+\.test\.ts)`/g)].map(([, path]) => path!);
    assert.deepEqual(proofs.filter((path) => !existsSync(path)), [], fault);
    assert.match(readFileSync(proofs[0]!, "utf8"), new RegExp(`test\\([^\\n]*fault ${fault}: `));
  }
});

test("each of the eighteen invariants has a row in docs/testing.md, with checkers that name it", () => {
  const page = readFileSync("docs/testing.md", "utf8");
  const section = page.slice(page.indexOf("### Where each invariant is checked"));
  const rows = rowsOf(section.slice(0, section.indexOf("\n### ", 4)))
    .filter(([name]) => /^I\d+$/.test(name!));
  const names = Array.from({ length: 18 }, (_, i) => `I${i + 1}`);
  assert.deepEqual(rows.map(([name]) => name), names);
  const scenarios = {
    broker: readWorld("tests/sim/scenario.ts"),
    storage: readWorld("tests/sim/storage/scenario.ts"),
  };
  for (const [name, , checkers, levels] of rows) {
    const files = [...checkers!.matchAll(/`([\w/.]+\.ts)`/g)].map(([, file]) => file!);
    assert.ok(files.length > 0, name);
    const named = new RegExp(`\\b${name}\\b`);
    const invariants = readFileSync("src/controller/invariants.ts", "utf8");
    for (const file of files) {
      const text = readFileSync(file, "utf8");
      const isNamed = named.test(text) ||
        text.includes("controller/invariants.ts") && named.test(invariants);
      assert.ok(isNamed, `${file} does not name ${name}`);
    }
    for (const level of levels!.split(", ").filter((one) => one !== "models")) {
      const world = scenarios[level as keyof typeof scenarios];
      assert.ok(files.some((file) => world.has(file)), `${name} is not checked at ${level}`);
    }
  }
});

/** A scenario and all files of the simulator that it is made of. */
function readWorld(scenario: string, found = new Set<string>()): Set<string> {
  if (found.has(scenario)) return found;
  found.add(scenario);
  for (const [, from] of readFileSync(scenario, "utf8").matchAll(/from "(\.[^"]+)"/g)) {
    const path = posix.join(posix.dirname(scenario), from!);
    if (path.startsWith("tests/sim/")) readWorld(path, found);
  }
  return found;
}
