/** The documentation tells the truth: links lead somewhere, generated pages are fresh, snippets run. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, normalize, resolve } from "node:path";
import { after, before, test } from "node:test";
import { generatedPages, sameWords } from "../scripts/write_docs.ts";
import { parseArguments, TOOL_OPTIONS } from "../src/cli/args.ts";
import { resolveConfig } from "../src/config/config.ts";
import { environmentName, OPTION_NAMES } from "../src/config/options.ts";
import { METRICS } from "../src/env/metric_catalog.ts";
import { type Broker, createBroker } from "../mod.ts";

const pages = [
  "README.md",
  "ARCHITECTURE.md",
  "CHANGELOG.md",
  "CONTRIBUTING.md",
  ...readdirSync("docs", { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".md"))
    .map((file) => `docs/${file.replaceAll("\\", "/")}`),
  "tests/compat/README.md",
];

interface Block {
  readonly page: string;
  readonly language: string;
  readonly code: string;
}

function blocksOf(page: string): Block[] {
  const text = readFileSync(page, "utf8");
  return [...text.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)]
    .map(([, language, code]) => ({ page, language: language!, code: code! }));
}

let broker: Broker;
before(async () => {
  broker = await createBroker({ store: "memory:" });
});
after(() => broker.close());

/** Headings as the anchors that GitHub makes of them. */
function anchorsOf(page: string): Set<string> {
  const headings = readFileSync(page, "utf8").matchAll(/^#+ (.+)$/gm);
  return new Set(
    [...headings].map(([, text]) =>
      text!.toLowerCase().replace(/[^\p{L}\p{N} _-]/gu, "").replaceAll(" ", "-")
    ),
  );
}

test("links lead to files and headings that exist", () => {
  const broken: string[] = [];
  for (const page of pages) {
    for (const [, target] of readFileSync(page, "utf8").matchAll(/\]\((?!https?:)([^)]+)\)/g)) {
      const [file = "", anchor] = target!.split("#");
      const path = file === "" ? page : normalize(join(dirname(page), file));
      const found = existsSync(path) && (anchor === undefined || anchorsOf(path).has(anchor));
      if (!found) broken.push(`${page} -> ${target}`);
    }
  }
  assert.ok(pages.length > 20);
  assert.deepEqual(broken, []);
});

test("generated parts are what the code says", () => {
  const all = generatedPages();
  const stale = all.filter(({ written, rendered }) => !sameWords(written, rendered));
  assert.ok(all.length >= 5);
  assert.deepEqual(stale.map(({ path }) => path), [], "run: bun scripts/write_docs.ts");
});

/** Every text of the kind that a page mentions, with the page for the message. */
function mentions(pattern: RegExp): { page: string; name: string }[] {
  return pages.flatMap((page) =>
    [...readFileSync(page, "utf8").matchAll(pattern)].map(([, name]) => ({ page, name: name! }))
  );
}

function sourceText(): string {
  return readdirSync("src", { recursive: true, encoding: "utf8" })
    .filter((file) => file.endsWith(".ts") && !file.endsWith(".test.ts"))
    .map((file) => readFileSync(join("src", file), "utf8")).join("\n");
}

