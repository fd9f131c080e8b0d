/**
 * The machine room: production nodes of one node id on one bucket. A supervisor starts a node again when it
 * ends; a second process of the same id may run beside the first for as long as the protocol lets it.
 */
import type { Connection } from "../../src/env/listener.ts";
import type { CoordinatorBounds } from "../../src/broker/group/coordinator.ts";
import { FaultError, messageOf } from "../../src/lib/errors.ts";
import { type Random, randomInt } from "../../src/env/random.ts";
import { type RunningNode, type ServeHttp, startNode } from "../../src/node/node.ts";
import type { ObjectStore } from "../../src/object/object_store.ts";
import { SimProcess } from "./process.ts";
import { type ClientEnd, type ClientEvents, connect, type NetFaults } from "./sim_net.ts";
import type { SimStore } from "./sim_store.ts";
import { chance, type World } from "./world.ts";

export interface ClusterOptions {
  readonly world: World;
  readonly store: SimStore;
  readonly net: NetFaults;
  readonly properties?: Readonly<Record<string, string>>;
  readonly storeHasPrices?: boolean;
  readonly groupBounds?: CoordinatorBounds;
  /** Breaks a node on purpose: the checkers must notice. */
  readonly wrapStore?: (store: ObjectStore, process: SimProcess) => ObjectStore;
}

interface Instance {
  readonly index: number;
  readonly process: SimProcess;
  accept: ((connection: Connection) => void) | null;
  answerHttp: Parameters<ServeHttp>[0] | null;
  node: RunningNode | null;
}

export interface HttpServer {
  readonly process: SimProcess;
  readonly answer: Parameters<ServeHttp>[0];
  readonly net: NetFaults;
}

export const CLUSTER_ID = "sim";
const HTTP_URL = "http://192.0.2.1:8080";
const RESTART_MS = 500;
const OLD_NEWS_MS = 180_000;
const STOP_MS_MAX = 30_000;

/** Faults at start that only a loss or a bug explains when the store is sound. */
const STORE_UNUSABLE = "The object store cannot be used: ";
const FATAL_AT_START = new Set(["data-loss", "corrupt", "config", "object-missing"]);

export class Cluster {
  readonly #options: ClusterOptions;
  readonly #instances: Instance[] = [];
  readonly #random: Random;
  readonly #epochs = new Map<SimProcess, number>();
  #newestEpoch = 0;
  #wanted = false;
  #fenced = 0;
  /** Wall clocks of nodes were set: from then on nothing that a node measures by them is certain. */
  hasWrongClocks = false;
  /** Of processes that start from now on. */
  nodeId = 1;

  constructor(options: ClusterOptions) {
    this.#options = options;
    this.#random = options.world.random("cluster");
  }

  get clusterId(): string {
    return CLUSTER_ID;
  }
  /** Processes that ended because another took over. */
  get fenced(): number {
    return this.#fenced;
  }
  /** Told of each process before it runs. */
  onProcess: ((process: SimProcess) => void) | null = null;

  get starts(): number {
    return this.#instances.length;
  }
  get isReady(): boolean {
    return this.#alive().some(({ node }) => node !== null);
  }
  /** True time at which the last of those that stand still goes on. */
  get stillUntilMs(): number {
    return Math.max(0, ...this.#alive().map(({ process }) => process.pausedUntilMs));
  }
  /** Exactly one process, and it serves. */
  get isSettled(): boolean {
    const alive = this.#alive();
    return alive.length === 1 && alive[0]!.node !== null;
  }

  processes(): readonly SimProcess[] {
    return this.#alive().map(({ process }) => process);
  }

  registered(process: SimProcess, at: number): void {
    this.#epochs.set(process, at);
    this.#newestEpoch = at;
  }

  /** The node epoch of a process, 0 before it has one: who registers later knows more. */
  epochOf(process: SimProcess): number {
    return this.#epochs.get(process) ?? 0;
  }

  /** True for a process that another one has replaced, whether or not it knows. */
  isReplaced(epoch: number): boolean {
    return epoch < this.#newestEpoch;
  }

  #alive(): Instance[] {
    return this.#instances.filter(({ process }) => process.alive);
  }

