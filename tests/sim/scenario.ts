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
import { checkStreams } from "./checker/streams.ts";
import { type Moment, WalWatch } from "./checker/wal_watch.ts";
import { watchSeals } from "./checker/seal.ts";
import type { Sabotage } from "./canary.ts";
import { Cluster, CLUSTER_ID } from "./cluster.ts";
import { KafkaClient } from "./kafka_client.ts";
import { Nemesis } from "./nemesis.ts";
import { codecs, type SimProcess } from "./process.ts";
import { netFaults, storageProperties } from "./settings.ts";
import { NO_STORE_FAULTS, SimStore } from "./sim_store.ts";
import type { Context, SimTopic } from "./workload/context.ts";
import { Committer } from "./workload/committer.ts";
import { GroupMember } from "./workload/group_member.ts";
import { HttpProducer } from "./workload/http_producer.ts";
import { HttpReader } from "./workload/http_reader.ts";
import { IdempotentProducer } from "./workload/idempotent_producer.ts";
import { PlainProducer } from "./workload/plain_producer.ts";
import { Reader } from "./workload/reader.ts";
import {
  planSemantics,
  SEMANTICS_PROPERTIES,
  type SemanticsPlan,
  SemanticsPlay,
} from "./workload/semantics.ts";
import { TopicAdmin } from "./workload/topics.ts";
import { wholeLog } from "./workload/whole_log.ts";
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
  /** Transactions and compacted topics: as planned, or as the seed plans; by default some seeds have them. */
  readonly semantics?: SemanticsPlan | true;
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
  /** Transactions that were committed, and processes that died in moments that matter to them. */
  readonly transactions: number;
  readonly moments: ReadonlyMap<Moment, number>;
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

class Run {
  readonly #options: RunOptions;
  readonly world: World;
  readonly store: SimStore;
  readonly cluster: Cluster;
  readonly context: Context;
  readonly #metadata: MetadataChecker;
  readonly #leaks: LeakChecker;
  readonly #wal: WalWatch;
  readonly #random: Random;
  readonly #plain: PlainProducer[] = [];
  readonly #idempotent: IdempotentProducer[] = [];
  readonly #committers: Committer[] = [];
  readonly #http: HttpProducer[] = [];
  readonly #group: GroupHistory;
  readonly #members: GroupMember[] = [];
  readonly #admin: TopicAdmin;
  readonly #semantics: SemanticsPlay | null;

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
        ...SEMANTICS_PROPERTIES,
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
    const plan = this.#planned(options);
    this.#semantics = plan === null ? null : new SemanticsPlay(this.context, plan);
    const { clusterId } = this.cluster;
    this.#metadata = new MetadataChecker(world, store, clusterId);
    this.#metadata.onRegistered = (process, at) => this.cluster.registered(process, at);
    const isReplaced = (process: SimProcess) =>
      this.cluster.isReplaced(this.cluster.epochOf(process));
    this.#leaks = new LeakChecker(world, store, clusterId, this.#metadata, isReplaced);
    this.#group = new GroupHistory(world, "members");
    const evidence = new EvidenceChecker(world, store, clusterId);
    this.#wal = new WalWatch(store, clusterId, this.#metadata);
    this.cluster.onProcess = (process) => {
      evidence.watch(process);
      this.#wal.watch(process);
    };
    watchNames(world, store, clusterId);
    watchDeletes(world, store, clusterId, this.#metadata);
    watchSeals(world, store, clusterId, this.#metadata);
  }

  #planned({ small, semantics }: RunOptions): SemanticsPlan | null {
    if (semantics !== undefined && semantics !== true) return semantics;
    const random = this.world.random("semantics plan");
    const isOn = chance(random, 0.4) && small !== true || semantics === true;
    return isOn ? planSemantics(random) : null;
  }

  async run(): Promise<void> {
    const { world } = this;
    world.note(`store faults ${JSON.stringify(this.store.faults)}`);
    this.cluster.start();
    await world.drive(this.#admin.begin(), PEACE_MS, "the first topics");
    if (this.#semantics !== null) {
      await world.drive(this.#semantics.begin(), PEACE_MS, "topics of transactions");
    }
    this.#load();
    this.#semantics?.load();
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

  get transactions(): number {
    return this.#semantics?.transactions.count("committed") ?? 0;
  }

  get moments(): ReadonlyMap<Moment, number> {
    return this.#wal.cutShort;
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
    if (this.#semantics !== null && this.#options.calm !== true) {
      this.#semantics.onEnding = () => nemesis.strikeAtEnd();
    }
    // A transaction takes a dozen requests in a row.
    const pauseMs = this.#semantics === null ? 6_000 : 12_000;
    for (let step = 0; step < this.#options.steps; step++) {
      await this.world.run(between(this.#random, 50, pauseMs));
      if (this.#options.calm !== true) {
        await this.world.drive(nemesis.strike(), PEACE_MS, "a blow");
      }
      await this.#metadata.check();
    }
    if (this.#semantics !== null) this.#semantics.onEnding = () => {};
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
      this.#semantics?.isIdle !== false &&
      [
        ...this.#idempotent,
        ...this.#plain,
        ...this.#http,
        ...this.#committers,
        ...this.#members,
      ].every(({ isIdle }) => isIdle);
    if (await this.world.runUntil(isDone, PEACE_MS)) return await this.#settleTransactions();
    const count = (all: readonly { readonly isIdle: boolean }[]) =>
      all.filter(({ isIdle }) => !isIdle).length;
    this.world.violated(
      `I18: no peace within ${PEACE_MS} ms: ${this.cluster.processes().length} processes, ` +
        `settled ${this.cluster.isSettled}; waiting: admin ${count([this.#admin])}, ` +
        `idempotent ${count(this.#idempotent)}, plain ${count(this.#plain)}, ` +
        `http ${count(this.#http)}, committers ${count(this.#committers)}, ` +
        `members ${count(this.#members)}, transactions ${this.#semantics?.isIdle !== false}`,
    );
    throw this.world.violation!;
  }

  async #settleTransactions(): Promise<void> {
    if (this.#semantics === null) return;
    await this.world.drive(this.#semantics.settle(), PEACE_MS, "the end of all transactions");
  }

  /** Long enough for uploads, retention and the collector. */
  async #idle(): Promise<void> {
    await this.#rest(IDLE_MS);
    if (this.#semantics !== null) {
      await this.world.drive(
        this.#semantics.checkCompacted(),
        PEACE_MS,
        "reading what is compacted",
      );
    }
    await this.#metadata.check();
    checkStreams(this.world, this.#metadata.state, this.#wal);
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
        const log = await world.drive(
          wholeLog(this.context, client, topic, partition),
          PEACE_MS,
          what,
        );
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
    if (this.#semantics !== null) {
      await world.drive(this.#semantics.questions(when), PEACE_MS, `transactions ${when}`);
    }
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
    transactions: run.transactions,
    moments: run.moments,
    violation: world.violation?.message ?? null,
  };
}
