/**
 * A node: built bottom-up, closed in reverse. Everything that can be refused (configuration, store,
 * addresses) is looked at before the node registers, because registering fences its predecessor.
 */
import { settlesWithin } from "../env/clock.ts";
import type { MetricsFormat } from "../env/metrics.ts";
import type { Connection, Listener, Listening } from "../env/listener.ts";
import type { OutboundHttp } from "../env/outbound_http.ts";
import { nodeId as brandNodeId } from "../lib/brand.ts";
import { FaultError, messageOf } from "../lib/errors.ts";
import { CLOSE_GRACE_MS, CLOSE_MS_MAX, CONNECTIONS_WAITING_MAX } from "../lib/limits.ts";
import { VERSION } from "../lib/version.ts";
import type { HostPort } from "../config/options.ts";
import { PRICES } from "../config/prices.ts";
import type { BrokerConfig } from "../broker/broker_config.ts";
import { listOf } from "../broker/property.ts";
import type { CoordinatorBounds } from "../broker/group/coordinator.ts";
import { createPermits } from "../broker/routes.ts";
import { liveConfig } from "../broker/live_config.ts";
import { createServer, type KafkaServer } from "../broker/server.ts";
import { createHealthApp, createHttpApp, type HttpAppOptions } from "../http/app.ts";
import { LiveStreams } from "../http/live/live_streams.ts";
import { Instances } from "../http/mounts/instances/instances.ts";
import { createBodyRooms } from "../http/read_body.ts";
import type { NodeStatus } from "../http/port.ts";
import { OpenSockets } from "../http/sockets/open_sockets.ts";
import { Webhooks } from "../http/webhook/settings.ts";
import type { HttpHost } from "../http/sockets/socket_port.ts";
import { type Base, type BaseOptions, openBase, storeWait } from "./base.ts";
import { raiseLevel } from "./feature_level.ts";
import { Health } from "./health.ts";
import { HttpAdmin } from "./http_admin.ts";
import { HttpFront } from "./http_front.ts";
import { compactionOf } from "./compaction_settings.ts";
import { HttpGateway } from "./http_gateway.ts";
import { createPush } from "./http_push.ts";
import { HttpTexts } from "./http_texts.ts";
import { HttpGroups } from "./http_groups.ts";
import { HttpInstances } from "./http_instances.ts";
import { atRoot, mountPortsOf } from "./http_mounts.ts";
import { HttpMembers } from "./http_members.ts";
import type { KafkaSide } from "./kafka_side.ts";
import { type HttpSide, NodeLife } from "./life.ts";
import { Opened } from "./opened.ts";
import { engineOptionsOf, walPolicyOf } from "./storage_settings.ts";
import { showPermits } from "./show_permits.ts";
import { advertisedAddress, brokerConfigOf } from "./settings.ts";
import { type StreamPair, webConnection } from "./web_connection.ts";

export interface HttpListening {
  readonly url: string;
  close(): Promise<void>;
}

/** The host's HTTP server. */
export type ServeHttp = (
  handler: (request: Request, host?: HttpHost) => Response | Promise<Response>,
  at: HostPort,
) => Promise<HttpListening>;

export interface NodeOptions extends BaseOptions {
  /** A store whose requests cost money is written to at a bounded rate. */
  readonly storeHasPrices: boolean;
  readonly listener: Listener;
  readonly serveHttp: ServeHttp;
  /** Absent: nothing is pushed to handlers. The node closes it. */
  readonly outbound?: OutboundHttp;
  /** The simulator's: what takes a megabyte otherwise happens in a run. */
  readonly groupBounds?: CoordinatorBounds;
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
  /**
   * Ends within CLOSE_MS_MAX and CLOSE_GRACE_MS. Rejects with FaultError `timeout` when the store did not take
   * everything until then: what was acknowledged lies in the WAL, and the next start recovers it.
   */
  close(): Promise<void>;
}

interface Ports {
  readonly kafka: Listening | null;
  readonly http: HttpListening | null;
}