  /** Another process, whether or not one runs already. */
  start(): void {
    this.#wanted = true;
    const { world, store, wrapStore } = this.#options;
    const index = this.#instances.length;
    const process = new SimProcess(world, `n${index}`);
    const instance: Instance = { index, process, accept: null, answerHttp: null, node: null };
    this.#instances.push(instance);
    world.note(`${process.name} starts`);
    this.onProcess?.(process);
    const line = store.connect(process);
    const started = startNode({
      env: process.env,
      store: wrapStore?.(line, process) ?? line,
      storeKind: "s3",
      storeHasPrices: this.#options.storeHasPrices ?? false,
      groupBounds: this.#options.groupBounds ?? {},
      listener: {
        listen: ({ host, port }, accept) => {
          instance.accept = accept;
          return Promise.resolve({ host, port, close: () => Promise.resolve() });
        },
      },
      serveHttp: (handler) => {
        instance.answerHttp = handler;
        return Promise.resolve({ url: HTTP_URL, close: () => Promise.resolve() });
      },
      settings: {
        nodeId: this.nodeId,
        clusterId: CLUSTER_ID,
        kafkaListen: { host: "192.0.2.1", port: 9092 },
        advertise: null,
        httpListen: { host: "192.0.2.1", port: 8080 },
        kafka: this.#options.properties ?? {},
      },
    });
    started.then(
      (node) => this.#onReady(instance, node),
      (error) => this.#onFailed(instance, error),
    );
  }

  #onReady(instance: Instance, node: RunningNode): void {
    if (!instance.process.alive) return;
    this.#options.world.note(`${instance.process.name} is ready`);
    instance.node = node;
    node.failed.then((fault) => this.#onFailed(instance, fault), () => {});
  }

  #onFailed(instance: Instance, error: unknown): void {
    const { world } = this.#options;
    const { process } = instance;
    if (!process.alive) return;
    const { store } = this.#options;
    // One that stood still hears of old faults after the healing.
    const hearsOld = world.nowMs < process.pausedUntilMs + OLD_NEWS_MS;
    const isStoreDown = instance.node === null && messageOf(error).startsWith(STORE_UNUSABLE) &&
      (store.isFaulty || hearsOld);
    if (isStoreDown) {
      // The probe cannot tell an outage from a wrong address: the process exits, its supervisor tries again.
    } else if (!(error instanceof FaultError)) {
      world.violated(`${process.name} ends by a bug: ${messageOf(error)}`);
    } else if (FATAL_AT_START.has(error.code)) {
      world.violated(`${process.name} ends: ${error.code}: ${error.message}`);
    } else if (error.code === "fenced") {
      this.#fenced++;
      if (!this.isReplaced(this.epochOf(process))) {
        world.violated(`${process.name} is fenced by nobody: ${error.message}`);
      }
    }
    process.kill(messageOf(error));
    this.#restart();
  }

  #restart(): void {
    this.#options.world.after(RESTART_MS, () => {
      if (this.#wanted && this.#alive().length === 0) this.start();
    });
  }

  /** kill -9 of all processes, and a restart by the supervisor. */
  crash(): void {
    for (const { process } of this.#alive()) process.kill("crash");
    if (this.#wanted) this.#restart();
  }

  /** SIGTERM to all; without a restart. */
  async stop(): Promise<void> {
    this.#wanted = false;
    await Promise.all(this.#alive().map((instance) => this.#stop(instance)));
  }

  async #stop({ process, node }: Instance): Promise<void> {
    const { world } = this.#options;
    world.note(`${process.name} is asked to stop`);
    if (node === null) return process.kill("stopped before it was ready");
    await new Promise<void>((resolve) => {
      const cancel = world.after(STOP_MS_MAX, () => {
        process.kill("stop cut off");
        resolve();
      });
      process.onDeath(resolve);
      const done = (why: string) => {
        cancel();
        process.kill(why);
        resolve();
      };
      node.close().then(() => done("stopped"), (error) => done(`stopped: ${messageOf(error)}`));
    });
  }

  /** A rolling restart as a supervisor does it. */
  async restart(): Promise<void> {
    await this.stop();
    this.start();
  }

  /** Most clients find the newest process, some one that should be gone. */
  #find(isOpen: (instance: Instance) => boolean): Instance | undefined {
    const open = this.#alive().filter(isOpen);
    if (open.length === 0 || !chance(this.#random, 0.2)) return open.at(-1);
    return open[randomInt(this.#random, open.length)];
  }

  /** Null when nobody listens. */
  connect(events: ClientEvents): ClientEnd | null {
    const { world, net } = this.#options;
    const instance = this.#find(({ accept }) => accept !== null);
    if (instance === undefined) return null;
    const pair = connect(world, instance.process, this.#random, net, events);
    world.after(
      net.latencyMs,
      () => instance.process.deliver(() => instance.accept?.(pair.server)),
    );
    return pair.client;
  }

  /** Whom an HTTP client reaches; null when nobody listens. */
  http(): HttpServer | null {
    const instance = this.#find(({ answerHttp }) => answerHttp !== null);
    if (instance === undefined) return null;
    return { process: instance.process, answer: instance.answerHttp!, net: this.#options.net };
  }
}
