/** The documentation tells the truth: links lead somewhere, generated pages are fresh, snippets run. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, normalize, resolve } from "node:path";
import { after, before, test } from "node:test";
import { currentApis, sameWords } from "../scripts/write_docs.ts";
import { type Broker, createBroker } from "../mod.ts";

const pages = [
  "README.md",
  "ARCHITECTURE.md",
  "CHANGELOG.md",
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

test("links lead to files that exist", () => {
  const broken: string[] = [];
  for (const page of pages) {
    for (const [, target] of readFileSync(page, "utf8").matchAll(/\]\((?!https?:)([^)#]+)/g)) {
      const path = normalize(join(dirname(page), target!));
      if (!existsSync(path)) broken.push(`${page} -> ${target}`);
    }
  }
  assert.ok(pages.length > 8);
  assert.deepEqual(broken, []);
});

test("docs/apis.md is what the handlers say", () => {
  const { written, rendered } = currentApis();
  assert.ok(sameWords(written, rendered), "run: bun scripts/write_docs.ts, then deno fmt");
});

test("commands of the README exist", () => {
  const { scripts } = JSON.parse(readFileSync("package.json", "utf8")) as {
    scripts: Record<string, string>;
  };
  const named = [...readFileSync("README.md", "utf8").matchAll(/^npm (?:run )?(\w+)$/gm)].map((
    [, name],
  ) => name!);
  assert.deepEqual(named, ["start", "test"]);
  for (const name of named) assert.ok(name in scripts, name);
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

test("TypeScript snippets run", async () => {
  const snippets = pages.flatMap(blocksOf).filter(({ language }) => language === "ts");
  assert.ok(snippets.length > 0, "no snippets were found");
  const folder = mkdtempSync("tests/snippet-");
  try {
    for (const [i, { page, code }] of snippets.entries()) {
      const file = join(folder, `${i}.ts`);
      writeFileSync(file, code.replaceAll('"skerry"', JSON.stringify(resolve("mod.ts"))));
      const { code: exit, output } = await run("node_modules/.bin/bun", [file]);
      assert.equal(exit, 0, `${page}: ${output}`);
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
});
