/**
 * The same requests to Apache Kafka and to Skerry, the answers compared field by field:
 *   npm run differential -- [--only SCENARIO] [--kafka DIRECTORY]
 * Exit code 0 when every difference stands in allowed.ts, and every line of it was needed.
 */
import { rmSync } from "node:fs";
import { tmpdir } from "node:os";
import process from "node:process";
import { apiVersionsApi } from "../../src/protocol/message/18_api_versions.ts";
import { errorName } from "../../src/protocol/error_code.ts";
import { RawClient } from "../e2e/raw_client.ts";
import { startBroker, tempDir } from "../support/broker_process.ts";
import { ALLOWED } from "./allowed.ts";
import { compare, type Difference, judge, whereOf } from "./compare.ts";
import { install, kafkaVersion, missingTool, startKafka } from "./kafka.ts";
import { normalise } from "./normal.ts";
import { SCENARIOS } from "./scenarios/all.ts";
import { NoAnswer, type Scenario, Script } from "./script.ts";

/** Both brokers are told these; everything else has its default. */
const PROPERTIES = {
  "group.initial.rebalance.delay.ms": "100",
  "offsets.topic.num.partitions": "1",
  "transaction.state.log.num.partitions": "1",
  "group.min.session.timeout.ms": "500",
};

/** What Kafka always does and we only when asked: a look into every compressed batch. */
const OURS = { "skerry.produce.validate": "full" };

interface Options {
  readonly only: string | null;
  readonly jars: string;
  readonly verbose: boolean;
}

function optionsOf(words: readonly string[]): Options {
  const after = (name: string) => {
    const at = words.indexOf(name);
    return at < 0 ? null : words[at + 1] ?? null;
  };
  return {
    only: after("--only"),
    jars: after("--kafka") ?? `${tmpdir()}/skerry-kafka-${kafkaVersion()}`,
    verbose: words.includes("--verbose"),
  };
}

async function servedBy(address: string): Promise<ReadonlySet<number>> {
  const client = await RawClient.connect(address);
  const { apiKeys } = await client.call(apiVersionsApi, 0, {});
  client.close();
  return new Set(apiKeys.map(({ apiKey }) => apiKey));
}

async function runSide(scenario: Scenario, address: string, nowMs: number): Promise<Script> {
  const script = new Script(address, nowMs);
  try {
    await scenario.run(script);
  } catch (error) {
    // What is missing from its transcript is a difference.
    if (!(error instanceof NoAnswer)) script.note("ended by", String(error));
  } finally {
    script.close();
  }
  return script;
}

function portOf(address: string): number {
  return Number(address.slice(address.lastIndexOf(":") + 1));
}

async function runScenario(
  scenario: Scenario,
  ours: string,
  theirs: string,
): Promise<{ readonly steps: number; readonly differences: readonly Difference[] }> {
  const nowMs = Date.now();
  const scripts = await Promise.all(
    [ours, theirs].map((address) => runSide(scenario, address, nowMs)),
  );
  const [left, right] = scripts.map((script, index) =>
    normalise(script.entries, { port: portOf([ours, theirs][index]!), nowMs })
  );
  const differences = compare(scenario.name, left!, right!);
  return { steps: new Set([...left!.keys(), ...right!.keys()]).size, differences };
}

function show(path: string, value: unknown): string {
  if (/errorCode$/i.test(path) && typeof value === "number") return `${value} ${errorName(value)}`;
  const text = value === undefined ? "(absent)" : JSON.stringify(value);
  return text.length > 240 ? `${text.slice(0, 240)}...` : text;
}

async function main({ only, jars, verbose }: Options): Promise<number> {
  const missing = missingTool();
  if (missing !== null) {
    console.log(`Not run: there is no ${missing} here`);
    return 0;
  }
  const failure = install(jars);
  if (failure !== null) {
    console.log(`Not run: Kafka ${kafkaVersion()} could not be fetched: ${failure}`);
    return 0;
  }
  const data = tempDir();
  const words = Object.entries({ ...PROPERTIES, ...OURS }).flatMap((
    [key, value],
  ) => ["--set", `${key}=${value}`]);
  const kafka = await startKafka(jars, PROPERTIES);
  try {
    const skerry = await startBroker({ args: ["--store", `dir:${data.path}`, ...words] });
    try {
      const served = await servedBy(skerry.kafka);
      const chosen = SCENARIOS.filter(({ name, needs = [] }) => {
        const lacking = needs.filter((key) => !served.has(key));
        if (lacking.length > 0) {
          console.log(`${name}: not run, we do not serve ${lacking.join(", ")}`);
        }
        return lacking.length === 0 && (only === null || name.startsWith(only));
      });
      return await judgeAll(chosen, skerry.kafka, kafka.address, { whole: only === null, verbose });
    } finally {
      await skerry.stop();
    }
  } finally {
    await kafka.stop();
    rmSync(data.path, { recursive: true, force: true });
  }
}

async function judgeAll(
  scenarios: readonly Scenario[],
  ours: string,
  theirs: string,
  { whole, verbose }: { readonly whole: boolean; readonly verbose: boolean },
): Promise<number> {
  const differences: Difference[] = [];
  let steps = 0;
  for (const scenario of scenarios) {
    const startMs = performance.now();
    const ran = await runScenario(scenario, ours, theirs);
    steps += ran.steps;
    differences.push(...ran.differences);
    const seconds = ((performance.now() - startMs) / 1000).toFixed(1);
    if (verbose) console.log(`${scenario.name}: ${ran.steps} answers, ${seconds} s`);
  }
  const { refused, allowed, stale } = judge(differences, ALLOWED);
  for (const one of refused) {
    const [theirs, ours] = [one.theirs, one.ours].map((value) => show(one.path, value));
    console.log(`${whereOf(one)}: Kafka ${theirs}, ours ${ours}`);
  }
  // A part of the scenarios does not need the whole table.
  const old = whole ? stale : [];
  for (const { at, reason } of old) console.log(`no longer seen: ${at} (${reason})`);
  const failed = new Set(refused.map(({ step }) => step)).size;
  console.log(
    `${steps} answers of Kafka ${kafkaVersion()} compared: ` +
      `${refused.length} differences, ${allowed} allowed by ${ALLOWED.length} rules`,
  );
  console.log(`${steps - failed} passed, ${failed + old.length} failed`);
  return failed + old.length === 0 ? 0 : 1;
}

process.exit(await main(optionsOf(process.argv.slice(2))));
