/**
 * One seed of the storage level: some nodes on one bucket, a storm of work and blows, then peace, in which
 * everybody recovers and every acknowledged record must be read, by its owner and by others; then garbage goes,
 * all stop and start again, and a check of the store at rest finds nothing.
 */
import { type Random, randomInt } from "../../../src/env/random.ts";
import type { StreamId } from "../../../src/lib/brand.ts";
import { CLUSTER_KEY } from "../../../src/object/object_key.ts";
import type { Stream } from "../../../src/stream/stream.ts";
import { check } from "../../support/stored_world.ts";
import { watchDeletes } from "../checker/deletes.ts";
import { EvidenceChecker } from "../checker/evidence.ts";
import { LeakChecker } from "../checker/leaks.ts";
import { MetadataChecker } from "../checker/metadata.ts";
import { ReportChecker } from "../checker/reports.ts";
import { watchNames } from "../checker/names.ts";
import { watchSeals } from "../checker/seal.ts";
import { NO_STORE_FAULTS, SimStore } from "../sim_store.ts";
import { between, chance, pick, World } from "../world.ts";
import { Fleet } from "./fleet.ts";
import type { StreamModel } from "./model.ts";
import { CLUSTER_ID } from "./cluster_id.ts";
import type { StorageNode } from "./node.ts";
import type { Sabotage } from "./sabotage.ts";
import { HOUR_MS, type Settings, settingsOf, SMALL } from "./settings.ts";
import { Blows } from "./blows.ts";
import { watchDurable } from "./durable.ts";
import { toAscii } from "./payload.ts";
import { Workload } from "./workload.ts";

export interface StorageRunOptions {
  readonly seed: number;
  readonly steps: number;
  /** No faults and no blows: what must work in any case. */
  readonly calm?: boolean;
  /** Two nodes and bounds that do not depend on the seed, for loops over every store call. */
  readonly small?: boolean;
  /** Kills for good whoever makes the n-th request of the run. */
  readonly crashAtCall?: number;
  /** What happens to requests of a process that dies: they land always, never, or by chance. */
  readonly landsAfterDeath?: number;
  readonly sabotage?: Sabotage;
}

export interface StorageRunResult {
  readonly world: World;
  readonly hash: string;
  readonly requests: number;
  /** Those of the storm alone. */
  readonly stormRequests: number;
  /** By `crashAtCall`. */
  readonly deaths: number;
  readonly acknowledged: number;
  readonly reads: number;
  readonly starts: number;
  readonly fenced: number;
  readonly recoveries: number;
  readonly moves: number;
  /** Null when every promise was kept. */
  readonly violation: string | null;
}

const PEACE_MS = 3_600_000;
/** More than T_RETAIN and some looks of a collector. */
const IDLE_MS = 1_500_000;
/** Owners of one stream that may be replaced while the questions are asked. */
const ASKS_MAX = 10;
/** T_TRIM, the age that an audit asks for, and some. */
const AGE_MS = 25 * HOUR_MS;
/** How late a request may land: within the time of a storm, and when its name is purged. */
const GHOSTS_MS = [100, 5_000, 60_000, 600_000, 7_200_000];
/** Intervals that they have: the first finds all, unless metadata went on meanwhile. */
const AUDITS = 3;
/** Every so many steps the checks that read the store. */
const CHECK_STEPS = 20;
/** Appends that a step starts at once. */
const ACTS_MAX = 4;

class Run {
  readonly world: World;
  readonly store: SimStore;
  readonly fleet: Fleet;
  readonly workload: Workload;
  stormRequests = 0;
  deaths = 0;
  readonly #options: StorageRunOptions;
  readonly #settings: Settings;
  readonly #random: Random;
  readonly #metadata: MetadataChecker;
  readonly #leaks: LeakChecker;
  #audit: { readonly intervalMs: number; readonly isAged: boolean } | null = null;
  readonly #streams = new Map<StreamId, StreamModel>();

