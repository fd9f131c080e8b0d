/** Apache Kafka as a process of its own: one node in KRaft mode, from the jars that pom.xml names. */
import { spawn, spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, rmSync } from "node:fs";
import { writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import process from "node:process";
import { freePort } from "../bench/free_port.ts";
import { within } from "../support/broker_process.ts";

const POM = resolve("tests/differential/pom.xml");
const INSTALL_MS_MAX = 240_000;
const START_MS_MAX = 60_000;
const STOP_MS_MAX = 20_000;

export interface KafkaProcess {
  readonly address: string;
  stop(): Promise<void>;
}

/** What is missing on this machine; null when nothing is. */
export function missingTool(): string | null {
  for (const [tool, flag] of [["java", "-version"], ["mvn", "-version"]] as const) {
    if (spawnSync(tool, [flag], { stdio: "ignore" }).status !== 0) return tool;
  }
  return null;
}

/** The version that the pom pins. */
export function kafkaVersion(): string {
  const found = /kafka_2\.13<\/artifactId>\s*<version>([^<]+)</.exec(readFileSync(POM, "utf8"));
  if (found === null) throw new Error("pom.xml names no version of Kafka");
  return found[1]!;
}

/** Fetches the jars unless they are there; what went wrong, or null. */
export function install(directory: string): string | null {
  if (existsSync(directory)) return null;
  // An install that broke off must not look like a whole one.
  const half = `${directory}.half`;
  rmSync(half, { recursive: true, force: true });
  mkdirSync(half, { recursive: true });
  const words = ["-q", "-B", "-f", POM, "dependency:copy-dependencies", "-DincludeScope=runtime"];
  const ran = spawnSync("mvn", [...words, `-DoutputDirectory=${half}`], {
    encoding: "utf8",
    timeout: INSTALL_MS_MAX,
  });
  if (ran.status !== 0) return `${ran.stdout}${ran.stderr}`.trim() || "mvn did not end in time";
  renameSync(half, directory);
  return null;
}

function propertiesOf(port: number, controllerPort: number, data: string): string {
  const plain = `PLAINTEXT://127.0.0.1:${port}`;
  return Object.entries({
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.bootstrap.servers": `127.0.0.1:${controllerPort}`,
    listeners: `${plain},CONTROLLER://127.0.0.1:${controllerPort}`,
    "advertised.listeners": `${plain},CONTROLLER://127.0.0.1:${controllerPort}`,
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT",
    "log.dirs": data,
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
  }).map(([name, value]) => `${name}=${value}\n`).join("");
}

function answers(port: number): Promise<boolean> {
  return new Promise((done) => {
    const socket = connect(port, "127.0.0.1");
    socket.once("connect", () => {
      socket.destroy();
      done(true);
    });
    socket.once("error", () => done(false));
  });
}

/** `properties` are set on both brokers. */
export async function startKafka(
  jars: string,
  properties: Readonly<Record<string, string>>,
): Promise<KafkaProcess> {
  const folder = mkdtempSync(join(tmpdir(), "skerry-kafka-"));
  const file = join(folder, "server.properties");
  const port = await freePort();
  const own = propertiesOf(port, await freePort(), join(folder, "data"));
  const shared = Object.entries(properties).map(([name, value]) => `${name}=${value}\n`).join("");
  writeFileSync(file, own + shared);
  const java = [
    "-Xmx512m",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
    "-cp",
    join(jars, "*"),
  ];
  const format = ["kafka.tools.StorageTool", "format", "-t", "c2tlcnJ5LWRpZmZlcmVuY2", "-c", file];
  // Else every topic gets a min.insync.replicas from the cluster, and partitions get lists of replicas to elect.
  const plain = ["--standalone", "--feature", "eligible.leader.replicas.version=0"];
  const formatted = spawnSync("java", [...java, ...format, ...plain], { encoding: "utf8" });
  if (formatted.status !== 0) throw new Error(`Kafka: ${formatted.stdout}${formatted.stderr}`);
  const child = spawn("java", [...java, "kafka.Kafka", file], {
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  child.stdout.on("data", (chunk) => void (output += String(chunk)));
  child.stderr.on("data", (chunk) => void (output += String(chunk)));
  let ended = false;
  const closed = new Promise<void>((done) =>
    void child.once("close", () => {
      ended = true;
      done();
    })
  );
  const kill = () => void child.kill("SIGKILL");
  process.once("exit", kill);
  async function stop(): Promise<void> {
    child.kill("SIGTERM");
    if (await within(closed.then(() => true), STOP_MS_MAX) === null) kill();
    await closed;
    process.off("exit", kill);
    rmSync(folder, { recursive: true, force: true });
  }
  const endMs = performance.now() + START_MS_MAX;
  while (performance.now() < endMs && !ended) {
    if (await answers(port)) return { address: `127.0.0.1:${port}`, stop };
    await new Promise((done) => setTimeout(done, 100));
  }
  await stop();
  throw new Error(`Kafka did not start: ${output}`);
}
