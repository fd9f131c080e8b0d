/** One run: clients at work while the broker's process is killed again and again, a last look, and the verdict. */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { randomInt, seededRandom } from "../../src/env/random.ts";
import { errorName } from "../../src/protocol/error_code.ts";
import { createTopicsApi } from "../../src/protocol/message/19_create_topics.ts";
import { freePort } from "../bench/free_port.ts";
import { Broker } from "../soak/broker.ts";
import { Hangup, pause, Soak, WireClient } from "../soak/cluster.ts";
import { S3_ENV, S3_STORE, StoreServer } from "../soak/store_server.ts";
import { usualBinary, within } from "../support/broker_process.ts";
import { check } from "./checker.ts";
import { History } from "./history.ts";
import {
  kafkajsCopier,
  kafkajsIdempotent,
  kafkajsReader,
  kafkajsTransactions,
} from "./kafkajs_clients.ts";
import {
  platformaticIdempotent,
  platformaticReader,
  platformaticTransactions,
} from "./platformatic_clients.ts";
import { readAgain, Reader, readTail, readWhole, type Whole } from "./reading.ts";
import { committedPositions, type CopyPlan, wireCopier } from "./wire_copier.ts";
import { wireIdempotent } from "./wire_idempotent.ts";
import { wireTransactions } from "./wire_transactions.ts";
import {
  INPUT,
  LOG,
  partitionName,
  type Place,
  placesOf,
  type Topic,
  type World,
} from "./world.ts";

const COPIES: readonly CopyPlan[] = [
  { id: "copier-v1", group: "copy-v1", output: "out-v1", isV2: false },
  { id: "copier-v2", group: "copy-v2", output: "out-v2", isV2: true },
  { id: "copier-kafkajs", group: "copy-kafkajs", output: "out-kafkajs", isV2: false },
];
const TOPICS: readonly Topic[] = [
  LOG,
  INPUT,
  ...COPIES.map(({ output }) => ({ name: output, partitions: 1 })),
];
const PLACES = placesOf(TOPICS);

/** Segments, uploads and compaction at work within seconds; transactions that nobody ends are soon aborted. */
const PROPERTIES = {
  "auto.create.topics.enable": "false",
  "group.initial.rebalance.delay.ms": "0",
  "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
  "skerry.upload.interval.ms": "2000",
  "skerry.log.cache.bytes": "16777216",
  "skerry.upload.block.bytes": "2097152",
  "skerry.compaction.interval.ms": "1000",
  "skerry.compaction.objects.min": "4",
  "skerry.metadata.snapshot.entries": "50",
} as const;

/** Between two ends of the process. */
const KILL_MS_MIN = 1_500;
const KILL_MS_SPREAD = 4_000;
const CRASH_STARTS = 0.2;
/** What is under way when the time is over has to end within this. */
const END_MS_MAX = 60_000;
const GIVE_UP_MS_MAX = 10_000;

export interface PlayOptions {
  readonly seconds: number;
  readonly seed: number;
  readonly store: "dir" | "s3";
  /** Where versitygw is, or is installed. */
  readonly cache: string;
  /** Logs, the store and the history. */
  readonly out: string;
}

export interface Played {
  readonly violations: readonly string[];
  readonly counts: ReadonlyMap<string, number>;
}

export async function play(options: PlayOptions): Promise<Played> {
  const { out, seed, seconds, store, cache } = options;
  const server = store === "dir" ? null : await StoreServer.start("versitygw", { cache, out });
  const place = server === null
    ? ["--store", `dir:${join(out, "store")}`]
    : ["--store", S3_STORE, "--s3-endpoint", server.url.origin, "--s3-path-style"];
  const properties = Object.entries(PROPERTIES).flatMap((
    [name, value],
  ) => ["--set", `${name}=${value}`]);
  const broker = new Broker({
    binary: binaryIn(out),
    args: [...place, ...properties],
    env: S3_ENV,
    kafka: `127.0.0.1:${await freePort()}`,
    http: `127.0.0.1:${await freePort()}`,
    logs: join(out, "logs"),
  });
  const soak = new Soak(broker.kafka);
  broker.watchedBy(soak);
  const world: World = {
    soak,
    history: new History(),
    random: seededRandom(seed),
    inputEnds: null,
    deadlineMs: performance.now() + seconds * 1_000 + 2 * END_MS_MAX,
  };
  try {
    await broker.start();
    await createTopics(world);
    await storm(world, broker, seconds * 1_000);
    const code = await broker.stop();
    if (code !== 0) soak.violation(`the broker stopped with ${code}`);
  } finally {
    writeFileSync(join(out, "history.ndjson"), world.history.ndjson());
    if (broker.pid !== null) await broker.kill9();
    await server?.stop();
  }
  for (const { rule, what } of check(world.history.events)) soak.violation(`${rule}: ${what}`);
  soak.count("events", world.history.events.length);
  return { violations: soak.violations, counts: soak.counts };
}

function binaryIn(out: string): string {
  const named = usualBinary();
  if (named !== null) return named;
  const path = join(out, "skerry");
  execFileSync("./compile.sh", ["--out", path], { stdio: "inherit" });
  return path;
}

async function createTopics({ soak }: World): Promise<void> {
  const wire = new WireClient(soak.address);
  const { topics } = await wire.call(createTopicsApi, 4, {
    topics: TOPICS.map(({ name, partitions }) => ({
      name,
      numPartitions: partitions,
      replicationFactor: 1,
      assignments: [],
      // The times in the records are those of a test.
      configs: [{ name: "retention.ms", value: "-1" }],
    })),
    timeoutMs: 30_000,
    validateOnly: false,
  });
  wire.close();
  const bad = topics.find(({ errorCode }) => errorCode !== 0);
  if (bad !== undefined) throw new Error(`${bad.name}: ${errorName(bad.errorCode)}`);
}

