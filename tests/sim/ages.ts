/**
 * A long life on a sound store: enough entries for several snapshots, more than a day for the trim behind them, a
 * process that sleeps through all of it and wakes up, a start from a snapshot. And a WAL whose answers come half
 * a day late. What takes days is out of reach of the storms; here it costs seconds.
 */
import { METADATA_SNAPSHOT_ENTRIES, METADATA_TRIM_AGE_MS_MIN } from "../../src/lib/limits.ts";
import { logPrefix, parseWalKey } from "../../src/object/object_key.ts";
import { sleep } from "../../src/env/clock.ts";
import { createTopicsApi } from "../../src/protocol/message/19_create_topics.ts";
import { incrementalAlterConfigsApi } from "../../src/protocol/message/44_incremental_alter_configs.ts";
import type { Sabotage } from "./canary.ts";
import { watchDeletes } from "./checker/deletes.ts";
import { EvidenceChecker } from "./checker/evidence.ts";
import { History } from "./checker/history.ts";
import { LeakChecker } from "./checker/leaks.ts";
import { MetadataChecker } from "./checker/metadata.ts";
import { watchNames } from "./checker/names.ts";
import { watchSeals } from "./checker/seal.ts";
import { Cluster, CLUSTER_ID } from "./cluster.ts";
import { KafkaClient } from "./kafka_client.ts";
import { codecs } from "./process.ts";
import { NO_STORE_FAULTS, SimStore } from "./sim_store.ts";
import { batchOf, type Context } from "./workload/context.ts";
import { fetchFrom } from "./workload/fetch.ts";
import { produce } from "./workload/produce.ts";
import { World } from "./world.ts";

const HOUR_MS = 3_600_000;
const PATIENCE_MS = 120_000;
const TOPIC = "long";
const TOPIC_RESOURCE = 2;

/** Changes of the log are made one by one: each is an entry. */
const ROUND_ENTRIES = METADATA_SNAPSHOT_ENTRIES + 20;
const ROUNDS = 3;

class LongLife {
  readonly world = new World(1);
  readonly store = new SimStore(this.world, NO_STORE_FAULTS);
  readonly cluster: Cluster;
  readonly metadata: MetadataChecker;
  readonly evidence: EvidenceChecker;
  readonly leaks: LeakChecker;
  readonly context: Context;
  readonly #client: KafkaClient;
  #topicId = "";
  #changes = 0;
  #records = 0;

  constructor(wrapStore?: Sabotage) {
    const { world, store } = this;
    this.cluster = new Cluster({
      world,
      store,
      net: { reset: 0, split: 0, latencyMs: 1 },
      ...(wrapStore === undefined ? {} : {
        wrapStore: (line, process) =>
          wrapStore(line, process, { world, store, clusterId: CLUSTER_ID }),
      }),
    });
    this.metadata = new MetadataChecker(world, store, CLUSTER_ID);
    this.metadata.onRegistered = (process, at) => this.cluster.registered(process, at);
    this.evidence = new EvidenceChecker(world, store, CLUSTER_ID);
    this.cluster.onProcess = (process) => this.evidence.watch(process);
    this.leaks = new LeakChecker(world, store, CLUSTER_ID, this.metadata);
    watchNames(world, store, CLUSTER_ID);
    watchDeletes(world, store, CLUSTER_ID, this.metadata);
    watchSeals(world, store, CLUSTER_ID, this.metadata);
    this.#client = new KafkaClient(world, this.cluster, "long");
    this.context = {
      world,
      cluster: this.cluster,
      history: new History(world),
      topics: [],
      steady: { name: TOPIC, topicId: "", partitions: 1, mayTrim: false, doomed: false },
      codecs,
      draining: false,
      resting: false,
      over: false,
    };
  }

  async start(): Promise<void> {
    this.cluster.start();
    await this.settled();
  }

  async settled(): Promise<void> {
    if (await this.world.runUntil(() => this.cluster.isReady, PATIENCE_MS)) return;
    this.world.violated("I18: nobody serves");
  }

