/**
 * One seed, one run: a swarm of faults and clients around the production node, then peace, then the questions:
 * is everything acknowledged there, once, in order; do metadata and store agree; does it still serve.
 */
import { type Random, randomInt } from "../../src/env/random.ts";
import { watchDeletes } from "./checker/deletes.ts";
import { EvidenceChecker } from "./checker/evidence.ts";
import { checkExactlyOnce } from "./checker/exactly_once.ts";
import { GroupHistory } from "./checker/group.ts";
import { History } from "./checker/history.ts";
import { LeakChecker } from "./checker/leaks.ts";
import { MetadataChecker } from "./checker/metadata.ts";
import { watchNames } from "./checker/names.ts";
import { checkReadable, type WholeLog } from "./checker/readable.ts";
import { watchSeals } from "./checker/seal.ts";
import type { Sabotage } from "./canary.ts";
import { Cluster, CLUSTER_ID } from "./cluster.ts";
import { KafkaClient, NoAnswer } from "./kafka_client.ts";
import { Nemesis } from "./nemesis.ts";
import { codecs, type SimProcess } from "./process.ts";
import type { NetFaults } from "./sim_net.ts";
import { NO_STORE_FAULTS, SimStore } from "./sim_store.ts";
import type { Context, SimTopic } from "./workload/context.ts";
import { Committer } from "./workload/committer.ts";
import { earliestOf, fetchFrom } from "./workload/fetch.ts";
import { GroupMember } from "./workload/group_member.ts";
import { HttpProducer } from "./workload/http_producer.ts";
import { HttpReader } from "./workload/http_reader.ts";
import { IdempotentProducer } from "./workload/idempotent_producer.ts";
import { PlainProducer } from "./workload/plain_producer.ts";
import { Reader } from "./workload/reader.ts";
import { TopicAdmin } from "./workload/topics.ts";
import { between, chance, World } from "./world.ts";
import { WAL_SEAL_AGE_MS_MIN } from "../../src/lib/limits.ts";
import { check } from "../support/stored_world.ts";

export interface RunOptions {
  readonly seed: number;
  /** Rounds of load with one blow of the nemesis each. */
  readonly steps: number;
  /** No faults of store and network, no nemesis: what must work in any case. */
  readonly calm?: boolean;
  /** One crash and little load, for loops over every store call. */
  readonly small?: boolean;
  /** Kills the process as it makes the n-th request of the run. */
  readonly crashAtCall?: number;
  /** What happens to requests of a process that dies: lands always, never, or by chance. */
  readonly landsAfterDeath?: number;
  /** Breaks the node on purpose. */
  readonly wrapStore?: Sabotage;
}

export interface RunResult {
  readonly world: World;
  readonly hash: string;
  readonly acknowledged: number;
  readonly starts: number;
  readonly fenced: number;
  readonly requests: number;
  /** Null when every promise was kept. */
  readonly violation: string | null;
}

const MIB = 1024 * 1024;
/** Time that a healed cluster gets to answer everything that waits. */
const PEACE_MS = 600_000;
const IDLE_MS = 1_200_000;
const DAY_MS = 86_400_000;
/** T_SEAL and a day. */
const LONG_MS = WAL_SEAL_AGE_MS_MIN + DAY_MS;
/** As old as an audit wants what it deletes, and some. */
const SHORT_MS = DAY_MS + 3_600_000;
const AUDIT_INTERVAL_MS = 60_000;
/** The first audit finds all, unless metadata went on meanwhile. */
const AUDITS = 3;
/** Longer than a request takes. */
const LANDED_MS = 60_000;
/** Readers that ask more often show nothing new and make a seed slow. */
const READ_MS_MIN = 200;

function netFaults(random: Random): NetFaults {
  return {
    reset: chance(random, 0.5) ? random.float() * 0.03 : 0,
    split: chance(random, 0.3) ? 0.3 : 0,
    latencyMs: between(random, 0.2, 20),
  };
}

/** Objects so small and limits so low that every kind of compaction has work within a run. */
function storageProperties(random: Random): Record<string, string> {
  if (!chance(random, 0.7)) return {};
  return {
    "skerry.upload.interval.ms": String(1_000 + randomInt(random, 10_000)),
    "skerry.upload.split.bytes": String(100 + randomInt(random, 2_000)),
    "skerry.compaction.interval.ms": String(1_000 + randomInt(random, 5_000)),
    "skerry.compaction.objects.min": "2",
    "skerry.compaction.split.bytes": String(100 + randomInt(random, 2_000)),
    "skerry.compaction.force.split.ms": "60000",
    "skerry.compaction.merge.bytes.max": String(300 + randomInt(random, 3_000)),
    "skerry.compaction.link.bytes.min": String(randomInt(random, 300)),
    "skerry.compaction.dead.bytes.max": String(1 + randomInt(random, 2_000)),
  };
}