  constructor(options: StorageRunOptions) {
    this.#options = options;
    const world = new World(options.seed);
    const random = world.random("scenario");
    const calm = options.calm === true;
    const store = new SimStore(world, calm ? NO_STORE_FAULTS : SimStore.swarm(random, GHOSTS_MS));
    const settings = options.small === true ? SMALL : settingsOf(world.random("settings"));
    const sabotage = options.sabotage ?? {};
    this.world = world;
    this.store = store;
    this.#settings = settings;
    this.#random = random;
    this.#metadata = new MetadataChecker(world, store, CLUSTER_ID);
    const state = () => this.#metadata.state;
    const reports = new ReportChecker(world, this.#metadata);
    const audit = () => this.#audit;
    const fleet = new Fleet({ world, store, settings, sabotage, reports, audit }, state);
    const { intervalMs, inStorm } = settings.audit;
    if (inStorm) this.#audit = { intervalMs, isAged: true };
    if (options.landsAfterDeath !== undefined) store.landsAfterDeath = options.landsAfterDeath;
    if (options.crashAtCall !== undefined) this.#crashAt(options.crashAtCall);
    this.fleet = fleet;
    this.#metadata.onRegistered = (process, at) => fleet.registered(process, at);
    this.#leaks = new LeakChecker(
      world,
      store,
      CLUSTER_ID,
      this.#metadata,
      (process) => fleet.isReplaced(process),
      settings.lookMs,
    );
    const evidence = new EvidenceChecker(world, store, CLUSTER_ID);
    fleet.onProcess = (process) => evidence.watch(process);
    watchNames(world, store, CLUSTER_ID);
    watchDeletes(world, store, CLUSTER_ID, this.#metadata);
    watchSeals(world, store, CLUSTER_ID, this.#metadata);
    if (settings.pollMs === null) fleet.lookAfterChanges();
    const isDurable = watchDurable(store, CLUSTER_ID);
    const { fleet: machines } = this;
    const context = { world, fleet: machines, sabotage, state, streams: this.#streams, isDurable };
    this.workload = new Workload(context);
  }

  async run(): Promise<void> {
    const { world, fleet } = this;
    const { nodes, ages } = this.#settings;
    world.note(`${nodes} nodes, ages ${ages}, store faults ${JSON.stringify(this.store.faults)}`);
    const cluster = { clusterId: CLUSTER_ID, formatVersion: 1, featureLevel: 1 };
    await this.store.bucket.put(CLUSTER_KEY, toAscii(`${JSON.stringify(cluster)}\n`));
    fleet.startAll();
    await this.#until(() => fleet.serving().length > 0, "a first node");
    for (let i = 0; i < this.#settings.streams; i++) {
      const node = fleet.pickServing();
      if (node !== null) void this.workload.create(node);
    }
    await this.#storm();
    this.stormRequests = this.store.requests;
    if (this.#options.crashAtCall !== undefined) await this.#survive();
    await this.#peace();
    await this.#questions("after the storm");
    await world.run(IDLE_MS + 3 * this.#settings.lookMs);
    await this.#metadata.check();
    await this.#leaks.checkCollected();
    await world.run(Math.max(0, this.store.lateUntilMs - world.nowMs));
    await this.#age();
    await world.drive(fleet.stopAll(), PEACE_MS, "a clean stop");
    fleet.startAll();
    await this.#peace();
    await this.#questions("after a clean restart");
    await world.run(AUDITS * this.#settings.audit.intervalMs);
    await this.#leaks.checkAudited();
    await world.drive(fleet.stopAll(), PEACE_MS, "the last stop");
    await this.#fsck();
  }

  async #until(isDone: () => boolean, what: string): Promise<void> {
    if (await this.world.runUntil(isDone, PEACE_MS)) return;
    this.world.violated(`I18: ${what} takes longer than ${PEACE_MS} ms`);
    throw this.world.violation!;
  }

  // --- storm ----------------------------------------------------------------------------------

  async #storm(): Promise<void> {
    const { world, workload } = this;
    const blows = new Blows(world, this.fleet, this.store, this.#settings);
    for (let step = 1; step <= this.#options.steps; step++) {
      const acts = 1 + randomInt(this.#random, ACTS_MAX);
      for (let i = 0; i < acts; i++) {
        workload.act();
        await world.run(between(this.#random, 0, 50));
      }
      if (this.#options.calm !== true && chance(this.#random, 0.3)) blows.strike();
      await world.run(this.#stepMs());
      if (step % CHECK_STEPS === 0) await this.#metadata.check();
    }
    if (world.violation !== null) throw world.violation;
  }

  /** From milliseconds to half an hour: what takes long is as likely to be met as what is quick. */
  #stepMs(): number {
    const longest = chance(this.#random, 0.02) ? 1_800_000 : 20_000;
    return longest ** this.#random.float();
  }

  // --- peace ----------------------------------------------------------------------------------

  /** No faults any more: one process per node id, the dead are recovered, every stream has an owner. */
  async #peace(): Promise<void> {
    const { world, fleet } = this;
    this.store.heal();
    this.store.judge = null;
    const stillMs = fleet.stillUntilMs - world.nowMs;
    if (stillMs > 0) await world.run(stillMs);
    fleet.startAll();
    const deadlineMs = world.nowMs + PEACE_MS;
    while (!await this.#isPeaceful()) {
      await world.run(1_000);
      if (world.nowMs < deadlineMs) continue;
      const { length } = fleet.alive();
      const missing = this.#missing().map(({ id }) => id).join(" ");
      world.violated(
        `I18: no peace: ${length} processes, ${fleet.serving().length} serve, ` +
          `${fleet.dead().length} WALs are not recovered, streams without an owner: ${missing}`,
      );
      throw world.violation!;
    }
  }

  async #isPeaceful(): Promise<boolean> {
    const { world, fleet } = this;
    await world.runUntil(() => fleet.isSettled, 30_000);
    if (!fleet.isSettled) fleet.startAll();
    for (const node of fleet.serving()) await this.#while(node, node.look(), "a look at the log");
    for (const dead of fleet.dead()) {
      const node = fleet.pickServing();
      if (node !== null) await this.#while(node, fleet.recoverBy(node, dead), "a recovery");
    }
    for (const model of this.#missing()) {
      const row = this.#metadata.state.streams.get(model.id);
      const node = this.#ownerOf(row) ?? fleet.pickServing();
      if (node !== null) await this.#while(node, this.workload.open(node, model), "an open");
    }
    return fleet.isSettled && fleet.isCurrent && fleet.dead().length === 0 &&
      this.#missing().length === 0 && this.workload.isIdle;
  }

  /** Until it ends, or the node's incarnation does: what a dead process was asked never answers. */
  async #while(node: StorageNode, work: Promise<unknown>, what: string): Promise<void> {
    const { serving } = node;
    let isOver = false;
    const over = () => void (isOver = true);
    work.then(over, over);
    await this.#until(() => isOver || node.serving !== serving, what);
  }

  #ownerOf(row: { open: boolean; owner: { nodeId: number; epoch: number } } | undefined) {
    if (row?.open !== true) return undefined;
    return this.fleet.serving().find(({ serving }) =>
      serving!.incarnation.requester.epoch === row.owner.epoch
    );
  }

  #holders(id: StreamId): StorageNode[] {
    return this.fleet.serving().filter(({ serving }) => serving!.held.has(id));
  }

  #missing(): StreamModel[] {
    return [...this.#streams.values()].filter(({ id, deleted }) =>
      !deleted && this.#holders(id).length === 0
    );
  }

  /** A day and an hour: in full where nobody looks often, else on the store's clock alone. Then audits are due. */
  async #age(): Promise<void> {
    const { world, store } = this;
    this.#audit = { intervalMs: this.#settings.audit.intervalMs, isAged: false };
    if (this.#settings.ages) return await world.run(AGE_MS);
    store.skewMs += AGE_MS;
    world.note("the store's clock is a day on");
  }

  /** One may be dead: the others recover it, take its streams and answer for all of them. */
  async #survive(): Promise<void> {
    const { fleet, workload } = this;
    await this.#until(() => fleet.serving().length > 0, "a survivor");
    const isOver = () => fleet.dead().length === 0 && this.#missing().length === 0;
    for (let attempt = 1; !isOver(); attempt++) {
      if (attempt > ASKS_MAX) this.world.violated("I18: nobody takes the place of the dead");
      for (const dead of fleet.dead()) {
        const node = fleet.pickServing();
        if (node !== null) await this.#while(node, fleet.recoverBy(node, dead), "a recovery");
      }
      for (const model of this.#missing()) {
        const node = fleet.pickServing();
        if (node !== null) await this.#while(node, workload.open(node, model), "an open");
      }
      await this.world.run(1_000);
    }
    if (this.#streams.size === 0) {
      const node = fleet.pickServing()!;
      await this.#while(node, workload.create(node), "a stream");
    }
    await this.#questions("by the survivors");
  }

  #crashAt(number: number): void {
    const { store, world } = this;
    store.judge = (at, _op, _key, process) => {
      if (at !== number) return;
      const node = this.fleet.alive().find((one) => one.process === process);
      if (node === undefined) return;
      world.after(0, () => this.fleet.kill(node, false));
      this.deaths++;
    };
  }

  // --- questions ------------------------------------------------------------------------------

  async #questions(when: string): Promise<void> {
    const { world, workload, fleet } = this;
    for (const model of this.#streams.values()) {
      for (let attempt = 1; !await this.#ask(model, when); attempt++) {
        if (attempt > ASKS_MAX) world.violated(`I18: stream ${model.id} is not served ${when}`);
        await this.#peace();
      }
      const other = pick(this.#random, fleet.serving());
      await this.#while(other, workload.readForeign(other), `reading others' ${when}`);
    }
    await this.#metadata.check();
    await this.#leaks.check();
    if (world.violation !== null) throw world.violation;
  }

  /** False when its owner was replaced meanwhile. */
  async #ask(model: StreamModel, when: string): Promise<boolean> {
    if (model.deleted) return true;
    const [node] = this.#holders(model.id);
    const serving = node?.serving ?? null;
    const stream = serving?.held.get(model.id);
    if (node === undefined || serving === null || stream === undefined) return false;
    await this.#while(node, this.#appendOne(node, stream), `an append to ${model.id} ${when}`);
    if (node.serving !== serving) return false;
    const read = this.workload.readWhole(node, stream);
    await this.#while(node, read, `reading ${model.id} ${when}`);
    return node.serving === serving && await read;
  }

  /** A full cache refuses it until its uploads are through. */
  async #appendOne(node: StorageNode, stream: Stream): Promise<void> {
    const { serving } = node;
    while (node.serving === serving && !await this.workload.append(node, stream)) {
      await this.world.sleep(1_000);
    }
  }