function whenReady(ready: Promise<KafkaServer>): (connection: Connection) => void {
  let waiting = 0;
  return (connection) => {
    if (waiting >= CONNECTIONS_WAITING_MAX) return connection.close();
    waiting += 1;
    ready.finally(() => void (waiting -= 1))
      .then((server) => server.serve(connection))
      .catch(() => connection.close());
  };
}

/** Connections and requests that come before the node is ready wait for it, within bounds. */
async function openPorts(
  options: NodeOptions,
  config: BrokerConfig,
  ready: Promise<KafkaServer>,
  front: HttpFront,
  opened: Opened,
): Promise<Ports> {
  const { listener, serveHttp, settings } = options;
  const kafka = settings.kafkaListen === null
    ? null
    : await listener.listen(settings.kafkaListen, whenReady(ready));
  if (kafka !== null) opened.add(() => kafka.close());
  const http = settings.httpListen === null
    ? null
    : await serveHttp((request, host) => front.fetch(request, host), settings.httpListen);
  if (http !== null) opened.add(() => http.close());
  if (settings.httpListen !== null) {
    for (const { port, mount } of mountPortsOf(config)) {
      const at = { host: settings.httpListen.host, port };
      const handler = atRoot(mount, (request, host) => front.fetch(request, host));
      const mounted = await serveHttp(handler, at);
      opened.add(() => mounted.close());
    }
  }
  return { kafka, http };
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

function statusOf(options: NodeOptions, base: Base, notReady: () => string | null): NodeStatus {
  const { env, clusterId } = base;
  const { nodeId } = options.settings;
  const renderMetrics = (format: MetricsFormat) => env.metrics.render(format);
  return { notReady, renderMetrics, version: VERSION, clusterId, nodeId };
}

function httpFront(options: NodeOptions, base: Base): HttpFront {
  const { env } = base;
  const status = statusOf(options, base, () => front.notReady);
  const app = createHealthApp({ env, status });
  const front = new HttpFront({
    clock: env.clock,
    metrics: env.metrics,
    health: async (request) => app.fetch(request),
  });
  return front;
}

function httpSide(
  options: NodeOptions,
  base: Base,
  { services }: KafkaSide,
  shared: Pick<HttpAppOptions, "rooms" | "sockets" | "serveKafka">,
  health: Health,
): HttpSide {
  const gateway = new HttpGateway(services);
  const streams = new LiveStreams(base.env);
  const members = new HttpMembers(services);
  const groups = new HttpGroups(services);
  const store = new HttpInstances(services);
  const instances = new Instances({ env: base.env, store, groups: members });
  const push = createPush({
    services,
    gateway,
    groups: members,
    outbound: options.outbound ?? null,
  });
  const app = createHttpApp({
    env: base.env,
    push,
    webhooks: new Webhooks(new HttpTexts(services)),
    mounts: { groups: members, instances },
    gateway,
    groups,
    admin: new HttpAdmin(services, options.settings.prices ?? PRICES),
    producePermits: services.permits.produce,
    ...shared,
    streams,
    corsOrigins: listOf(services.config.text("skerry.http.cors.origins")),
    status: statusOf(options, base, () => health.problem),
  });
  return {
    fetch: async (request, host) => await app.fetch(request, { host }),
    close() {
      push.close();
      instances.close();
      groups.close();
      streams.close();
      gateway.close();
    },
  };
}

/** What stands on the base: the broker's incarnations, and the Kafka server in front of them. */
interface Upper {
  readonly life: NodeLife;
  readonly server: KafkaServer;
}

async function startBroker(
  options: NodeOptions,
  base: Base,
  config: BrokerConfig,
  bound: HostPort,
  opened: Opened,
  on: { readonly health: Health; readonly fail: (fault: FaultError) => void },
): Promise<Upper> {
  const { env } = base;
  const { settings } = options;
  const listener = advertisedAddress(settings, bound);
  const permits = createPermits();
  showPermits(env, permits);
  let kafkaServer: KafkaServer | null = null;
  const shared = {
    rooms: createBodyRooms(env.clock, env.codecs),
    sockets: new OpenSockets(env),
    serveKafka: (connection: Connection) => void kafkaServer?.serve(connection),
  };
  const life = await NodeLife.start({
    ...base,
    ...listener,
    nodeId: brandNodeId(settings.nodeId),
    incarnation: base.incarnationId,
    config,
    permits,
    walPolicy: walPolicyOf(config, options.storeHasPrices),
    engineOptions: engineOptionsOf(config, options.storeHasPrices),
    storeKind: options.storeKind,
    storeWait: storeWait(options),
    ...(options.groupBounds === undefined ? {} : { groupBounds: options.groupBounds }),
    ...compactionOf(config, options.storeHasPrices),
    httpOf: (kafkaSide) => httpSide(options, base, kafkaSide, shared, on.health),
    onHealth: (part, problem) => on.health.set(part, problem),
    fail: on.fail,
  });
  on.health.watch(() => life.problem());
  opened.add(() => life.close());
  await raiseLevel(base.level, base.metadata, life.requester);
  const server = createServer({
    services: { env, config, permits },
    broker: life.broker,
    listener,
  });
  kafkaServer = server;
  opened.add(() => {
    life.quiesce();
    return server.close();
  });
  return { life, server };
}

/** In order while the store takes what is left; past the time as a crash would, at which nothing is lost. */
async function closeNode(
  { env }: NodeOptions,
  { metadata }: Base,
  life: NodeLife,
  opened: Opened,
): Promise<void> {
  const closing = opened.close();
  if (await settlesWithin(env.clock, closing, CLOSE_MS_MAX)) return await closing;
  const waiting = life.problem() ?? "the store does not answer";
  const left = life.abandon(
    new FaultError("closed", "The node was closed without waiting for the store", {
      retriable: false,
    }),
  );
  const rest = Promise.allSettled([metadata.close(), closing]);
  await settlesWithin(env.clock, rest, CLOSE_GRACE_MS);
  await settlesWithin(env.clock, opened.closeAtOnce(), CLOSE_GRACE_MS);
  throw new FaultError(
    "timeout",
    `Closed without uploading ${left.durableBytes} acknowledged bytes in ${left.slots} WAL slots, which the ` +
      `next start recovers; ${left.unacknowledgedBytes} bytes were not acknowledged: ${waiting}`,
    { retriable: false },
  );
}

/** Throws FaultError: `config` and `store-denied` before anything was changed, `fenced`, `data-loss`. */
export async function startNode(options: NodeOptions): Promise<RunningNode> {
  const opened = new Opened();
  const health = new Health();
  const { promise: failed, resolve: fail } = deferred<FaultError>();
  const { promise: ready, resolve: setReady, reject: setNeverReady } = deferred<KafkaServer>();
  opened.add(() => options.store.close());
  opened.add(() => options.outbound?.close());
  let front: HttpFront | null = null;
  try {
    const config = brokerConfigOf(options.settings.kafka);
    const base = await openBase(options, config, opened, health, fail);
    front = httpFront(options, base);
    const ports = await openPorts(options, config, ready, front, opened);
    const bound = ports.kafka ?? { host: "127.0.0.1", port: 0 };
    void failed.then(({ message }) => health.set("node", message));
    const live = liveConfig(config, base.metadata, brandNodeId(options.settings.nodeId));
    const { life, server } = await startBroker(options, base, live, bound, opened, {
      health,
      fail,
    });
    const fetch = (request: Request, host?: HttpHost) => life.fetch(request, host);
    setReady(server);
    front.serve(fetch);
    let closing: Promise<void> | null = null;
    return {
      clusterId: base.clusterId,
      kafka: ports.kafka === null ? null : { host: ports.kafka.host, port: ports.kafka.port },
      http: ports.http === null ? null : { url: ports.http.url },
      fetch,
      serve: (pair) => server.serve(webConnection(pair)),
      failed,
      close: () => closing ??= closeNode(options, base, life, opened),
    };
  } catch (error) {
    setNeverReady(error);
    front?.fail();
    await opened.close().catch((closing: unknown) => {
      options.env.log.log("warn", "close-failed", { error: messageOf(closing) });
    });
    throw error;
  }
}