class Run {
  readonly #options: RunOptions;
  readonly world: World;
  readonly store: SimStore;
  readonly cluster: Cluster;
  readonly context: Context;
  readonly #metadata: MetadataChecker;
  readonly #leaks: LeakChecker;
  readonly #random: Random;
  readonly #plain: PlainProducer[] = [];
  readonly #idempotent: IdempotentProducer[] = [];
  readonly #committers: Committer[] = [];
  readonly #http: HttpProducer[] = [];
  readonly #group: GroupHistory;
  readonly #members: GroupMember[] = [];
  readonly #admin: TopicAdmin;

  constructor(options: RunOptions) {
    this.#options = options;
    const world = new World(options.seed);
    const random = world.random("scenario");
    const calm = options.calm === true;
    const store = new SimStore(world, calm ? NO_STORE_FAULTS : SimStore.swarm(random));
    const { wrapStore, crashAtCall, landsAfterDeath } = options;
    if (landsAfterDeath !== undefined) store.landsAfterDeath = landsAfterDeath;
    if (crashAtCall !== undefined) {
      store.judge = (number) => {
        if (number === crashAtCall) world.after(0, () => this.cluster.crash());
      };
    }
    this.world = world;
    this.store = store;
    this.#random = random;
    this.cluster = new Cluster({
      world,
      store,
      net: calm ? { reset: 0, split: 0, latencyMs: 1 } : netFaults(random),
      storeHasPrices: chance(random, 0.3),
      // The log of the groups is rewritten again and again, not once in a megabyte.
      groupBounds: { compactBytesMin: chance(random, 0.7) ? 500 + randomInt(random, 5_000) : MIB },
      properties: {
        "offsets.topic.num.partitions": "2",
        // A script that asks by name must not bring a deleted topic back.
        "auto.create.topics.enable": "false",
        "skerry.audit.interval.ms": String(AUDIT_INTERVAL_MS),
        "skerry.audit.requests.per.second": "100",
        // Clients keep true time; the node's clock may be a day behind.
        "log.message.timestamp.after.max.ms": String(30 * 86_400_000),
        ...storageProperties(world.random("storage")),
      },
      ...(wrapStore === undefined ? {} : {
        wrapStore: (line, process) =>
          wrapStore(line, process, { world, store, clusterId: CLUSTER_ID }),
      }),
    });
    this.context = {
      world,
      cluster: this.cluster,
      history: new History(world),
      topics: [],
      steady: { name: "", topicId: "", partitions: 0, mayTrim: false, doomed: false },
      codecs,
      draining: false,
      resting: false,
      over: false,
    };
    this.#admin = new TopicAdmin(this.context);
    const { clusterId } = this.cluster;
    this.#metadata = new MetadataChecker(world, store, clusterId);
    this.#metadata.onRegistered = (process, at) => this.cluster.registered(process, at);
    const isReplaced = (process: SimProcess) =>
      this.cluster.isReplaced(this.cluster.epochOf(process));
    this.#leaks = new LeakChecker(world, store, clusterId, this.#metadata, isReplaced);
    this.#group = new GroupHistory(world, "members");
    const evidence = new EvidenceChecker(world, store, clusterId);
    this.cluster.onProcess = (process) => evidence.watch(process);
    watchNames(world, store, clusterId);
    watchDeletes(world, store, clusterId, this.#metadata);
    watchSeals(world, store, clusterId, this.#metadata);
  }

  async run(): Promise<void> {
    const { world } = this;
    world.note(`store faults ${JSON.stringify(this.store.faults)}`);
    this.cluster.start();
    await world.drive(this.#admin.begin(), PEACE_MS, "the first topics");
    this.#load();
    await (this.#options.small === true ? this.#crashOnce() : this.#storm());
    await this.#peace();
    await this.#questions("after the storm");
    const isLong = chance(world.random("age"), 0.5);
    if (!isLong) await this.#idle();
    // What lands after the jump is young, and an audit leaves it alone.
    await this.#rest(Math.max(0, this.store.lateUntilMs - world.nowMs));
    const agedMs = this.#age(isLong ? LONG_MS : SHORT_MS);
    await world.drive(this.cluster.stop(), PEACE_MS, "a clean stop");
    this.cluster.start();
    await this.#questions("after a clean restart");
    if (isLong) await this.#idle();
    else await this.#rest(AUDITS * AUDIT_INTERVAL_MS);
    await this.#leaks.checkAudited();
    if (isLong) await this.#leaks.checkSeals(agedMs);
    this.context.over = true;
    await this.#end();
    await this.#checkStore();
  }

  #load(): void {
    const random = this.#random;
    if (this.#options.small === true) {
      this.#idempotent.push(new IdempotentProducer(this.context, "i0"));
      this.#committers.push(new Committer(this.context, "g0"));
      void this.#idempotent[0]!.run(60);
      return void this.#committers[0]!.run(200);
    }
    const pauseMs = between(random, 5, 400);
    const readMs = Math.max(READ_MS_MIN, 2 * pauseMs);
    for (let i = 0; i < 1 + randomInt(random, 3); i++) {
      this.#idempotent.push(new IdempotentProducer(this.context, `i${i}`));
    }
    for (let i = 0; i < randomInt(random, 3); i++) {
      this.#plain.push(new PlainProducer(this.context, `p${i}`));
    }
    for (let i = 0; i < randomInt(random, 2); i++) {
      this.#committers.push(new Committer(this.context, `g${i}`));
    }
    const readers = Array.from(
      { length: 1 + randomInt(random, 2) },
      (_, i) => new Reader(this.context, `r${i}`),
    );
    if (chance(random, 0.4)) {
      this.#http.push(new HttpProducer(this.context, "h0"));
      void new HttpReader(this.context, "hr0").run(readMs);
    }
    if (chance(random, 0.6)) {
      for (let i = 0; i < 2 + randomInt(random, 2); i++) {
        this.#members.push(new GroupMember(this.context, this.#group, `m${i}`));
      }
    }
    for (const one of [...this.#idempotent, ...this.#plain, ...this.#http]) void one.run(pauseMs);
    for (const one of this.#members) void one.run(1_500);
    for (const one of readers) void one.run(readMs);
    for (const one of this.#committers) void one.run(pauseMs * 4);
    if (chance(random, 0.5)) void this.#admin.run(between(random, 1_000, 20_000));
  }

  async #crashOnce(): Promise<void> {
    await this.world.run(700);
    this.cluster.crash();
    await this.world.run(1_500);
  }

  async #storm(): Promise<void> {
    const nemesis = new Nemesis(this.world, this.cluster, this.store);
    for (let step = 0; step < this.#options.steps; step++) {
      await this.world.run(between(this.#random, 50, 6_000));
      if (this.#options.calm !== true) {
        await this.world.drive(nemesis.strike(), PEACE_MS, "a blow");
      }
      await this.#metadata.check();
    }
  }

  /** No faults any more: one process serves, and every client gets its last answer. */
  async #peace(): Promise<void> {
    this.context.draining = true;
    this.store.heal();
    if (this.#options.crashAtCall === undefined) this.store.judge = null;
    if (this.cluster.processes().length === 0) this.cluster.start();
    const stillMs = Math.max(0, this.cluster.stillUntilMs - this.world.nowMs);
    if (stillMs > 0) await this.world.run(stillMs);
    const isDone = () =>
      this.cluster.isSettled &&
      this.#admin.isIdle &&
      [
        ...this.#idempotent,
        ...this.#plain,
        ...this.#http,
        ...this.#committers,
        ...this.#members,
      ].every(({ isIdle }) => isIdle);
    if (await this.world.runUntil(isDone, PEACE_MS)) return;
    const count = (all: readonly { readonly isIdle: boolean }[]) =>
      all.filter(({ isIdle }) => !isIdle).length;
    this.world.violated(
      `I18: no peace within ${PEACE_MS} ms: ${this.cluster.processes().length} processes, ` +
        `settled ${this.cluster.isSettled}; waiting: admin ${count([this.#admin])}, ` +
        `idempotent ${count(this.#idempotent)}, plain ${count(this.#plain)}, ` +
        `http ${count(this.#http)}, committers ${count(this.#committers)}, ` +
        `members ${count(this.#members)}`,
    );
    throw this.world.violation!;
  }

  /** Long enough for uploads, retention and the collector. */
  async #idle(): Promise<void> {
    await this.#rest(IDLE_MS);
    await this.#metadata.check();
    await this.#leaks.checkCollected();
  }

  async #rest(forMs: number): Promise<void> {
    this.context.resting = true;
    await this.world.run(forMs);
    this.context.resting = false;
  }

  /** Time passes in the store: who starts afterwards finds overdue what waited for it. Returns the store's time. */
  #age(byMs: number): number {
    this.store.skewMs += byMs;
    this.world.note(`the store's clock is ${byMs} ms on`);
    return this.world.wallMs + this.store.skewMs;
  }

  /** Stopped or killed, and nothing is under way any more. */
  async #end(): Promise<void> {
    if (chance(this.#random, 0.5)) await this.world.drive(this.cluster.stop(), PEACE_MS, "the end");
    else for (const process of this.cluster.processes()) process.kill("end of the run");
    await this.world.run(LANDED_MS);
  }

  /** What an operator would ask: `skerry fsck`. */
  async #checkStore(): Promise<void> {
    const { summary, damaged, text } = await check(this.store.bucket);
    if (summary.verdict === "clean" && damaged.length === 0) return;
    this.world.violated(`fsck says ${summary.verdict}:\n${text}`);
  }

  async #questions(when: string): Promise<void> {
    const { world } = this;
    const client = new KafkaClient(world, this.cluster, "auditor");
    for (const topic of this.context.topics) {
      for (let partition = 0; partition < topic.partitions; partition++) {
        const what = `reading ${topic.name}-${partition} ${when}`;
        const log = await world.drive(this.#wholeLog(client, topic, partition), PEACE_MS, what);
        this.#judge(topic, partition, log);
      }
    }
    for (const producer of this.#idempotent) {
      await world.drive(producer.repeatAll(), PEACE_MS, `repeating ${when}`);
    }
    for (const committer of this.#committers) {
      await world.drive(committer.checkAll(), PEACE_MS, `committed offsets ${when}`);
    }
    for (const member of this.#members.slice(0, 1)) {
      await world.drive(this.#checkGroup(member), PEACE_MS, `the group's offsets ${when}`);
    }
    client.close();
    await this.#metadata.check();
    await this.#leaks.check();
    if (world.violation !== null) throw world.violation;
  }

  async #checkGroup(member: GroupMember): Promise<void> {
    const { steady } = this.context;
    for (let partition = 0; partition < steady.partitions; partition++) {
      for (;;) {
        const committed = await member.committed(partition);
        if (committed === null) continue;
        this.#group.checkProcessed(partition, committed, 0);
        break;
      }
    }
  }

  #judge(topic: SimTopic, partition: number, log: WholeLog): void {
    const { world } = this;
    const history = this.context.history.of(topic.topicId, partition);
    checkReadable(world, history, log, topic.mayTrim);
    for (const producer of this.#idempotent) {
      const lane = producer.lanes().find((one) =>
        one.topic.topicId === topic.topicId && one.partition === partition
      );
      if (lane === undefined || lane.isOver || topic.doomed) continue;
      checkExactlyOnce(world, history, log, producer.name, lane.sent);
    }
    if (world.violation !== null) throw world.violation;
  }

  async #wholeLog(client: KafkaClient, topic: SimTopic, partition: number): Promise<WholeLog> {
    const { topicId } = topic;
    const records = new Map<number, string>();
    for (let offset = 0;;) {
      try {
        const answer = await fetchFrom(this.context, client, {
          topicId,
          partition,
          offset,
          maxBytes: 100_000,
          waitMs: 0,
          timeoutMs: 30_000,
        });
        const { logStart, watermark } = answer;
        if (answer.error === "OFFSET_OUT_OF_RANGE") {
          offset = await earliestOf(client, topic.name, partition) ?? offset;
        }
        if (answer.code === 0) {
          for (const one of answer.records) records.set(one.offset, one.value);
          const last = answer.records.at(-1)?.offset;
          if (last === undefined) {
            const list = [...records].map(([at, value]) => ({ offset: at, value }));
            return { logStart, watermark, records: list.filter((one) => one.offset >= logStart) };
          }
          offset = last + 1;
          continue;
        }
      } catch (error) {
        if (!(error instanceof NoAnswer)) throw error;
      }
      await this.world.sleep(100);
    }
  }
}

export async function simulate(options: RunOptions): Promise<RunResult> {
  const run = new Run(options);
  const { world, cluster, store, context } = run;
  try {
    await run.run();
  } catch (error) {
    world.violated(error instanceof Error ? `${error.stack}` : String(error));
  }
  context.over = true;
  for (const process of cluster.processes()) process.kill("end of the run");
  return {
    world,
    hash: world.hash,
    acknowledged: context.history.acknowledgedCount,
    starts: cluster.starts,
    fenced: cluster.fenced,
    requests: store.requests,
    violation: world.violation?.message ?? null,
  };
}