  async createTopic(): Promise<void> {
    const asked = this.#client.call(createTopicsApi, 7, {
      topics: [{
        name: TOPIC,
        numPartitions: 1,
        replicationFactor: 1,
        assignments: [],
        configs: [],
      }],
      timeoutMs: 30_000,
    }, PATIENCE_MS);
    const { response } = await this.world.drive(asked, PATIENCE_MS, "the topic");
    this.#topicId = response.topics[0]!.topicId!;
    this.context.topics.push({ ...this.context.steady, topicId: this.#topicId });
  }

  async change(count: number): Promise<void> {
    for (let i = 0; i < count; i++) {
      const asked = this.#client.call(incrementalAlterConfigsApi, 1, {
        resources: [{
          resourceType: TOPIC_RESOURCE,
          resourceName: TOPIC,
          configs: [{
            name: "retention.ms",
            configOperation: 0,
            value: String(100 * HOUR_MS + ++this.#changes),
          }],
        }],
        validateOnly: false,
      }, PATIENCE_MS);
      await this.world.drive(asked, PATIENCE_MS, "a change");
    }
  }

  /** The answer's error code, or null without one in time. */
  async produce(): Promise<number | null> {
    const values = [`long:${this.#records++}`];
    const batch = batchOf(this.context, values);
    const asked = produce(this.#client, this.#topicId, 0, batch, PATIENCE_MS, values[0]!);
    const answer = await this.world.drive(asked.catch(() => null), 2 * PATIENCE_MS, "a record");
    if (answer?.code !== 0) return answer?.code ?? null;
    const { history } = this.context;
    history.acknowledge(history.of(this.#topicId, 0), answer.baseOffset, values);
    return 0;
  }

  async readAll(): Promise<number> {
    const asked = fetchFrom(this.context, this.#client, {
      topicId: this.#topicId,
      partition: 0,
      offset: 0,
      maxBytes: 1_000_000,
      waitMs: 0,
      timeoutMs: PATIENCE_MS,
    });
    const { records } = await this.world.drive(asked, PATIENCE_MS, "reading");
    return records.length;
  }

  reconnect(): void {
    this.#client.close();
  }
}

export interface LongResult {
  readonly violation: string | null;
  readonly snapshots: number;
  readonly entriesLeft: number;
  readonly entries: number;
  readonly fenced: number;
  readonly acknowledgements: number;
  readonly read: number;
}

async function resultOf(life: LongLife, work: () => Promise<number>): Promise<LongResult> {
  const { world, cluster, metadata, evidence, store } = life;
  let read = 0;
  try {
    read = await work();
  } catch (error) {
    world.violated(error instanceof Error ? `${error.stack}` : String(error));
  }
  let entriesLeft = 0;
  for await (const _ of store.bucket.list(logPrefix(CLUSTER_ID))) entriesLeft++;
  for (const process of cluster.processes()) process.kill("end of the run");
  return {
    violation: world.violation?.message ?? null,
    snapshots: metadata.snapshots,
    entriesLeft,
    entries: metadata.state.at,
    fenced: cluster.fenced,
    acknowledgements: evidence.acknowledgements,
    read,
  };
}

/** Snapshots, the trim behind them, and a sleeper that wakes up behind the trim. */
export function liveThroughTrim(wrapStore?: Sabotage): Promise<LongResult> {
  const life = new LongLife(wrapStore);
  return resultOf(life, async () => {
    const { world, cluster } = life;
    await life.start();
    await life.createTopic();
    await life.produce();
    const [sleeper] = cluster.processes();
    sleeper!.pause(METADATA_TRIM_AGE_MS_MIN + 3 * HOUR_MS, "suspended");
    life.reconnect();
    cluster.start();
    await world.run(PATIENCE_MS);
    await life.produce();
    for (let round = 0; round < ROUNDS; round++) await life.change(ROUND_ENTRIES);
    await world.run(METADATA_TRIM_AGE_MS_MIN + HOUR_MS);
    await life.change(ROUND_ENTRIES);
    await life.metadata.check();
    await life.leaks.checkCollected();
    await world.run(2 * HOUR_MS);
    if (sleeper!.alive) world.violated("I4: a process that slept through everything serves on");
    cluster.crash();
    life.reconnect();
    await life.settled();
    await life.produce();
    await life.metadata.check();
    return await life.readAll();
  });
}

/** A process whose WAL answers come so late that its ownership must be looked up. */
export function acknowledgeLate(lateMs: number, wrapStore?: Sabotage): Promise<LongResult> {
  let isLate = false;
  const life = new LongLife((line, process, sim) => {
    const lying = wrapStore?.(line, process, sim) ?? line;
    return {
      ...line,
      get: (key, options) => (isLate ? lying : line).get(key, options),
      async put(key, body, options) {
        const answer = await lying.put(key, body, options);
        const isSlot = parseWalKey(sim.clusterId, key) !== null;
        if (isLate && isSlot) await sleep(process.env.clock, lateMs);
        return answer;
      },
    };
  });
  return resultOf(life, async () => {
    await life.start();
    await life.createTopic();
    await life.produce();
    isLate = true;
    await life.produce();
    await life.world.run(lateMs + HOUR_MS);
    life.reconnect();
    return await life.readAll();
  });
}
