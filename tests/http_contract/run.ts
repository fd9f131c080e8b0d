/**
 * Judges from outside for the HTTP gateway and its document, against one broker:
 *   npm run contract -- [--tools DIRECTORY] [--examples NUMBER] [--seed NUMBER]
 * Redocly lints the document, Schemathesis sends what it allows and what it does not, promtool and Chromium look
 * at the metrics and the pages. A tool is looked for in DIRECTORY (its bin and node_modules/.bin) and on the PATH;
 * one that is not there is told and passed over. Ends with "N passed, N failed".
 */
import { spawnSync } from "node:child_process";
import { existsSync, writeFileSync } from "node:fs";
import { delimiter, join, resolve } from "node:path";
import process from "node:process";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { startBroker, tempDir } from "../support/broker_process.ts";
import { findChromium, inBrowser, type Judged, servePage } from "./browser.ts";
import { forFuzzer, readDocument } from "./document.ts";

const FUZZ_MS_MAX = 900_000;
const OUTPUT_BYTES_MAX = 64 * 1024 * 1024;
const TOPICS = ["orders", "t-1", "none"];
/** What an answer has to be, whatever was asked. */
const CHECKS = [
  "not_a_server_error",
  "status_code_conformance",
  "content_type_conformance",
  "response_schema_conformance",
  "response_headers_conformance",
  "unsupported_method",
  "allow_header_conformance",
];
const RULES = fileURLToPath(new URL("./redocly.yaml", import.meta.url));

interface Options {
  readonly tools: string | null;
  readonly examples: string;
  readonly seed: string | null;
}

function optionsOf(words: readonly string[]): Options {
  const { values } = parseArgs({
    args: [...words],
    options: {
      tools: { type: "string" },
      examples: { type: "string", default: "15" },
      seed: { type: "string" },
    },
  });
  return { tools: values.tools ?? null, examples: values.examples, seed: values.seed ?? null };
}

function toolPath(name: string, directory: string | null): string | null {
  const own = directory === null ? [] : [
    join(directory, "bin"),
    join(directory, "node_modules", ".bin"),
  ];
  const places = [...own, ...(process.env["PATH"] ?? "").split(delimiter)];
  const found = places.map((place) => resolve(place, name)).find((path) => existsSync(path));
  return found ?? null;
}

function ran(name: string, command: string, args: readonly string[], input?: string): Judged {
  const { status, stdout, stderr } = spawnSync(command, args, {
    encoding: "utf8",
    timeout: FUZZ_MS_MAX,
    maxBuffer: OUTPUT_BYTES_MAX,
    ...(input === undefined ? {} : { input }),
  });
  if (status === 0) return { passed: [name], failed: [] };
  process.stdout.write(`${stdout}\n${stderr}\n`);
  return { passed: [], failed: [`${name}: exit code ${status}`] };
}

function lint(redocly: string, file: string): Judged {
  return ran("redocly lints the document", redocly, ["lint", "--config", RULES, file]);
}

function fuzz(schemathesis: string, file: string, url: string, options: Options): Judged {
  return ran("schemathesis finds no answer that is not described", schemathesis, [
    "run",
    file,
    "--url",
    url,
    "--checks",
    CHECKS.join(","),
    "--phases",
    "examples,coverage,fuzzing",
    "--max-examples",
    options.examples,
    "--request-timeout",
    "40",
    "--suppress-health-check",
    "all",
    "--continue-on-failure",
    ...(options.seed === null ? [] : ["--seed", options.seed]),
  ]);
}

async function metrics(promtool: string, url: string): Promise<Judged> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return ran("promtool checks the metrics", promtool, ["check", "metrics"], text);
}

async function prepare(url: string): Promise<void> {
  for (const topic of TOPICS.slice(0, 2)) {
    const body = "[1,2,3]";
    const path = `/v1/topics/${topic}/records?bare=1`;
    const headers = { "content-type": "application/json" };
    const answer = await fetch(`${url}${path}`, { method: "POST", body, headers });
    if (!answer.ok) throw new Error(`POST ${path} answers ${answer.status}`);
  }
}

async function run(options: Options): Promise<Judged> {
  const page = await servePage();
  const broker = await startBroker({ args: ["--set", `skerry.http.cors.origins=${page.origin}`] });
  const work = tempDir();
  const all: Judged[] = [];
  const missing: string[] = [];
  const withTool = async (name: string, use: (path: string) => Judged | Promise<Judged>) => {
    const path = name === "chromium" ? findChromium() : toolPath(name, options.tools);
    if (path === null) missing.push(name);
    else all.push(await use(path));
  };
  try {
    const url = broker.http;
    await prepare(url);
    const document = await readDocument(url);
    const [whole, fuzzed] = ["openapi.json", "fuzzed.json"].map((name) => join(work.path, name));
    writeFileSync(whole!, JSON.stringify(document));
    writeFileSync(fuzzed!, JSON.stringify(forFuzzer(document, TOPICS)));
    const operations = Object.values(document.paths)
      .flatMap((methods) => Object.values(methods).map(({ operationId }) => operationId));
    await withTool("redocly", (path) => lint(path, whole!));
    await withTool("chromium", (path) => inBrowser(path, page, url, operations));
    await withTool("schemathesis", (path) => fuzz(path, fuzzed!, url, options));
    await withTool("promtool", (path) => metrics(path, url));
  } finally {
    await broker.stop();
    page.close();
    work.remove();
  }
  for (const name of missing) process.stdout.write(`not there: ${name}\n`);
  return {
    passed: all.flatMap(({ passed }) => passed),
    failed: all.flatMap(({ failed }) => failed),
  };
}

const { passed, failed } = await run(optionsOf(process.argv.slice(2)));
for (const name of passed) process.stdout.write(`ok    ${name}\n`);
for (const name of failed) process.stdout.write(`FAIL  ${name}\n`);
process.stdout.write(`${passed.length} passed, ${failed.length} failed\n`);
process.exitCode = failed.length === 0 ? 0 : 1;
