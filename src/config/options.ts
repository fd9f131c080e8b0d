/**
 * The table of options: one row gives the flag, the file key, the environment variable, the default,
 * the schema that parses the text and the sentence that says what is allowed.
 */
import * as v from "valibot";
import { CLUSTER_ID_ALLOWED, isClusterId } from "../lib/cluster_id.ts";

export interface HostPort {
  readonly host: string;
  readonly port: number;
}

export type StoreLocation =
  | { readonly kind: "memory" }
  | { readonly kind: "dir"; readonly path: string }
  | { readonly kind: "s3"; readonly bucket: string; readonly prefix: string };

const PORT_MAX = 65_535;
/** Kafka node ids are int32. */
const NODE_ID_MAX = 2_147_483_647;

/** `host:port`, `[v6]:port` or `:port`; null when it is neither. */
export function parseHostPort(text: string): HostPort | null {
  const match = /^(\[[0-9a-fA-F:.]+\]|[^:\s[\]]*):(\d{1,5})$/.exec(text);
  if (match === null) return null;
  const port = Number(match[2]);
  if (port > PORT_MAX) return null;
  const host = match[1]!.replace(/^\[|\]$/g, "");
  return { host: host === "" ? "0.0.0.0" : host, port };
}

export function parseStore(text: string): StoreLocation | null {
  if (text === "memory:") return { kind: "memory" };
  if (text.startsWith("dir:")) {
    return text.length > 4 ? { kind: "dir", path: text.slice(4) } : null;
  }
  const match = /^s3:\/\/([a-z0-9][a-z0-9._-]{1,61}[a-z0-9])(?:\/(.*))?$/.exec(text);
  if (match === null) return null;
  const prefix = (match[2] ?? "").replace(/^\/+|\/+$/g, "");
  return { kind: "s3", bucket: match[1]!, prefix };
}

/** A schema over text that parses with a function; null from it means "not allowed". */
function parsed<T>(parse: (text: string) => T | null) {
  return v.pipe(
    v.string(),
    v.check((text) => parse(text) !== null),
    v.transform((text) => parse(text)!),
  );
}

const hostPort = parsed(parseHostPort);
const url = v.pipe(v.string(), v.url(), v.regex(/^https?:\/\//));
const flag = v.pipe(
  v.picklist(["true", "false", ""]),
  v.transform((text) => text !== "false"),
);
const text = v.pipe(v.string(), v.minLength(1));

export const OPTIONS = {
  "store": {
    schema: parsed(parseStore),
    fallback: "dir:./skerry-data",
    allowed: "memory:, dir:PATH or s3://BUCKET/PREFIX",
    help: "where every byte lies; memory: is gone when the process ends",
  },
  "s3-endpoint": {
    schema: url,
    fallback: null,
    allowed: "an http or https URL",
    help: "S3-compatible endpoint; also AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL",
  },
  "s3-region": {
    schema: text,
    fallback: null,
    allowed: "a region name",
    help: "also AWS_REGION, AWS_DEFAULT_REGION; us-east-1 without any",
  },
  "s3-path-style": {
    schema: flag,
    fallback: "false",
    allowed: "true or false",
    help:
      "put the bucket into the path instead of the host name, as most S3-compatible servers need",
  },
  "kafka-listen": {
    schema: hostPort,
    fallback: "127.0.0.1:9092",
    allowed: "HOST:PORT with a port from 0 to 65535",
    help: "where Kafka clients connect; port 0 picks a free one",
  },
  "advertise": {
    schema: hostPort,
    fallback: null,
    allowed: "HOST:PORT with a port from 0 to 65535",
    help: "the address that clients are told to connect to, when it differs from kafka-listen",
  },
  "http-listen": {
    schema: v.union([
      v.pipe(
        v.literal("off"),
        v.transform(() => null),
      ),
      hostPort,
    ]),
    fallback: "127.0.0.1:8080",
    allowed: "HOST:PORT with a port from 0 to 65535, or off",
    help: "where HTTP clients connect; off: no HTTP",
  },
  "node-id": {
    schema: v.pipe(
      v.string(),
      v.regex(/^\d{1,10}$/),
      v.transform(Number),
      v.maxValue(NODE_ID_MAX),
    ),
    fallback: "1",
    allowed: "an integer from 0 to 2147483647",
    help:
      "which node of the cluster this is; a second process with the same id takes over from the first",
  },
  "cluster-id": {
    schema: v.pipe(v.string(), v.check(isClusterId)),
    fallback: null,
    allowed: CLUSTER_ID_ALLOWED,
    help: "names a new cluster (a random id without it); must equal the id of the one in the store",
  },
  "create-cluster": {
    schema: flag,
    fallback: "true",
    allowed: "true or false",
    help:
      "whether a store without a cluster gets one; false where it exists, so that an emptied store is noticed",
  },
  "log-format": {
    schema: v.picklist(["text", "json"]),
    fallback: "text",
    allowed: "text or json",
    help: "how log lines look",
  },
  "log-level": {
    schema: v.picklist(["debug", "info", "warn", "error"]),
    fallback: "info",
    allowed: "debug, info, warn or error",
    help: "the least important lines that are shown",
  },
} as const;

/** How people call the store. */
export function storeName(store: StoreLocation): string {
  if (store.kind === "memory") return "memory:";
  if (store.kind === "dir") return `dir:${store.path}`;
  return `s3://${store.bucket}${store.prefix === "" ? "" : `/${store.prefix}`}`;
}

export type OptionName = keyof typeof OPTIONS;
export const OPTION_NAMES = Object.keys(OPTIONS) as OptionName[];

export function environmentName(option: string): string {
  return `SKERRY_${option.toUpperCase().replaceAll("-", "_")}`;
}