  /** Neither damage nor, after an audit, orphans; garbage waits for its time. */
  async #fsck(): Promise<void> {
    const { findings, summary } = await check(this.store.bucket);
    const bad = findings.filter(({ severity, kind }) => severity === "damage" || kind === "orphan")
      .map(({ kind, key, detail }) => `${kind} ${key}: ${detail}`);
    if (bad.length > 0) this.world.violated(`fsck: ${bad.join(", ")}`);
    const { verdict, keys, dataObjects, walObjects, streams } = summary;
    this.world.note(`fsck: ${JSON.stringify({ verdict, keys, dataObjects, walObjects, streams })}`);
  }
}

export async function simulateStorage(options: StorageRunOptions): Promise<StorageRunResult> {
  const run = new Run(options);
  const { world, fleet, store, workload } = run;
  try {
    await run.run();
  } catch (error) {
    world.violated(error instanceof Error ? `${error.stack}` : String(error));
  }
  for (const { process } of fleet.alive()) process.kill("end of the run");
  return {
    world,
    hash: world.hash,
    requests: store.requests,
    stormRequests: run.stormRequests,
    deaths: run.deaths,
    acknowledged: workload.acknowledged,
    reads: workload.reads + workload.foreignReads,
    starts: fleet.starts,
    fenced: fleet.fenced,
    recoveries: fleet.recoveries,
    moves: workload.moves,
    violation: world.violation?.message ?? null,
  };
}
