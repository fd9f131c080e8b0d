/**
 * The conformance tests of the Durable Streams protocol, against one broker, and their table in docs/http_compat.md:
 *   npm run durable-streams -- [--clients DIRECTORY] [--url BASE] [--no-docs]
 * They are installed into DIRECTORY and stay there. Ends with 1 where a group fails that is claimed.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import process from "node:process";
import { parseArgs } from "node:util";
import { startBroker } from "../../support/broker_process.ts";
import { excluded, groupsOf, type Said, table } from "./groups.ts";

const SUITE = "@durable-streams/server-conformance-tests";
const VERSION = "0.3.6";
const DOC = "docs/http_compat.md";
const REGION = /(<!-- durable streams -->\n)[\s\S]*?(<!-- end -->)/;
const INSTALL_MS_MAX = 300_000;
const RUN_MS_MAX = 300_000;
/** Fewer than this did not run as a whole. */
const TESTS_MIN = 300;
/** The suite looks at preflights, and there are none without origins. */
const ORIGINS = ["--set", "skerry.http.cors.origins=*"];

function must(command: string, args: readonly string[], cwd: string, timeout: number): void {
  const { status, stderr } = spawnSync(command, args, { cwd, timeout, encoding: "utf8" });
  if (status !== 0) throw new Error(`${command} ${args[0]} ended with ${status}: ${stderr}`);
}

/** A folder of its own: its package.json keeps the suite out of ours. */
function install(directory: string): void {
  mkdirSync(directory, { recursive: true });
  const manifest = { name: "durable-streams-suite", private: true, type: "module" };
  writeFileSync(join(directory, "package.json"), JSON.stringify(manifest));
  writeFileSync(
    join(directory, "suite.test.js"),
    `import { runConformanceTests } from "${SUITE}";\n` +
      "runConformanceTests({ baseUrl: process.env.STREAMS_URL });\n",
  );
  // Else one of a folder above would count.
  writeFileSync(
    join(directory, "vitest.config.js"),
    'export default { test: { include: ["suite.test.js"], testTimeout: 30000 } };\n',
  );
  const present = join(directory, "node_modules", SUITE, "package.json");
  if (existsSync(present) && readFileSync(present, "utf8").includes(`"${VERSION}"`)) return;
  const args = ["install", "--no-audit", "--no-fund", "--no-save", `${SUITE}@${VERSION}`];
  must("npm", args, directory, INSTALL_MS_MAX);
}

/** All tests, whatever became of them. */
function runSuite(directory: string, url: string): readonly Said[] {
  const output = join(directory, "results.json");
  writeFileSync(output, "");
  const args = [
    "vitest",
    "run",
    "--root",
    directory,
    "--reporter=json",
    `--outputFile=${output}`,
  ];
  const env = { ...process.env, STREAMS_URL: url };
  const ended = spawnSync("npx", args, {
    cwd: directory,
    env,
    timeout: RUN_MS_MAX,
    encoding: "utf8",
  });
  const text = readFileSync(output, "utf8");
  if (text === "") throw new Error(`the suite did not run: ${ended.stderr}`);
  const { testResults } = JSON.parse(text) as {
    readonly testResults: readonly { readonly assertionResults: readonly Said[] }[];
  };
  const tests = testResults.flatMap(({ assertionResults }) => assertionResults);
  if (tests.length < TESTS_MIN) throw new Error(`only ${tests.length} tests: ${ended.stderr}`);
  return tests;
}

function writeTable(text: string): void {
  const doc = readFileSync(DOC, "utf8");
  writeFileSync(DOC, doc.replace(REGION, (_, begin, end) => `${begin}\n${text}\n\n${end}`));
  must("npx", ["deno", "fmt", DOC], ".", INSTALL_MS_MAX);
}

async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      clients: { type: "string" },
      url: { type: "string" },
      "no-docs": { type: "boolean" },
    },
  });
  const directory = resolve(values.clients ?? tmpdir(), "durable-streams");
  install(directory);
  const broker = values.url === undefined
    ? await startBroker({ args: ["--store", "memory:", ...ORIGINS] })
    : null;
  try {
    const tests = runSuite(directory, values.url ?? broker!.http);
    const text = table(groupsOf(tests));
    console.log(text);
    if (values["no-docs"] !== true) writeTable(text);
    const failed = tests.filter(({ status, ancestorTitles: [group = ""] }) =>
      status === "failed" && excluded(group) === undefined
    );
    for (const { ancestorTitles, title, failureMessages = [] } of failed) {
      console.log(
        `FAILED ${[...ancestorTitles, title].join(" > ")}\n${failureMessages.join("\n")}`,
      );
    }
    return failed.length === 0 ? 0 : 1;
  } finally {
    await broker?.stop();
  }
}

process.exitCode = await main();
