/**
 * Kafka Connect, distributed over two workers, with exactly-once sources: lines of a file go to a topic and from there
 * to another file, while a worker, the broker and all workers are killed. Usage: bun compat.ts JARS
 */
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { type Admin, ConfigResourceTypes, type Kafka } from "kafkajs";
import { kafkajsAt } from "../../support/clients.ts";
import { tempDir } from "../../support/broker_process.ts";
import { pause, same, until, version } from "../program.ts";
import {
  ask,
  bytesCompactedAway,
  freePort,
  get,
  ownBroker,
  type Service,
  startService,
} from "../service.ts";

const JARS = process.argv[2]!;
const GROUP = "connect-cluster";
const TOPIC = "lines";
/** As Connect names them, with its partitions. */
const INTERNAL = { "connect-configs": 1, "connect-offsets": 25, "connect-status": 5 } as const;
/** A file is appended to in so many steps. */
const STEPS = 20;
const LINES_PER_STEP = 15;

/** Compaction and the end of a dead producer's transaction are looked for soon, and groups form at once. */
const broker = await ownBroker([
  "transaction.abort.timed.out.transaction.cleanup.interval.ms=1000",
  "group.initial.rebalance.delay.ms=0",
  "log.retention.check.interval.ms=1000",
]);
const kafka: Kafka = kafkajsAt(broker.kafka, { retry: { retries: 20, maxRetryTime: 1000 } });
const admin: Admin = kafka.admin();
const files = tempDir();
const from = join(files.path, "source.txt");
const to = join(files.path, "sink.txt");

function workerSettings(port: number): string {
  const storages = ["config", "offset", "status"].flatMap((each) => [
    `${each}.storage.topic=connect-${each}${each === "status" ? "" : "s"}`,
    `${each}.storage.segment.ms=1000`,
    `${each}.storage.min.cleanable.dirty.ratio=0.01`,
  ]);
  return [
    `bootstrap.servers=${broker.kafka}`,
    `group.id=${GROUP}`,
    ...storages,
    "key.converter=org.apache.kafka.connect.storage.StringConverter",
    "value.converter=org.apache.kafka.connect.storage.StringConverter",
    "exactly.once.source.support=enabled",
    "plugin.discovery=service_load",
    `listeners=http://127.0.0.1:${port}`,
    "offset.flush.interval.ms=500",
    // By default a worker that was killed is missed after 10 s, and its work is given away 5 minutes later.
    "session.timeout.ms=6000",
    "heartbeat.interval.ms=1000",
    "scheduled.rebalance.max.delay.ms=0",
  ].join("\n");
}

/** Those that live. */
let workers: Service[] = [];

async function startWorker(): Promise<Service> {
  const port = await freePort();
  const settings = join(files.path, `worker-${port}.properties`);
  writeFileSync(settings, workerSettings(port));
  const words = ["java", "-XX:TieredStopAtLevel=1", "-Xmx256m", "-cp", `${JARS}/*`];
  const main = "org.apache.kafka.connect.cli.ConnectDistributed";
  return await startService([...words, main, settings], `http://127.0.0.1:${port}`, "/connectors");
}

interface Part {
  readonly state: string;
  readonly worker_id: string;
}

interface Status {
  readonly connector: Part;
  readonly tasks: readonly Part[];
}

const SOURCE = {
  "connector.class": "org.apache.kafka.connect.file.FileStreamSourceConnector",
  "tasks.max": "1",
  "file": from,
  "topic": TOPIC,
  // More than is ever written at once: lines past it wait in the task until the file grows again.
  "batch.size": "2000",
  "exactly.once.support": "required",
  // A worker does not begin before all transactions of its offsets are over; who left them open is dead.
  "producer.override.transaction.timeout.ms": "8000",
  "topic.creation.default.partitions": "1",
  "topic.creation.default.replication.factor": "-1",
};

const SINK = {
  "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
  "tasks.max": "1",
  "file": to,
  "topics": TOPIC,
  "consumer.override.isolation.level": "read_committed",
  // As above: else a consumer that was killed holds its partition for 45 s.
  "consumer.override.session.timeout.ms": "6000",
  "consumer.override.heartbeat.interval.ms": "1000",
};

/** Either worker takes it: the one that does not lead hands it on. While they rebalance they say 409. */
async function configure(worker: Service, name: string, config: object): Promise<void> {
  await until(`${name} is taken`, async () => {
    const { status, body } = await ask("PUT", `${worker.url}/connectors/${name}/config`, config);
    if (status === 409) return false;
    if (status !== 200 && status !== 201) {
      throw new Error(`${name}: ${status} ${JSON.stringify(body)}`);
    }
    return true;
  });
}

/** The parts of both connectors, once each has its task and all run. */
async function runningParts(worker: Service): Promise<readonly Part[]> {
  let parts: readonly Part[] = [];
  await until("connectors and tasks run", async () => {
    const answers = await Promise.all(
      ["source", "sink"].map((name) =>
        ask<Status>("GET", `${worker.url}/connectors/${name}/status`)
      ),
    );
    if (answers.some(({ status, body }) => status !== 200 || body.tasks.length !== 1)) return false;
    parts = answers.flatMap(({ body }) => [body.connector, ...body.tasks]);
    const broken = parts.find(({ state }) => state === "FAILED");
    if (broken !== undefined) throw new Error(JSON.stringify(broken));
    return parts.every(({ state, worker_id }) => {
      // What a worker that was killed has said of itself stays until somebody else says more.
      return state === "RUNNING" && workers.some(({ url }) => url.endsWith(worker_id));
    });
  });
  return parts;
}