test("npm commands exist", () => {
  const { scripts } = JSON.parse(readFileSync("package.json", "utf8")) as {
    scripts: Record<string, string>;
  };
  const named = mentions(/(?:^|`)npm (?:run )?([\w-]+)/gm);
  assert.ok(named.some(({ page, name }) => page === "README.md" && name === "start"));
  assert.ok(named.some(({ page, name }) => page === "README.md" && name === "test"));
  assert.deepEqual(named.filter(({ name }) => !(name in scripts) && name !== "install"), []);
});

test("options and variables exist", () => {
  const known = new Set<string>([...OPTION_NAMES, "set", "config", "help", "version"]);
  const tools = Object.keys(TOOL_OPTIONS);
  const serve = mentions(/`--([a-z][a-z0-9-]+)/g).filter(({ page }) =>
    page === "README.md" ? false : page.startsWith("docs/operations") || page === "docs/http.md"
  );
  assert.ok(serve.length >= OPTION_NAMES.length);
  assert.deepEqual(serve.filter(({ name }) => !known.has(name) && !tools.includes(name)), []);
  const variables = new Set([...known].map(environmentName));
  assert.deepEqual(
    mentions(/\b(SKERRY_[A-Z0-9_]+)/g).filter(({ name }) => !variables.has(name)),
    [],
  );
});

test("docs/operations.md lists every metric, and no other", () => {
  const catalog = readFileSync("src/env/metric_catalog.ts", "utf8");
  const emitting = sourceText().replace(catalog, "");
  const inCode = new Set(emitting.match(/(?<=")skerry_[a-z_]+(?=")/g));
  const listed = mentions(/^\| `(skerry_[a-z_]+)`/gm).map(({ name }) => name);
  assert.ok(listed.length > 20);
  const hint = "rows stand in src/env/metric_catalog.ts; then run: bun scripts/write_docs.ts";
  assert.deepEqual(Object.keys(METRICS).toSorted(), [...inCode].toSorted(), hint);
  assert.deepEqual(listed.toSorted(), Object.keys(METRICS).toSorted(), hint);
});

test("docs/storage.md has a row for every command of the metadata", () => {
  const types = readFileSync("src/controller/command.ts", "utf8").split("export type Refusal")[0]!
    .matchAll(/readonly type: "([a-z-]+)"/g);
  const rows = readFileSync("docs/storage.md", "utf8").split("## Metadata")[1]!.split("\n## ")[0]!;
  const names = [...rows.matchAll(/^\| ([^|]+?) +\|/gm)].flatMap(([, name]) => name!.split(", "));
  const commands = [...types].map(([, type]) => type!);
  assert.ok(commands.length >= 25);
  assert.deepEqual(commands.filter((command) => !names.includes(command)), []);
});

test("files, folders and properties that pages name exist", () => {
  const source = sourceText();
  const code = mentions(/`((?:src|tests|scripts|docs)\/[\w./-]+)`/g);
  const isThere = ({ name }: { name: string }) => existsSync(name) || name.includes("NN_");
  assert.deepEqual(code.filter((one) => !isThere(one)), []);
  const short = mentions(/`((?:lib|env|protocol|object|controller|log|broker)\/[\w/]+\.ts)`/g);
  assert.deepEqual(short.filter(({ name }) => !existsSync(join("src", name))), []);
  const metrics = mentions(/`(skerry\.[a-z.]+)[=`]/g);
  assert.deepEqual(metrics.filter(({ name }) => !source.includes(`"${name}"`)), []);
});

test("JSON examples parse, and the configuration file is accepted", () => {
  const examples = pages.flatMap(blocksOf).filter(({ language }) => language === "json");
  const values = examples.map(({ code }) => JSON.parse(code) as Record<string, unknown>);
  const files = values.filter((value) => "store" in value);
  assert.ok(files.length > 0);
  for (const value of files) {
    const resolved = resolveConfig({
      flags: {},
      sets: [],
      environment: { AWS_ACCESS_KEY_ID: "a", AWS_SECRET_ACCESS_KEY: "b" },
      file: { name: "example.json", value },
    });
    assert.ok(resolved.ok, JSON.stringify(resolved));
  }
});

/** What other systems call these things; each has another word here, or another meaning. */
const FOREIGN = [
  ["chunk file", "data object"],
  ["WAL segment", "slot"],
  ["offset commit point", "confirm offset"],
  ["tombstoned object", "destroyed object"],
  ["stream-set object", "stream set object"],
  ["high water mark", "high watermark"],
  ["leader term", "leader epoch"],
  ["broker epoch", "node epoch"],
] as const;

