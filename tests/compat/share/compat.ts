/**
 * Share consumers of Kafka's own client beside a broker that is killed under them. Usage: compat.ts CLASSES JARS;
 * run.ts starts a broker as well, which is not used.
 */
import { spawnSync } from "node:child_process";
import { readdirSync } from "node:fs";
import process from "node:process";
import { ownBroker } from "../service.ts";

const JAVA = "java";
const PROGRAM_MS_MAX = 150_000;

const [classes, jars] = process.argv.slice(2);
const VERSION = /kafka-clients-(\d[\d.]*)\.jar/;

function java(...args: readonly string[]): string {
  const words = [
    "-XX:TieredStopAtLevel=1",
    "-cp",
    `${classes}:${jars}/*`,
    "ShareConsumers",
    ...args,
  ];
  const { stdout, stderr, status } = spawnSync(JAVA, words, {
    encoding: "utf8",
    timeout: PROGRAM_MS_MAX,
  });
  process.stdout.write(stdout);
  process.stderr.write(stderr);
  if (status !== 0) throw new Error(`ShareConsumers ended with ${status}`);
  return stdout;
}

async function main(): Promise<void> {
  const broker = await ownBroker([]);
  console.log(`version\t${VERSION.exec(readdirSync(jars!).join(" "))?.[1] ?? ""}`);
  const run = /^run\t(.+)$/m.exec(java(broker.kafka))?.[1];
  if (run === undefined) throw new Error("ShareConsumers did not come to its end");
  await broker.killAndStart();
  java(broker.kafka, run);
  await broker.end();
}

await main();
process.exit(0);
