/** What a node is told, and the broker's properties checked before anything starts. */
import type { HostPort } from "../config/options.ts";
import type { StorePrices } from "../config/prices.ts";
import { type BrokerConfig, parseBrokerConfig } from "../broker/broker_config.ts";
import { FaultError } from "../lib/errors.ts";

export interface NodeSettings {
  readonly nodeId: number;
  readonly clusterId: string | null;
  /** False: a store without a cluster is refused. By default one is made. */
  readonly createCluster?: boolean;
  /** Null: no TCP listener; `serve()` still works. */
  readonly kafkaListen: HostPort | null;
  readonly advertise: HostPort | null;
  /** Null: no HTTP server; `fetch()` still works. */
  readonly httpListen: HostPort | null;
  readonly kafka: Readonly<Record<string, string>>;
  /** What stores charge; list prices when absent. */
  readonly prices?: readonly StorePrices[];
}

export function brokerConfigOf(kafka: Readonly<Record<string, string>>): BrokerConfig {
  const parsed = parseBrokerConfig(kafka);
  if (parsed.ok) return parsed.config;
  throw new FaultError("config", parsed.errors.join("\n"), { retriable: false });
}

/** Clients cannot connect to a wildcard address, so they are told a host that they can reach from here. */
export function advertisedAddress(settings: NodeSettings, bound: HostPort): HostPort {
  if (settings.advertise !== null) {
    const { host, port } = settings.advertise;
    return { host, port: port === 0 ? bound.port : port };
  }
  const wildcard = bound.host === "0.0.0.0" || bound.host === "::";
  return wildcard ? { host: "127.0.0.1", port: bound.port } : bound;
}
