/**
 * A node: built bottom-up, closed in reverse. Everything that can be refused (configuration, store,
 * addresses) is looked at before the node registers, because registering fences its predecessor.
 */
import type { Env } from "../env/env.ts";
import { randomUuid } from "../env/random.ts";
import type { Listener, Listening } from "../env/listener.ts";
import { nodeId as brandNodeId } from "../lib/brand.ts";
import { FaultError, messageOf } from "../lib/errors.ts";
import { METERED_PUTS_PER_HOUR } from "../lib/limits.ts";
import { uuidOf } from "../lib/uuid.ts";
import { VERSION } from "../lib/version.ts";
import type { HostPort } from "../config/options.ts";
import type { BrokerConfig } from "../broker/broker_config.ts";
import { listOf } from "../broker/property.ts";
import { openCluster } from "../controller/cluster.ts";
import { createCollector } from "../controller/collector.ts";
import { openMetadata } from "../controller/controller.ts";
import type { MetadataStore } from "../controller/metadata_store.ts";
import { createHttpApp } from "../http/app.ts";
import type { ObjectStore } from "../object/object_store.ts";
import { probeStore } from "../object/probe.ts";
import type { WalPolicy } from "../storage/wal/batching.ts";
import { HttpGateway } from "./http_gateway.ts";
import { startIncarnation } from "./incarnation.ts";
import { createKafkaSide, type KafkaSide } from "./kafka_side.ts";
import { nodeStore } from "./node_store.ts";
import { advertisedAddress, brokerConfigOf, type NodeSettings } from "./settings.ts";
import { type StreamPair, webConnection } from "./web_connection.ts";

export interface HttpListening {
  readonly url: string;
  close(): Promise<void>;
}

/** The host's HTTP server. */
export type ServeHttp = (
  handler: (request: Request) => Response | Promise<Response>,
  at: HostPort,
) => Promise<HttpListening>;

export interface NodeOptions {
  readonly env: Env;
  /** The raw store; the node wraps it and closes it. */
  readonly store: ObjectStore;
  readonly storeKind: "memory" | "dir" | "s3";
  /** A store whose requests cost money is written to at a bounded rate. */
  readonly storeHasPrices: boolean;
  readonly listener: Listener;
  readonly serveHttp: ServeHttp;
  readonly settings: NodeSettings;
}

export interface RunningNode {
  readonly clusterId: string;
  readonly kafka: HostPort | null;
  readonly http: { readonly url: string } | null;
  /** Answers an HTTP request without a socket. */
  fetch(request: Request): Promise<Response>;
  /** Serves one Kafka connection over a stream pair; resolves when it has ended. */
  serve(pair: StreamPair): Promise<void>;
  /** Resolves once when the node can never work again; it should then be closed or exit. */
  readonly failed: Promise<FaultError>;
  close(): Promise<void>;
}

/** What is open so far, in order of opening. */
class Opened {
  readonly #closers: (() => Promise<void> | void)[] = [];
  #closing: Promise<void> | null = null;

  add(close: () => Promise<void> | void): void {
    this.#closers.push(close);
  }

  /** In reverse order, once; the first error is thrown after all had their turn. */
  close(): Promise<void> {
    return this.#closing ??= this.#closeAll();
  }

  async #closeAll(): Promise<void> {
    const errors: unknown[] = [];
    for (let close = this.#closers.pop(); close !== undefined; close = this.#closers.pop()) {
      try {
        await close();
      } catch (error) {
        errors.push(error);
      }
    }
    if (errors.length > 0) throw errors[0];
  }
}

interface Ports {
  readonly kafka: Listening | null;
  readonly http: HttpListening | null;
}

/** Connections and requests that come before the node is ready wait for it. */
async function openPorts(
  options: NodeOptions,
  ready: Promise<Serving>,
  opened: Opened,
): Promise<Ports> {
  const { listener, serveHttp, settings } = options;
  const kafka = settings.kafkaListen === null
    ? null
    : await listener.listen(settings.kafkaListen, (connection) => {
      ready.then(({ kafkaSide }) => kafkaSide.server.serve(connection)).catch(() =>
        connection.close()
      );
    });
  if (kafka !== null) opened.add(() => kafka.close());
  const http = settings.httpListen === null
    ? null
    : await serveHttp(async (request) => (await ready).fetch(request), settings.httpListen);
  if (http !== null) opened.add(() => http.close());
  return { kafka, http };
}

interface Serving {
  readonly kafkaSide: KafkaSide;
  fetch(request: Request): Promise<Response>;
}

function walPolicy(options: NodeOptions): WalPolicy {
  return options.storeHasPrices
    ? { kind: "metered", putsPerHour: METERED_PUTS_PER_HOUR }
    : { kind: "unmetered" };
}

interface Deferred<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
}

function deferred<T>(): Deferred<T> {
  let resolve!: Deferred<T>["resolve"];
  let reject!: Deferred<T>["reject"];
  const promise = new Promise<T>((done, failed) => {
    resolve = done;
    reject = failed;
  });
  // Whether anybody waits for it is not known.
  promise.catch(() => {});
  return { promise, resolve, reject };
}

