/** `skerry serve`: configuration to a running node, signals to its end. */
import { readFile } from "node:fs/promises";
import { nodeListener } from "../adapters/node_net.ts";
import { openStore } from "../adapters/open_store.ts";
import { createOutboundHttp } from "../adapters/outbound_http.ts";
import { serveHttp } from "../adapters/http_serve.ts";
import { createSystemEnv } from "../adapters/system_env.ts";
import { type Config, type ConfigSources, resolveConfig } from "../config/config.ts";
import { type StoreLocation, storeName } from "../config/options.ts";
import { hasPrices } from "../config/prices.ts";
import type { Env } from "../env/env.ts";
import { FaultError, isFault, messageOf } from "../lib/errors.ts";
import { VERSION } from "../lib/version.ts";
import { type RunningNode, startNode } from "../node/node.ts";
import type { Arguments } from "./args.ts";
import { EXIT, exitCodeOf } from "./exit.ts";
import { type StopHost, stopSignal } from "./stop_signal.ts";

export function fail(lines: readonly string[], code: number): number {
  process.stderr.write(lines.map((line) => `${line}\n`).join(""));
  return code;
}

export async function readSources(args: Arguments): Promise<ConfigSources> {
  const name = args.configFile ?? process.env["SKERRY_CONFIG"] ?? null;
  const base = { flags: args.flags, sets: args.sets, environment: process.env };
  if (name === null) return { ...base, file: null };
  let text: string;
  try {
    text = await readFile(name, "utf8");
  } catch (error) {
    throw new FaultError("config", `Cannot read config = ${name}: ${messageOf(error)}`, {
      retriable: false,
    });
  }
  try {
    return { ...base, file: { name, value: JSON.parse(text) as unknown } };
  } catch (error) {
    throw new FaultError("config", `Cannot parse config = ${name}: ${messageOf(error)}`, {
      retriable: false,
    });
  }
}

function locationText(store: StoreLocation): string {
  return store.kind === "memory" ? "memory: (gone when the process ends)" : storeName(store);
}

function tryLine(node: RunningNode): string {
  if (node.http === null) return `kcat -b ${node.kafka!.host}:${node.kafka!.port} -L`;
  return `curl -d 'hello' ${node.http.url}/v1/topics/greetings/records`;
}

function announce(config: Config, env: Env, node: RunningNode): void {
  const kafka = node.kafka === null ? null : `${node.kafka.host}:${node.kafka.port}`;
  const http = node.http?.url ?? null;
  if (config.logFormat === "json") {
    env.log.log("info", "ready", {
      kafka,
      http,
      store: locationText(config.store),
      clusterId: node.clusterId,
      nodeId: config.nodeId,
      version: VERSION,
    });
    return;
  }
  process.stdout.write([
    `Skerry ${VERSION} is ready.`,
    `  Kafka  ${kafka ?? "off"}`,
    `  HTTP   ${http ?? "off"}`,
    `  Data   ${locationText(config.store)} (cluster ${node.clusterId}, node ${config.nodeId})`,
    `  Try    ${tryLine(node)}`,
    "",
  ].join("\n"));
}

const HOST: StopHost = {
  onSignal(listener) {
    process.on("SIGTERM", listener);
    process.on("SIGINT", listener);
  },
  exit: () => process.exit(EXIT.ok),
};

async function start(config: Config, env: Env): Promise<RunningNode> {
  const store = await openStore(config, env);
  return await startNode({
    env,
    store,
    storeKind: config.store.kind,
    storeName: storeName(config.store),
    storeHasPrices: hasPrices(config.store, config.s3.endpoint),
    listener: nodeListener(),
    serveHttp,
    outbound: createOutboundHttp(),
    settings: config,
  });
}

/** What the store does not take in time stays in the WAL: the stop is no failure, but it is told. */
async function closeOrLeave(node: RunningNode, { log }: Env): Promise<void> {
  try {
    await node.close();
    log.log("info", "stopped");
  } catch (error) {
    if (!isFault(error, "timeout")) throw error;
    log.log("warn", "stopped-early", { reason: error.message });
  }
}

async function run(config: Config): Promise<number> {
  const env = createSystemEnv({ logFormat: config.logFormat, logLevel: config.logLevel });
  const stopped = stopSignal(env, HOST);
  const node = await Promise.race([stopped, start(config, env)]);
  // A store that does not answer may hold up a start for long, and whoever waits has nothing to lose.
  if (typeof node === "string") return EXIT.ok;
  announce(config, env, node);
  const ended = await Promise.race([stopped, node.failed]);
  if (typeof ended === "string") {
    env.log.log("info", "stopping", { signal: ended });
    await closeOrLeave(node, env);
    return EXIT.ok;
  }
  env.log.log("error", "node-failed", { code: ended.code, error: ended.message });
  return exitCodeOf(ended);
}

export async function serve(args: Arguments): Promise<number> {
  try {
    const resolved = resolveConfig(await readSources(args));
    return resolved.ok ? await run(resolved.config) : fail(resolved.errors, EXIT.config);
  } catch (error) {
    return fail([messageOf(error)], exitCodeOf(error));
  }
}
