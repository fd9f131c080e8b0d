/**
 * Skerry as a library: a broker inside this process, for tests and for embedding. Runs on Bun, Deno and
 * Node (bundled).
 *
 * ```ts
 * import { createBroker } from "skerry";
 *
 * const broker = await createBroker({ store: "memory:" });
 * // Kafka clients connect to broker.kafka, HTTP clients to broker.http.url.
 * await broker.close();
 * ```
 *
 * @module
 */
import { createSystemEnv } from "./src/adapters/system_env.ts";
import { nodeListener } from "./src/adapters/node_net.ts";
import { openStore } from "./src/adapters/open_store.ts";
import { createOutboundHttp } from "./src/adapters/outbound_http.ts";
import { serveHttp } from "./src/adapters/http_serve.ts";
import { resolveConfig } from "./src/config/config.ts";
import { storeName } from "./src/config/options.ts";
import { hasPrices } from "./src/config/prices.ts";
import type { Env } from "./src/env/env.ts";
import { silentLogger } from "./src/env/logger.ts";
import { assert } from "./src/lib/assert.ts";
import { FaultError } from "./src/lib/errors.ts";
import { startNode } from "./src/node/node.ts";

export { type FaultCode, FaultError } from "./src/lib/errors.ts";
export { VERSION } from "./src/lib/version.ts";

/** Options of `createBroker`. Text options are the flags of `skerry serve` under the same names. */
export interface BrokerOptions {
  /** `memory:` (default), `dir:PATH` or `s3://BUCKET/PREFIX`. */
  readonly store?: string;
  /** `HOST:PORT`; default `127.0.0.1:0`, which picks a free port. */
  readonly kafkaListen?: string;
  /** `HOST:PORT` or `off`; default `127.0.0.1:0`. */
  readonly httpListen?: string;
  /** Kafka broker properties, for instance `{ "num.partitions": "3" }`. */
  readonly kafka?: Readonly<Record<string, string>>;
  /** Default 1. */
  readonly nodeId?: number;
  /** Names a new cluster: printable text of up to 80 bytes. Must equal the id of an existing one. */
  readonly clusterId?: string;
  /** False: a store without a cluster is refused, as one that was emptied. Default true. */
  readonly createCluster?: boolean;
  readonly s3Endpoint?: string;
  readonly s3Region?: string;
  readonly s3PathStyle?: boolean;
  /** For `s3://` stores; the environment is not read. */
  readonly credentials?: {
    readonly accessKeyId: string;
    readonly secretAccessKey: string;
    readonly sessionToken?: string;
  };
  /** Default `silent`. */
  readonly log?: "silent" | "text" | "json";
}

/** A running broker. */
export interface Broker {
  /** Where Kafka clients connect. */
  readonly kafka: { readonly host: string; readonly port: number };
  /** Where HTTP clients connect; the url is empty with `httpListen: "off"`. */
  readonly http: { readonly url: string };
  readonly clusterId: string;
  /** Answers one HTTP request without a socket. */
  fetch(request: Request): Promise<Response>;
  /**
   * Serves one Kafka connection over any Web stream pair (a Deno connection, a Workers socket);
   * resolves when the connection has ended.
   */
  serve(pair: {
    readonly readable: ReadableStream<Uint8Array>;
    readonly writable: WritableStream<Uint8Array>;
  }): Promise<void>;
  /** Resolves once the broker can never work again: another process took over, or data is missing. */
  readonly failed: Promise<FaultError>;
  /**
   * Finishes what is in flight, uploads, closes; within half a minute, whatever the store does.
   *
   * @throws {FaultError} `timeout` when the store did not take everything in that time. Nothing that was
   * acknowledged is lost, it lies in the write-ahead log; the message says how much.
   */
  close(): Promise<void>;
}

function flagsOf(options: BrokerOptions): Record<string, string> {
  const flags: Record<string, string | undefined> = {
    "store": options.store ?? "memory:",
    "kafka-listen": options.kafkaListen ?? "127.0.0.1:0",
    "http-listen": options.httpListen ?? "127.0.0.1:0",
    "node-id": options.nodeId?.toString(),
    "cluster-id": options.clusterId,
    "create-cluster": options.createCluster?.toString(),
    "s3-endpoint": options.s3Endpoint,
    "s3-region": options.s3Region,
    "s3-path-style": options.s3PathStyle?.toString(),
  };
  const given = Object.entries(flags).filter((entry): entry is [string, string] =>
    entry[1] !== undefined
  );
  return Object.fromEntries(given);
}

function environmentOf({ credentials }: BrokerOptions): Record<string, string | undefined> {
  if (credentials === undefined) return {};
  return {
    AWS_ACCESS_KEY_ID: credentials.accessKeyId,
    AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey,
    AWS_SESSION_TOKEN: credentials.sessionToken,
  };
}

function envOf(log: NonNullable<BrokerOptions["log"]>): Env {
  const env = createSystemEnv({ logFormat: log === "json" ? "json" : "text", logLevel: "info" });
  return log === "silent" ? { ...env, log: silentLogger } : env;
}

/**
 * Starts a broker in this process.
 *
 * @throws {FaultError} `config` when an option is wrong, an address is taken or the store cannot be used
 * (one that does not answer is waited for first, about 20 s), `data-loss` when stored data cannot be served.
 */
export async function createBroker(options: BrokerOptions = {}): Promise<Broker> {
  const resolved = resolveConfig({
    flags: flagsOf(options),
    sets: Object.entries(options.kafka ?? {}).map(([key, value]) => `${key}=${value}`),
    environment: environmentOf(options),
    file: null,
  });
  if (!resolved.ok) {
    throw new FaultError("config", resolved.errors.join("\n"), { retriable: false });
  }
  const { config } = resolved;
  const env = envOf(options.log ?? "silent");
  const node = await startNode({
    env,
    store: await openStore(config, env),
    storeKind: config.store.kind,
    storeName: storeName(config.store),
    storeHasPrices: hasPrices(config.store, config.s3.endpoint),
    listener: nodeListener(),
    serveHttp,
    outbound: createOutboundHttp(),
    settings: config,
  });
  const { kafka, http, clusterId, failed } = node;
  assert(kafka !== null, "A Kafka address is always configured");
  return {
    kafka,
    http: http ?? { url: "" },
    clusterId,
    failed,
    fetch: (request) => node.fetch(request),
    serve: (pair) => node.serve(pair),
    close: () => node.close(),
  };
}