/** Each part speaks for itself: one that is well again must not hide the trouble of another. */
class Health {
  readonly #problems = new Map<string, string>();
  /** Asked at each look. */
  #waiting: () => string | null = () => null;

  set(part: "upload" | "metadata" | "node", problem: string | null): void {
    if (problem === null) this.#problems.delete(part);
    else this.#problems.set(part, problem);
  }

  watch(waiting: () => string | null): void {
    this.#waiting = waiting;
  }

  get problem(): string | null {
    const waiting = this.#waiting();
    const all = [...this.#problems.values(), ...(waiting === null ? [] : [waiting])];
    return all.length === 0 ? null : all.join("; ");
  }
}

interface Base {
  readonly env: Env;
  readonly store: ObjectStore;
  readonly clusterId: string;
  readonly metadata: MetadataStore;
  readonly incarnationId: string;
}

async function openBase(options: NodeOptions, opened: Opened, health: Health): Promise<Base> {
  const { env, settings } = options;
  const { clock, random, log } = env;
  const store = nodeStore(options.store, env);
  if (options.storeKind !== "memory") await probeStore(store, { clock, random, log });
  const wanted = settings.clusterId === null ? {} : { clusterId: settings.clusterId };
  const { clusterId } = await openCluster(store, { ...wanted, clock, random, log });
  const incarnationId = uuidOf(randomUuid(random));
  const metadata = await openMetadata({
    store,
    env,
    clusterId,
    nodeId: brandNodeId(settings.nodeId),
    incarnation: incarnationId,
    onPoll: (problem) => health.set("metadata", problem),
  });
  opened.add(() => metadata.close());
  return { env, store, clusterId, metadata, incarnationId };
}

function httpFetch(
  options: NodeOptions,
  base: Base,
  kafkaSide: KafkaSide,
  health: Health,
): (request: Request) => Promise<Response> {
  const { env, clusterId } = base;
  const { services } = kafkaSide;
  const app = createHttpApp({
    env,
    gateway: new HttpGateway(services),
    corsOrigins: listOf(services.config.text("skerry.http.cors.origins")),
    status: {
      notReady: () => health.problem,
      renderMetrics: () => env.metrics.render(),
      version: VERSION,
      clusterId,
      nodeId: options.settings.nodeId,
    },
  });
  return async (request) => await app.fetch(request);
}

async function startBroker(
  options: NodeOptions,
  base: Base,
  config: BrokerConfig,
  bound: HostPort,
  opened: Opened,
  on: { readonly health: Health; readonly fail: (fault: FaultError) => void },
): Promise<KafkaSide> {
  const { env, store, clusterId, metadata } = base;
  const { settings } = options;
  const nodeId = brandNodeId(settings.nodeId);
  const { host, port } = advertisedAddress(settings, bound);
  const incarnation = await startIncarnation({
    env,
    store,
    metadata,
    clusterId,
    nodeId,
    incarnation: base.incarnationId,
    host,
    port,
    walPolicy: walPolicy(options),
    storeKind: options.storeKind,
    onHealth: (problem) => on.health.set("upload", problem),
    onFatal: on.fail,
  });
  on.health.watch(() => incarnation.problem());
  opened.add(() => incarnation.close());
  const collector = createCollector({
    store,
    env,
    clusterId,
    metadata,
    requester: () => incarnation.requester,
  });
  opened.add(() => collector.close());
  const kafkaSide = createKafkaSide({
    env,
    nodeId,
    clusterId,
    config,
    metadata,
    incarnation,
    listener: { host, port },
  });
  opened.add(() => kafkaSide.close());
  return kafkaSide;
}

/** Throws FaultError: `config` and `store-denied` before anything was changed, `fenced`, `data-loss`. */
export async function startNode(options: NodeOptions): Promise<RunningNode> {
  const opened = new Opened();
  const health = new Health();
  const { promise: failed, resolve: fail } = deferred<FaultError>();
  const { promise: ready, resolve: setReady, reject: setNeverReady } = deferred<Serving>();
  opened.add(() => options.store.close());
  try {
    const config = brokerConfigOf(options.settings.kafka);
    const base = await openBase(options, opened, health);
    const ports = await openPorts(options, ready, opened);
    const bound = ports.kafka ?? { host: "127.0.0.1", port: 0 };
    void failed.then(({ message }) => health.set("node", message));
    const kafkaSide = await startBroker(options, base, config, bound, opened, { health, fail });
    const fetch = httpFetch(options, base, kafkaSide, health);
    setReady({ kafkaSide, fetch });
    return {
      clusterId: base.clusterId,
      kafka: ports.kafka === null ? null : { host: ports.kafka.host, port: ports.kafka.port },
      http: ports.http === null ? null : { url: ports.http.url },
      fetch,
      serve: (pair) => kafkaSide.server.serve(webConnection(pair)),
      failed,
      close: () => opened.close(),
    };
  } catch (error) {
    setNeverReady(error);
    await opened.close().catch((closing: unknown) => {
      options.env.log.log("warn", "close-failed", { error: messageOf(closing) });
    });
    throw error;
  }
}
