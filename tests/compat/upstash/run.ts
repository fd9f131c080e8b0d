/**
 * The unmodified client of Upstash's Kafka REST API against one broker, in Node and in workerd:
 *   npm run upstash -- [--clients DIRECTORY]
 * Client and runtime are installed into DIRECTORY and stay there. Ends with 1 where a case fails.
 */
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { startBroker } from "../../support/broker_process.ts";

const PACKAGES = ["@upstash/kafka@1.3.5", "miniflare@4", "esbuild@0.25"];
const INSTALL_MS_MAX = 300_000;
const RUN_MS_MAX = 120_000;
const TOPICS = ["a", "b"];

/** One program for each runtime; both print what the worker answers. */
const RUNNERS: Readonly<Record<string, string>> = {
  node: `import worker from "./bundle.mjs";
const answer = await worker.fetch(new Request("http://worker/"), { URL: process.env.UPSTASH_URL, RUN: "node" });
console.log(await answer.text());
process.exitCode = answer.ok ? 0 : 1;
`,
  workerd: `import { Miniflare } from "miniflare";
const bindings = { URL: process.env.UPSTASH_URL, RUN: "workerd" };
const runtime = new Miniflare({ modules: true, scriptPath: "bundle.mjs", bindings, compatibilityDate: "2025-01-01" });
const answer = await runtime.dispatchFetch("http://worker/");
console.log(await answer.text());
process.exitCode = answer.ok ? 0 : 1;
await runtime.dispose();
`,
};

function must(command: string, args: readonly string[], cwd: string): void {
  const options = { cwd, timeout: INSTALL_MS_MAX, encoding: "utf8" } as const;
  const { status, stderr } = spawnSync(command, args, options);
  if (status !== 0) throw new Error(`${command} ${args[0]} ended with ${status}: ${stderr}`);
}

/** A folder of its own: its package.json keeps the client out of ours. */
function install(directory: string): void {
  mkdirSync(directory, { recursive: true });
  const manifest = { name: "upstash-client", private: true, type: "module" };
  writeFileSync(join(directory, "package.json"), JSON.stringify(manifest));
  copyFileSync("tests/compat/upstash/cases.js", join(directory, "cases.js"));
  writeFileSync(join(directory, "entry.js"), 'export { worker as default } from "./cases.js";\n');
  for (const [name, text] of Object.entries(RUNNERS)) {
    writeFileSync(join(directory, `${name}.mjs`), text);
  }
  must("npm", ["install", "--no-audit", "--no-fund", "--no-save", ...PACKAGES], directory);
  const args = ["esbuild", "entry.js", "--bundle", "--format=esm", "--outfile=bundle.mjs"];
  must("npx", args, directory);
}

async function createTopics(http: string, run: string): Promise<void> {
  for (const name of TOPICS) {
    const answer = await fetch(`${http}/v1/topics`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ name: `upstash-${run}-${name}`, partitions: 1 }),
    });
    if (answer.status !== 201) throw new Error(await answer.text());
  }
}

async function main(): Promise<number> {
  const { values } = parseArgs({ options: { clients: { type: "string" } } });
  const directory = resolve(values.clients ?? tmpdir(), "upstash");
  install(directory);
  const broker = await startBroker({ args: ["--store", "memory:"] });
  let failed = 0;
  try {
    for (const run of Object.keys(RUNNERS)) {
      await createTopics(broker.http, run);
      const env = { ...process.env, UPSTASH_URL: `${broker.http}/upstash` };
      const options = { cwd: directory, env, timeout: RUN_MS_MAX, encoding: "utf8" } as const;
      const { status, stdout, stderr } = spawnSync("node", [`${run}.mjs`], options);
      console.log(`${run}\n${stdout}${status === 0 ? "" : stderr}`);
      if (status !== 0) failed += 1;
    }
  } finally {
    await broker.stop();
  }
  return failed === 0 ? 0 : 1;
}

process.exitCode = await main();