/** All clients, the kills, and the reading at the end. */
async function storm(world: World, broker: Broker, ms: number): Promise<void> {
  const { soak } = world;
  const writers = [
    wireIdempotent(world, "wire-log", LOG),
    wireIdempotent(world, "wire-in", INPUT),
    kafkajsIdempotent(world, "kafkajs-log", LOG),
    kafkajsIdempotent(world, "kafkajs-in", INPUT),
    platformaticIdempotent(world, "platformatic-log", LOG),
    wireTransactions(world, { id: "wire-v1", isV2: false, input: 0 }),
    wireTransactions(world, { id: "wire-v2", isV2: true, input: 1 }),
    kafkajsTransactions(world, "kafkajs-txn"),
    platformaticTransactions(world, "platformatic-txn"),
  ];
  const [first, second, third] = COPIES;
  const copiers = [
    wireCopier(world, first!),
    wireCopier(world, second!),
    kafkajsCopier(world, third!),
  ];
  const readers = [
    readTail(world, "committed", PLACES),
    readTail(world, "uncommitted", PLACES),
    readAgain(world, "committed", PLACES),
    readAgain(world, "uncommitted", PLACES),
    kafkajsReader(world, { name: "kafkajs-committed", topics: [INPUT], committed: true }),
    kafkajsReader(world, { name: "kafkajs-uncommitted", topics: [LOG], committed: false }),
    platformaticReader(world, "platformatic-uncommitted", [LOG, INPUT]),
  ];
  // Whoever ends with an error is told of at once, and waited for below.
  for (const each of [...writers, ...copiers, ...readers]) {
    each.catch((error: unknown) =>
      soak.violation(String(error instanceof Error ? error.stack : error))
    );
  }
  await killing(world, broker, ms);
  soak.writing = false;
  await ended(world, "the writers", writers);
  world.inputEnds = await inputEnds(world);
  await ended(world, "the copiers", copiers);
  soak.reading = false;
  await ended(world, "the readers", readers);
  await broker.kill9();
  await broker.start();
  await lastLook(world);
}

async function killing({ soak, random }: World, broker: Broker, ms: number): Promise<void> {
  const endMs = performance.now() + ms;
  for (;;) {
    const next = KILL_MS_MIN + randomInt(random, KILL_MS_SPREAD);
    const leftMs = endMs - performance.now();
    await pause(Math.max(0, Math.min(next, leftMs)));
    if (next >= leftMs) return;
    await broker.kill9();
    soak.count("kills");
    if (random.float() < CRASH_STARTS) {
      await broker.crashStart(100 + randomInt(random, 700));
      soak.count("kills of a start");
    }
    await broker.start();
  }
}

/** Waits for them; whoever is late is told to give up, so that nothing changes during the last look. */
async function ended(world: World, who: string, clients: readonly Promise<void>[]): Promise<void> {
  const all = Promise.allSettled(clients);
  if (await within(all, END_MS_MAX) !== null) return;
  world.soak.violation(`${who} did not end within ${END_MS_MAX} ms`);
  world.deadlineMs = performance.now();
  await within(all, GIVE_UP_MS_MAX);
}

/** Reads all of it until no transaction is open any more; the bound is for a broker that forgets one. */
async function settled(
  world: World,
  place: Place,
): Promise<[committed: Whole, uncommitted: Whole]> {
  const committed = new Reader(world, "last look, committed", "committed");
  const uncommitted = new Reader(world, "last look, uncommitted", "uncommitted");
  const endMs = performance.now() + END_MS_MAX / 2;
  try {
    for (;;) {
      try {
        const whole = await readWhole(committed, place);
        const isSettled = whole.lastStableOffset === whole.highWatermark;
        if (isSettled || performance.now() > endMs) {
          return [whole, await readWhole(uncommitted, place)];
        }
      } catch (error) {
        if (!(error instanceof Hangup) || performance.now() > endMs) throw error;
      }
      await pause(200);
    }
  } finally {
    committed.close();
    uncommitted.close();
  }
}

async function inputEnds(world: World): Promise<Map<string, number>> {
  const ends = new Map<string, number>();
  for (const place of placesOf([INPUT])) {
    const [{ rows }] = await settled(world, place);
    ends.set(partitionName(place.topic, place.partition), (rows.at(-1)?.[0] ?? -1) + 1);
  }
  return ends;
}

async function lastLook(world: World): Promise<void> {
  const { history, soak } = world;
  for (const place of PLACES) {
    const [committed, uncommitted] = await settled(world, place);
    history.note({
      kind: "final",
      partition: partitionName(place.topic, place.partition),
      committed: committed.rows,
      uncommitted: uncommitted.rows,
      highWatermark: uncommitted.highWatermark,
      lastStableOffset: committed.lastStableOffset,
    });
    soak.count("records in the end", uncommitted.rows.length);
    soak.count("records in the end, committed", committed.rows.length);
  }
  for (const { group, output } of COPIES) {
    const positions = await committedPositions(world, group) ?? [];
    history.note({
      kind: "copied",
      group,
      outputs: [partitionName(output, 0)],
      positions: Object.fromEntries(
        positions.map((at, partition) => [partitionName(INPUT.name, partition), at]),
      ),
    });
  }
}
