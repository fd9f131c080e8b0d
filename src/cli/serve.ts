/** `skerry serve`: configuration to a running node, signals to its end. */
import { readFile } from "node:fs/promises";
import { nodeListener } from "../adapters/node_net.ts";
import { openStore } from "../adapters/open_store.ts";
import { serveHttp } from "../adapters/http_serve.ts";
import { createSystemEnv } from "../adapters/system_env.ts";
import { type Config, type ConfigSources, resolveConfig } from "../config/config.ts";
import type { StoreLocation } from "../config/options.ts";
import { hasPrices } from "../config/prices.ts";
import type { Env } from "../env/env.ts";
import { FaultError, messageOf } from "../lib/errors.ts";
import { VERSION } from "../lib/version.ts";
import { type RunningNode, startNode } from "../node/node.ts";
import type { Arguments } from "./args.ts";
import { EXIT } from "./exit.ts";

/** A stop that takes longer is cut off: nothing acknowledged is lost either way, it lies in the WAL. */
const STOP_MS_MAX = 30_000;

function fail(lines: readonly string[], code: number): number {
  process.stderr.write(lines.map((line) => `${line}\n`).join(""));
  return code;
}

async function readSources(args: Arguments): Promise<ConfigSources> {
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

export function locationText(store: StoreLocation): string {
  if (store.kind === "memory") return "memory: (gone when the process ends)";
  if (store.kind === "dir") return `dir:${store.path}`;
  return `s3://${store.bucket}${store.prefix === "" ? "" : `/${store.prefix}`}`;
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

/** Resolves at the first SIGTERM or SIGINT; the second one ends the process at once. */
function stopSignal(env: Env): Promise<string> {
  return new Promise((resolve) => {
    let stopping = false;
    const onSignal = (name: NodeJS.Signals) => {
      if (stopping) {
        env.log.log("warn", "stopped-at-once", { signal: name });
        process.exit(EXIT.ok);
      }
      stopping = true;
      resolve(name);
    };
    process.on("SIGTERM", onSignal);
    process.on("SIGINT", onSignal);
  });
}

function exitCodeOf(error: unknown): number {
  if (!(error instanceof FaultError)) return EXIT.unexpected;
  if (error.code === "fenced") return EXIT.fenced;
  if (error.code === "data-loss" || error.code === "corrupt") return EXIT.data;
  return error.code === "config" || error.code === "store-denied" ? EXIT.config : EXIT.unexpected;
}

async function stop(env: Env, node: RunningNode): Promise<number> {
  const cancel = env.clock.after(STOP_MS_MAX, () => {
    env.log.log("warn", "stop-cut-off", { afterMs: STOP_MS_MAX });
    process.exit(EXIT.ok);
  });
  await node.close();
  cancel();
  env.log.log("info", "stopped");
  return EXIT.ok;
}

async function run(config: Config): Promise<number> {
  const env = createSystemEnv({ logFormat: config.logFormat, logLevel: config.logLevel });
  const stopped = stopSignal(env);
  const store = await openStore(config, env);
  const node = await startNode({
    env,
    store,
    storeKind: config.store.kind,
    storeHasPrices: hasPrices(config.store, config.s3.endpoint),
    listener: nodeListener(),
    serveHttp,
    settings: config,
  });
  announce(config, env, node);
  const ended = await Promise.race([stopped, node.failed]);
  if (typeof ended === "string") {
    env.log.log("info", "stopping", { signal: ended });
    return await stop(env, node);
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