let written = 0;

/** Appends to the source; `meanwhile` is done in the middle of it. */
async function write(meanwhile: () => Promise<void> = () => Promise.resolve()): Promise<void> {
  for (let step = 0; step < STEPS; step++) {
    if (step === STEPS / 2) await meanwhile();
    const lines = Array.from({ length: LINES_PER_STEP }, () => `line ${written++}\n`);
    appendFileSync(from, lines.join(""));
    await pause(20);
  }
}

function allLines(): string[] {
  return Array.from({ length: written }, (_, i) => `line ${i}`);
}

let readings = 0;

/** What a reader of committed records sees, once there are as many as were written; what comes too much is seen too. */
async function topicLines(): Promise<string[]> {
  const consumer = kafka.consumer({ groupId: `reader-${readings++}`, maxWaitTimeInMs: 200 });
  const got: string[] = [];
  await consumer.connect();
  await consumer.subscribe({ topics: [TOPIC], fromBeginning: true });
  await consumer.run({
    eachMessage: ({ message }) => Promise.resolve(void got.push(String(message.value))),
  });
  await until(`${written} lines in the topic`, () => got.length >= written);
  await pause(500);
  await consumer.disconnect();
  return got;
}

/** The topic has every line once and in order; the sink has each, some of them twice if it was interrupted. */
async function checkLines(sink: "once" | "at least once"): Promise<void> {
  same(await topicLines(), allLines(), "lines of the topic");
  const sinkLines = () => existsSync(to) ? readFileSync(to, "utf8").split("\n").slice(0, -1) : [];
  await until("all lines in the sink", () => new Set(sinkLines()).size >= written);
  const seen = sinkLines();
  same(sink === "once" ? seen : [...new Set(seen)], allLines(), "lines of the sink");
}

async function cleanupPolicies(): Promise<void> {
  const names = Object.keys(INTERNAL);
  const { resources } = await admin.describeConfigs({
    includeSynonyms: false,
    resources: names.map((name) => ({
      type: ConfigResourceTypes.TOPIC,
      name,
      configNames: ["cleanup.policy"],
    })),
  });
  const policies = resources.map(({ configEntries }) => configEntries[0]?.configValue);
  same(policies, names.map(() => "compact"), "cleanup.policy");
  const { topics } = await admin.fetchTopicMetadata({ topics: names });
  const partitions = topics.map(({ name, partitions: all }) => [name, all.length]);
  same(Object.fromEntries(partitions), INTERNAL, "partitions of the internal topics");
}

/** Each line was sent in a transaction: their markers have offsets of their own. */
async function checkMarkers(): Promise<void> {
  const [end] = await admin.fetchTopicOffsets(TOPIC);
  same(Number(end!.high) > written, true, "markers of transactions in the topic");
}

async function main(): Promise<void> {
  await admin.connect();
  writeFileSync(from, "");
  await broker.behaviour("connect: internal topics", async () => {
    workers = await Promise.all([startWorker(), startWorker()]);
    version((await get<{ version: string }>(`${workers[0]!.url}/`)).version);
    await cleanupPolicies();
  });
  await broker.behaviour("connect: two workers", async () => {
    await configure(workers[0]!, "source", SOURCE);
    await configure(workers[1]!, "sink", SINK);
    await until("both work", async () => {
      const parts = await runningParts(workers[0]!);
      return new Set(parts.map(({ worker_id }) => worker_id)).size === 2;
    });
  });
  await broker.behaviour("connect: source and sink", async () => {
    await write();
    await checkLines("once");
    await checkMarkers();
  });
  await broker.behaviour("connect: exactly-once", async () => {
    const source = await get<Status>(`${workers[0]!.url}/connectors/source/status`);
    const at = source.tasks[0]!.worker_id;
    const victim = workers.find(({ url }) => url.endsWith(at))!;
    await write(() => victim.kill9());
    workers = workers.filter((each) => each !== victim);
    await runningParts(workers[0]!);
    await checkLines("at least once");
    // A new configuration: the leader fences the transactional ids of the tasks before.
    await configure(workers[0]!, "source", { ...SOURCE, "batch.size": "1000" });
    await write();
    await checkLines("at least once");
  });
  await broker.behaviour("connect: restart of the broker", async () => {
    await write(() => broker.killAndStart());
    await checkLines("at least once");
  });
  await broker.behaviour("connect: restart of the workers", async () => {
    await until("the internal topics are compacted", async () => {
      await write();
      return await bytesCompactedAway(broker.http) > 0;
    });
    await write(async () => {
      await Promise.all(workers.map((each) => each.kill9()));
      workers = [await startWorker()];
    });
    await runningParts(workers[0]!);
    await checkLines("at least once");
    await cleanupPolicies();
  });
  await admin.disconnect();
  await Promise.all(workers.map((each) => each.kill9()));
  await broker.end();
  files.remove();
}

await main();
process.exit(0);
