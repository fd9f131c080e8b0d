/**
 * Apicurio Registry with its journal in Kafka, asked by the API of Confluent's Schema Registry: two instances, killed
 * together with the broker, and the journal compacted. Usage: bun compat.ts DIRECTORY
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { type Admin, ConfigResourceTypes, type Kafka } from "kafkajs";
import { kafkajsAt } from "../../support/clients.ts";
import { same, skip, until, version } from "../program.ts";
import {
  type Answer,
  ask,
  compactions,
  freePort,
  get,
  ownBroker,
  type Service,
  startService,
} from "../service.ts";
import { newJava } from "./java.ts";

const HOME = process.argv[2]!;
const JAVA = newJava() ?? "java";
const API = "/apis/ccompat/v7";
const JOURNAL = "kafkasql-journal";
/** Registered before the crash, and as many after it. */
const SCHEMAS = 12;

/** Compaction finds closed segments soon, and groups form at once; everything else as it comes. */
const broker = await ownBroker([
  "group.initial.rebalance.delay.ms=0",
  "log.retention.check.interval.ms=1000",
]);
const kafka: Kafka = kafkajsAt(broker.kafka, { retry: { retries: 20, maxRetryTime: 1000 } });
const admin: Admin = kafka.admin();

/** It is compacted for a while: each of its records has a key of its own, so none may get lost. */
async function setJournal(policy: "compact" | "delete"): Promise<void> {
  const settings = {
    "cleanup.policy": policy,
    "retention.ms": "-1",
    "retention.bytes": "-1",
    "segment.ms": "1000",
    "min.cleanable.dirty.ratio": "0.01",
  };
  const configEntries = Object.entries(settings).map(([name, value]) => ({ name, value }));
  const resources = [{ type: ConfigResourceTypes.TOPIC, name: JOURNAL, configEntries }];
  await admin.alterConfigs({ validateOnly: false, resources });
}

/** It reads the settings of its topics and does not begin when they may lose records. */
async function startRegistry(): Promise<Service> {
  const [port, management] = await Promise.all([freePort(), freePort()]);
  const settings = {
    "apicurio.storage.kind": "kafkasql",
    "apicurio.kafkasql.bootstrap.servers": broker.kafka,
    "apicurio.kafkasql.consumer.poll.timeout": "100",
    "quarkus.http.host": "127.0.0.1",
    "quarkus.http.port": port,
    "quarkus.management.host": "127.0.0.1",
    "quarkus.management.port": management,
  };
  const words = Object.entries(settings).map(([name, value]) => `-D${name}=${value}`);
  const jar = join(HOME, "quarkus-run.jar");
  return await startService(
    [JAVA, "-Xmx512m", "-XX:TieredStopAtLevel=1", ...words, "-jar", jar],
    `http://127.0.0.1:${port}`,
    `${API}/subjects`,
  );
}

interface Field {
  readonly name: string;
  readonly type: string;
}

function schemaOf(n: number, ...more: readonly Field[]): string {
  const fields = [{ name: "id", type: "int" }, ...more];
  return JSON.stringify({ type: "record", name: `Record${n}`, fields });
}

function register(at: Service, subject: string, schema: string): Promise<Answer<{ id: number }>> {
  return ask("POST", `${at.url}${API}/subjects/${subject}/versions`, { schema });
}

const ids = new Map<number, number>();

async function registerAll(at: Service, from: number): Promise<void> {
  for (let n = from; n < from + SCHEMAS; n++) {
    const { status, body } = await register(at, `subject-${n}`, schemaOf(n));
    same(status, 200, `registration of ${n}`);
    ids.set(n, body.id);
  }
  same(new Set(ids.values()).size, ids.size, "ids are given once");
}

/** All that was registered, under its id and under its subject. */
async function readAll(at: Service): Promise<void> {
  const expected = [...ids.keys()].map((n) => `subject-${n}`);
  await until("all subjects", async () => {
    const subjects = await get<string[]>(`${at.url}${API}/subjects`);
    return expected.every((each) => subjects.includes(each));
  });
  for (const [n, id] of ids) {
    const byId = await get<{ schema: string }>(`${at.url}${API}/schemas/ids/${id}`);
    same(byId.schema, schemaOf(n), `schema ${id}`);
    const latest = await get<{ id: number; schema: string }>(
      `${at.url}${API}/subjects/subject-${n}/versions/1`,
    );
    same([latest.id, latest.schema], [id, schemaOf(n)], `subject ${n}`);
  }
}

const OPTIONAL = { name: "note", type: "string", default: "" };
const REQUIRED = { name: "author", type: "string" };

/** Backward: a reader of the new schema must be able to read what the old one wrote. */
async function checkCompatibility(at: Service): Promise<void> {
  const rule = await ask("PUT", `${at.url}${API}/config/subject-0`, { compatibility: "BACKWARD" });
  same(rule.status, 200, "rule");
  const asked = async (field: Field) => {
    const url = `${at.url}${API}/compatibility/subjects/subject-0/versions/latest`;
    const { body } = await ask<{ is_compatible: boolean }>("POST", url, {
      schema: schemaOf(0, field),
    });
    return body.is_compatible;
  };
  same([await asked(OPTIONAL), await asked(REQUIRED)], [true, false], "is_compatible");
  same((await register(at, "subject-0", schemaOf(0, REQUIRED))).status, 409, "an incompatible one");
  same((await register(at, "subject-0", schemaOf(0, OPTIONAL))).status, 200, "a compatible one");
}

function versionOf(): string {
  const jars = readFileSync(join(HOME, "quarkus-app-dependencies.txt"), "utf8");
  return /apicurio-registry-common::jar:(\S+)/.exec(jars)?.[1] ?? "";
}

let instances: Service[] = [];

async function main(): Promise<void> {
  await admin.connect();
  version(versionOf());
  await broker.behaviour("registry: register", async () => {
    instances = [await startRegistry()];
    await registerAll(instances[0]!, 0);
    await readAll(instances[0]!);
  });
  await broker.behaviour("registry: compatibility check", () => checkCompatibility(instances[0]!));
  await broker.behaviour("registry: two instances", async () => {
    instances.push(await startRegistry());
    await readAll(instances[1]!);
    // Each reads what the other has written, and ids stay unique.
    await registerAll(instances[1]!, SCHEMAS);
    await readAll(instances[0]!);
    same(
      (await register(instances[1]!, "subject-0", schemaOf(0, REQUIRED))).status,
      409,
      "the rule",
    );
  });
  skip("it elects none: all instances read and write the journal", "registry: leader election");
  await broker.behaviour("registry: compacted journal, restart", async () => {
    await setJournal("compact");
    await until("compaction", async () => {
      await registerAll(instances[0]!, ids.size);
      return await compactions(broker.http) > 0;
    });
    await setJournal("delete");
    await Promise.all(instances.map((each) => each.kill9()));
    await broker.killAndStart();
    instances = [await startRegistry()];
    await readAll(instances[0]!);
    await registerAll(instances[0]!, ids.size);
    await readAll(instances[0]!);
    same(
      (await register(instances[0]!, "subject-0", schemaOf(0, REQUIRED))).status,
      409,
      "the rule",
    );
  });
  await admin.disconnect();
  await Promise.all(instances.map((each) => each.kill9()));
  await broker.end();
}

await main();
process.exit(0);