test("pages use the glossary's words", () => {
  const glossary = readFileSync("docs/glossary.md", "utf8");
  const words = [...glossary.matchAll(/^\| ([^|]+?) +\|/gm)].map(([, word]) => word!).slice(2);
  assert.deepEqual(words, words.toSorted((a, b) => a.toLowerCase() < b.toLowerCase() ? -1 : 1));
  const all = pages.filter((page) => page !== "docs/glossary.md")
    .map((page) => readFileSync(page, "utf8")).join("\n").replace(/\s+/g, " ").toLowerCase();
  const unused = words.filter((word) => !all.includes(word.replace(/ \(.*/, "").toLowerCase()));
  assert.deepEqual(unused, [], "words that nothing uses");
  for (const [foreign, ours] of FOREIGN) {
    assert.ok(!all.includes(foreign.toLowerCase()), `say "${ours}", not "${foreign}"`);
  }
});

test("decisions are numbered, dated and complete", () => {
  const files = readdirSync("docs/decisions").toSorted();
  for (const [i, file] of files.entries()) {
    const text = readFileSync(join("docs/decisions", file), "utf8");
    assert.equal(Number(file.slice(0, 4)), i + 1, file);
    assert.match(text, new RegExp(`^# ${i + 1}\\. .+\\n\\n\\d{4}-\\d\\d-\\d\\d\\n`), file);
    for (const part of ["Context", "Choice", "Rejected", "Consequence"]) {
      assert.ok(text.includes(`**${part}.**`), `${file} lacks ${part}`);
    }
  }
});

test("clients are counted as in the table of docs/compat.md", () => {
  const words = ["thirteen", "fourteen", "fifteen", "sixteen", "seventeen"];
  const table = readFileSync("docs/compat.md", "utf8").split("## Clients")[1]!;
  const columns = table.trim().split("\n")[0]!.split("|").length - 3;
  for (const page of ["README.md", "CHANGELOG.md"]) {
    const text = readFileSync(page, "utf8").replace(/\s+/g, " ");
    const [, said] = /what (?:each of )?(\w+) clients/.exec(text) ?? [];
    assert.equal(said, words[columns - 13], page);
  }
});

test("docs/durability.md names tests that exist", () => {
  const page = readFileSync("docs/durability.md", "utf8").replace(/\s+/g, " ");
  const named = [...page.matchAll(/`([\w./]+\.test\.ts)`(?:: "([^"]+)")?/g)];
  assert.ok(named.length > 15);
  const missing = named.filter(([, file, name = ""]) =>
    !readFileSync(file!, "utf8").includes(name)
  );
  assert.deepEqual(missing.map(([text]) => text), []);
});

/** Lines of shell snippets, with the lines that they go on in. */
function shellLines(): { page: string; words: string[] }[] {
  return pages.flatMap(blocksOf).filter(({ language }) => language === "sh").flatMap(
    ({ page, code }) =>
      code.replaceAll("\\\n", " ").trim().split("\n").map((line) => ({
        page,
        words: line.trim().split(/\s+/),
      })),
  );
}

test("serve snippets are accepted as they stand", () => {
  const serving = shellLines().filter(({ words }) =>
    /^(\.\/dist\/)?skerry$/.test(words[0]!) && words[1] === "serve"
  );
  assert.ok(serving.length >= 2);
  for (const { page, words } of serving) {
    const { flags, sets, errors } = parseArguments(words.slice(1));
    assert.deepEqual(errors, [], page);
    const environment = { AWS_ACCESS_KEY_ID: "a", AWS_SECRET_ACCESS_KEY: "b" };
    const resolved = resolveConfig({ flags, sets, environment, file: null });
    assert.ok(resolved.ok, `${page}: ${JSON.stringify(resolved)}`);
  }
});

/** Run or checked by a test of its own, here or in `tests/e2e/binary.test.ts`. */
const TESTED = /^(curl|printf|(\.\/dist\/)?skerry|npm|npx|bun|export|\.\/compile\.sh)$/;

test("every other shell snippet names a file that can be run", () => {
  const others = shellLines().map(({ page, words }) => ({
    page,
    command: words.find((word) => !/^[A-Z]+=/.test(word))!,
  })).filter(({ command }) => !TESTED.test(command));
  assert.ok(others.some(({ page }) => page === "tests/compat/README.md"));
  for (const { page, command } of others) {
    assert.ok(existsSync(command), `${page}: ${command}`);
    assert.ok((statSync(command).mode & 1) !== 0, `${page}: ${command} cannot be run`);
  }
});

const hasCurl = spawnSync("curl", ["--version"]).status === 0;

/** Without blocking: the broker that answers lives in this process. */
function run(
  command: string,
  args: readonly string[],
): Promise<{ code: number | null; output: string }> {
  return new Promise((done) => {
    const child = spawn(command, [...args]);
    let output = "";
    child.stdout.on("data", (chunk: { toString(): string }) => void (output += chunk.toString()));
    child.stderr.on("data", (chunk: { toString(): string }) => void (output += chunk.toString()));
    child.on("exit", (code) => done({ code, output }));
  });
}

test("curl snippets work as they stand", { skip: !hasCurl }, async () => {
  const snippets = pages.flatMap(blocksOf).filter(({ language, code }) =>
    language === "sh" && code.startsWith("curl")
  );
  assert.ok(snippets.length >= 4, "no snippets were found");
  for (const { page, code } of snippets) {
    const script = code.replaceAll("http://127.0.0.1:8080", broker.http.url).replaceAll(
      "curl ",
      "curl -sS --fail-with-body ",
    );
    const { code: exit, output } = await run("sh", ["-ec", script]);
    assert.equal(exit, 0, `${page}: ${code}${output}`);
  }
});

test("skerry snippets of the tools work as they stand", async () => {
  const snippets = pages.flatMap(blocksOf).filter(({ language, code }) =>
    language === "sh" && /^skerry (inspect|fsck|copy|features|cost)/.test(code)
  );
  assert.ok(snippets.length >= 3, "no snippets were found");
  const folder = mkdtempSync(join(tmpdir(), "skerry-docs-"));
  try {
    const data = join(folder, "skerry-data");
    const node = await createBroker({ store: `dir:${data}` });
    const records = `${node.http.url}/v1/topics/greetings/records`;
    assert.ok((await fetch(records, { method: "POST", body: "hello" })).ok);
    await node.close();
    const skerry = `${resolve("node_modules/.bin/bun")} ${resolve("src/cli/main.ts")}`;
    // Side by side: each starts processes of its own and mostly waits.
    await Promise.all(snippets.map(async ({ page, code }) => {
      const script = code.replaceAll("http://127.0.0.1:8080", broker.http.url)
        .replaceAll(/^skerry /gm, `${skerry} `);
      const { code: exit, output } = await run("sh", ["-ec", `cd ${folder}\n${script}`]);
      assert.equal(exit, 0, `${page}: ${code}${output}`);
    }));
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("docs/cli.md works from top to bottom, and so does the example of the README", async () => {
  const readme = blocksOf("README.md").filter(({ code }) => /^printf .*skerry/.test(code));
  const blocks = [...blocksOf("docs/cli.md"), ...readme].filter(({ language }) =>
    language === "sh"
  );
  assert.equal(readme.length, 1);
  assert.ok(blocks.length >= 6, "no snippets were found");
  const node = await createBroker({
    store: "memory:",
    httpListen: "off",
    kafka: { "group.initial.rebalance.delay.ms": "0" },
  });
  try {
    const main = `${resolve("node_modules/.bin/bun")} ${resolve("src/cli/main.ts")}`;
    const skerry = `skerry() { ${main} "$@" -b ${node.kafka.host}:${node.kafka.port}; }`;
    const script = [skerry, ...blocks.map((block) => block.code)].join("\n");
    const { code, output } = await run("sh", ["-exc", script]);
    assert.equal(code, 0, output);
  } finally {
    await node.close();
  }
});

test("TypeScript snippets run", async () => {
  const snippets = pages.flatMap(blocksOf).filter(({ language }) => language === "ts");
  assert.ok(snippets.length > 0, "no snippets were found");
  const folder = mkdtempSync("tests/snippet-");
  try {
    for (const [i, { page, code }] of snippets.entries()) {
      const file = join(folder, `${i}.ts`);
      const local = code.replaceAll("http://127.0.0.1:8080", broker.http.url)
        .replaceAll('"skerry"', JSON.stringify(resolve("mod.ts")))
        .replaceAll('"skerry/client"', JSON.stringify(resolve("src/client/mod.ts")));
      writeFileSync(file, local);
      const { code: exit, output } = await run("node_modules/.bin/bun", [file]);
      assert.equal(exit, 0, `${page}: ${output}`);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("docs/testing.md lists every folder of tests, and every file of faults", () => {
  const page = readFileSync("docs/testing.md", "utf8");
  const folders = readdirSync("tests", { withFileTypes: true })
    // A run of the snippets that was broken off leaves its folder.
    .filter((entry) => entry.isDirectory() && !entry.name.startsWith("snippet-"))
    .map(({ name }) => `\`tests/${name}\``);
  const faults = readdirSync("tests/faults")
    .filter((name) => name.endsWith(".test.ts") && !name.startsWith("thirty_"))
    .map((name) => `\`${name}\``);
  assert.ok(folders.length > 5 && faults.length > 5);
  assert.deepEqual([...folders, ...faults].filter((name) => !page.includes(name)), []);
});
