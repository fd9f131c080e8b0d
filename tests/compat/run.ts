/**
 * Clients that nobody here wrote, one after another against one broker, and the table of what each can do:
 *   npm run compat -- [CLIENT...] [--clients DIRECTORY] [--broker ADDRESS] [--verbose]
 * Without names all are run and the tables of docs/compat.md are written, unless --no-docs. What a client
 * needs is installed into DIRECTORY and stays there. Ends with "N passed, N failed".
 */
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import process from "node:process";
import { parseArgs } from "node:util";
import { type BrokerProcess, startBroker, tempDir } from "../support/broker_process.ts";
import { type Kind, KINDS } from "./behaviours.ts";
import { type Client, CLIENTS } from "./clients.ts";
import {
  count,
  notRun,
  plainTable,
  type Ran,
  readResults,
  remarks,
  rowsOf,
  withTables,
} from "./results.ts";

const DOC = "docs/compat.md";
const INSTALL_MS_MAX = 420_000;
const OUTPUT_CHARS_MAX = 4_000_000;
/** Programs look records up by times of 1970: at any look at retention they would be gone, rightly. */
const KEPT = ["--set", "log.retention.ms=-1"];
/** Handlers that threw: a bug, even when the client went on after a retry. */
const BUG = /"event":"request-failed".*/g;

interface Options {
  readonly clients: readonly Client[];
  readonly directory: string;
  readonly broker: string | null;
  readonly writesDocs: boolean;
  readonly verbose: boolean;
}

function optionsOf(words: readonly string[]): Options {
  const { values, positionals } = parseArgs({
    args: [...words],
    allowPositionals: true,
    options: {
      clients: { type: "string" },
      broker: { type: "string" },
      "no-docs": { type: "boolean" },
      verbose: { type: "boolean" },
    },
  });
  const unknown = positionals.find((name) => !CLIENTS.some((client) => client.name === name));
  if (unknown !== undefined) {
    throw new Error(
      `no client ${unknown}; there are ${CLIENTS.map(({ name }) => name).join(", ")}`,
    );
  }
  const isAll = positionals.length === 0;
  return {
    clients: CLIENTS.filter(({ name }) => isAll || positionals.includes(name)),
    directory: values.clients ?? `${tmpdir()}/skerry-clients`,
    broker: values.broker ?? null,
    writesDocs: isAll && values["no-docs"] !== true,
    verbose: values.verbose === true,
  };
}

function isThere(tool: string): boolean {
  return spawnSync("sh", ["-c", `command -v ${tool}`], { stdio: "ignore" }).status === 0;
}

/** What went wrong, or null. */
function install(client: Client, directory: string): string | null {
  if (client.install.length === 0) return null;
  const ran = spawnSync("scripts/install_clients.sh", [directory, ...client.install], {
    encoding: "utf8",
    timeout: INSTALL_MS_MAX,
  });
  if (ran.status === 0) return null;
  return `${ran.stdout}${ran.stderr}`.trim().split("\n").at(-1) ||
    "the installation did not end in time";
}

interface Ended {
  readonly output: string;
  /** null: by itself, with 0. */
  readonly how: string | null;
}

/** The program in a group of its own, so that nothing it started is left when its time is over. */
function runProgram(words: readonly string[], limitS: number): Promise<Ended> {
  const [command, ...args] = words;
  return new Promise((done) => {
    const child = spawn(command!, args, { stdio: ["ignore", "pipe", "pipe"], detached: true });
    let output = "";
    const collect = (chunk: unknown) => {
      if (output.length < OUTPUT_CHARS_MAX) output += String(chunk);
    };
    child.stdout.on("data", collect);
    child.stderr.on("data", collect);
    let isLate = false;
    const timer = setTimeout(() => {
      isLate = true;
      killGroup(child.pid);
    }, limitS * 1000);
    const end = (how: string | null) => {
      clearTimeout(timer);
      killGroup(child.pid);
      done({ output, how });
    };
    child.once("error", (error) => end(error.message));
    child.once("close", (code) => {
      if (isLate) end(`not done after ${limitS} s`);
      else end(code === 0 ? null : `ended with ${code}: ${output.trim().split("\n").at(-1)}`);
    });
  });
}

function killGroup(pid: number | undefined): void {
  if (pid === undefined) return;
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // All of it has ended.
  }
}

/** Failed is what could have been installed and was not; what has no toolchain here is only not run. */
async function runClient(
  client: Client,
  address: string,
  options: Options,
): Promise<{ readonly ran: Ran; readonly isBroken: boolean }> {
  const { name, title, kind, toolchain } = client;
  const lack = toolchain !== null && !isThere(toolchain)
    ? `there is no ${toolchain} here`
    : client.lack?.() ?? null;
  if (lack !== null) return { ran: notRun(title, kind, lack), isBroken: false };
  const wrong = install(client, options.directory);
  if (wrong !== null) return { ran: notRun(title, kind, wrong), isBroken: true };
  const startedMs = performance.now();
  const { output, how } = await runProgram(
    [...client.program(options.directory), address],
    client.limitS,
  );
  const ran = readResults(title, kind, output, how);
  const seconds = Math.round((performance.now() - startedMs) / 1000);
  console.log(
    `${name}: ${count([ran], "pass")} passed, ${count([ran], "fail")} failed, ${
      count([ran], "skip")
    } not offered, ${seconds} s`,
  );
  if (options.verbose || count([ran], "fail") > 0) {
    console.log(output.trim().replace(/^/gm, "    "));
  }
  return { ran, isBroken: false };
}

/** What the broker itself has done wrong. */
async function stopped(broker: BrokerProcess): Promise<string[]> {
  const wrong = (broker.output().match(BUG) ?? []).slice(0, 10).map((line) =>
    `the broker: ${line}`
  );
  const code = await broker.stop();
  return code === 0 ? wrong : [...wrong, `the broker ended with ${code}`];
}

async function main(options: Options): Promise<number> {
  mkdirSync(options.directory, { recursive: true });
  const data = tempDir();
  const broker = options.broker === null
    ? await startBroker({ args: ["--store", `dir:${data.path}`, ...KEPT] })
    : null;
  const all: Ran[] = [];
  const wrong: string[] = [];
  try {
    for (const client of options.clients) {
      const { ran, isBroken } = await runClient(client, options.broker ?? broker!.kafka, options);
      if (isBroken) wrong.push(`${client.name} could not be installed`);
      all.push(ran);
    }
  } finally {
    if (broker !== null) wrong.push(...await stopped(broker));
    data.remove();
  }
  for (const kind of Object.keys(KINDS) as Kind[]) {
    const rows = rowsOf(all, kind);
    if (rows.length > 0) console.log(`\n${plainTable(rows)}`);
  }
  console.log(["", ...remarks(all), ...wrong].join("\n"));
  if (options.writesDocs) {
    writeFileSync(DOC, withTables(readFileSync(DOC, "utf8"), all));
    spawnSync("node_modules/.bin/deno", ["fmt", "--quiet", DOC], { stdio: "inherit" });
  }
  const failures = count(all, "fail") + wrong.length;
  console.log(`${count(all, "pass")} passed, ${failures} failed`);
  return failures === 0 ? 0 : 1;
}

process.exit(await main(optionsOf(process.argv.slice(2))));
