/**
 * Joins flags, environment, file and defaults into one checked configuration.
 * Order: flag, then environment variable, then file, then default. Pure: reading the file and the
 * environment is the caller's job.
 */
import * as v from "valibot";
import {
  environmentName,
  type HostPort,
  OPTION_NAMES,
  type OptionName,
  OPTIONS,
  type StoreLocation,
} from "./options.ts";
import { PRICES_ALLOWED, priceTableSchema, type StorePrices, withPrices } from "./prices.ts";

export interface S3Credentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
  readonly sessionToken?: string;
}

export interface S3Access {
  readonly endpoint: string | null;
  readonly region: string;
  readonly pathStyle: boolean;
  /** Null: the requests would go out unsigned, which no store that accepts writes allows. */
  readonly credentials: S3Credentials | null;
}

export interface Config {
  readonly store: StoreLocation;
  readonly s3: S3Access;
  readonly kafkaListen: HostPort;
  readonly advertise: HostPort | null;
  readonly httpListen: HostPort | null;
  readonly nodeId: number;
  readonly clusterId: string | null;
  readonly createCluster: boolean;
  readonly logFormat: "text" | "json";
  readonly logLevel: "debug" | "info" | "warn" | "error";
  /** Kafka broker properties and `skerry.*` ones; checked by the broker's own table. */
  readonly kafka: Readonly<Record<string, string>>;
  /** What stores charge: those of the file, and list prices. */
  readonly prices: readonly StorePrices[];
}

export interface ConfigSources {
  /** Values of flags by option name. */
  readonly flags: Readonly<Record<string, string>>;
  /** `key=value` pairs of --set, in order. */
  readonly sets: readonly string[];
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** The parsed JSON of --config, with its name for messages. */
  readonly file: { readonly name: string; readonly value: unknown } | null;
}

/** One line each: the key, the value, where it came from and what is allowed. */
export type ConfigResult =
  | { readonly ok: true; readonly config: Config }
  | { readonly ok: false; readonly errors: readonly string[] };

interface Found {
  readonly value: string;
  readonly origin: string;
}

type Parsed = {
  readonly [Name in OptionName]: v.InferOutput<(typeof OPTIONS)[Name]["schema"]> | null;
};

const scalar = v.union([v.string(), v.number(), v.boolean()]);
/** Looked at one by one: `v.record` would pass over names like `__proto__` in silence. */
const properties = v.custom<Readonly<Record<string, unknown>>>(
  (value) => typeof value === "object" && value !== null && !Array.isArray(value),
);
const fileSchema = v.strictObject({
  ...Object.fromEntries(OPTION_NAMES.map((name) => [name, v.optional(scalar)])),
  kafka: v.optional(properties),
});

/** The AWS variables that an option takes when nothing of ours is set. */
const AWS_NAMES: Partial<Record<OptionName, readonly string[]>> = {
  "s3-endpoint": ["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"],
  "s3-region": ["AWS_REGION", "AWS_DEFAULT_REGION"],
};

type Scalar = v.InferOutput<typeof scalar>;
type FileValues = Readonly<Record<string, Scalar | Readonly<Record<string, unknown>> | undefined>>;

interface FileContent {
  readonly values: FileValues;
  readonly prices: readonly StorePrices[];
}

/** Looked at by itself: it is the one key with more than plain values, and only costs are counted by it. */
function readPrices(value: unknown, file: string, errors: string[]): readonly StorePrices[] {
  if (value === undefined) return [];
  const result = v.safeParse(priceTableSchema, value);
  if (result.success) return result.output;
  const [first] = result.issues;
  const place = v.getDotPath(first);
  const key = place === null ? "prices" : `prices.${place}`;
  errors.push(`Cannot use ${key} in ${file}: ${first.received}: allowed is ${PRICES_ALLOWED}`);
  return [];
}

function readFile(sources: ConfigSources, errors: string[]): FileContent {
  const nothing = { values: {}, prices: [] };
  if (sources.file === null) return nothing;
  const { name, value } = sources.file;
  if (Array.isArray(value)) {
    errors.push(`Cannot use ${name}: an array: allowed is one JSON object`);
    return nothing;
  }
  const { prices: table, ...others } = v.is(properties, value) ? value : { prices: undefined };
  const prices = readPrices(table, name, errors);
  const result = v.safeParse(fileSchema, v.is(properties, value) ? others : value);
  if (result.success) return { values: result.output, prices };
  for (const issue of result.issues) {
    const key = v.getDotPath(issue) ?? "(top level)";
    errors.push(
      `Cannot use ${key} in ${name}: ${issue.received}: allowed are ${
        OPTION_NAMES.join(", ")
      } and kafka, each with a plain value, and prices`,
    );
  }
  return nothing;
}

export type PricesResult =
  | { readonly ok: true; readonly prices: readonly StorePrices[] }
  | { readonly ok: false; readonly errors: readonly string[] };

/** The price table: that of the file, then the list prices of stores that it does not name. */
export function resolvePrices(file: ConfigSources["file"]): PricesResult {
  const errors: string[] = [];
  const { prices } = readFile({ flags: {}, sets: [], environment: {}, file }, errors);
  return errors.length > 0 ? { ok: false, errors } : { ok: true, prices: withPrices(prices) };
}

function fromEnvironment(name: OptionName, sources: ConfigSources): Found | null {
  for (const variable of [environmentName(name), ...(AWS_NAMES[name] ?? [])]) {
    const value = sources.environment[variable];
    if (value !== undefined && value !== "") return { value, origin: variable };
  }
  return null;
}

function find(
  name: OptionName,
  sources: ConfigSources,
  file: FileValues,
): Found | null {
  const flag = sources.flags[name];
  if (flag !== undefined) return { value: flag, origin: `--${name}` };
  const variable = fromEnvironment(name, sources);
  if (variable !== null) return variable;
  const given = file[name];
  if (given !== undefined && typeof given !== "object") {
    return { value: String(given), origin: sources.file!.name };
  }
  const fallback = OPTIONS[name].fallback;
  return fallback === null ? null : { value: fallback, origin: "default" };
}

function parseOptions(
  sources: ConfigSources,
  file: FileValues,
  errors: string[],
): Parsed {
  const parsed: Record<string, unknown> = {};
  for (const name of OPTION_NAMES) {
    const found = find(name, sources, file);
    parsed[name] = null;
    if (found === null) continue;
    const result = v.safeParse(OPTIONS[name].schema, found.value);
    if (result.success) parsed[name] = result.output;
    else {
      errors.push(
        `Cannot use ${name} = ${JSON.stringify(found.value)} (from ${found.origin}): allowed is ${
          OPTIONS[name].allowed
        }`,
      );
    }
  }
  return parsed as Parsed;
}

function kafkaProperties(
  sources: ConfigSources,
  file: FileValues,
  errors: string[],
): Record<string, string> {
  // A Map, because a property may be called `__proto__`, and is then refused as unknown.
  const found = new Map<string, string>();
  for (const [key, value] of Object.entries(file["kafka"] ?? {})) {
    if (v.is(scalar, value)) found.set(key, String(value));
    else {
      errors.push(
        `Cannot use kafka.${key} in ${sources.file!.name}: ${
          JSON.stringify(value)
        }: allowed is a plain value`,
      );
    }
  }
  const variable = sources.environment["SKERRY_SET"] ?? "";
  const pairs = [...variable.split(/[;\n]/).filter((pair) => pair.trim() !== ""), ...sources.sets];
  for (const pair of pairs) {
    const at = pair.indexOf("=");
    if (at <= 0) {
      errors.push(`Cannot use set = ${JSON.stringify(pair)}: allowed is kafka.property=value`);
    } else found.set(pair.slice(0, at).trim(), pair.slice(at + 1).trim());
  }
  return Object.fromEntries(found);
}

function credentials(environment: ConfigSources["environment"]): S3Credentials | null {
  const accessKeyId = environment["AWS_ACCESS_KEY_ID"];
  const secretAccessKey = environment["AWS_SECRET_ACCESS_KEY"];
  const sessionToken = environment["AWS_SESSION_TOKEN"];
  if (accessKeyId === undefined || secretAccessKey === undefined) return null;
  return sessionToken === undefined
    ? { accessKeyId, secretAccessKey }
    : { accessKeyId, secretAccessKey, sessionToken };
}

function unknownFlags(sources: ConfigSources): string[] {
  return Object.keys(sources.flags)
    .filter((name) => !Object.hasOwn(OPTIONS, name))
    .map((name) =>
      `Cannot use --${name}: unknown option: allowed are ${
        OPTION_NAMES.map((n) => `--${n}`).join(" ")
      }`
    );
}

export function resolveConfig(sources: ConfigSources): ConfigResult {
  const errors = unknownFlags(sources);
  const { values: file, prices } = readFile(sources, errors);
  const options = parseOptions(sources, file, errors);
  const kafka = kafkaProperties(sources, file, errors);
  const s3Credentials = credentials(sources.environment);
  if (options.store?.kind === "s3" && s3Credentials === null) {
    errors.push(
      "Cannot use store: s3:// needs AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY in the environment",
    );
  }
  if (errors.length > 0) return { ok: false, errors };
  return {
    ok: true,
    config: {
      store: options.store!,
      s3: {
        endpoint: options["s3-endpoint"],
        region: options["s3-region"] ?? "us-east-1",
        pathStyle: options["s3-path-style"]!,
        credentials: s3Credentials,
      },
      kafkaListen: options["kafka-listen"]!,
      advertise: options["advertise"],
      httpListen: options["http-listen"],
      nodeId: options["node-id"]!,
      clusterId: options["cluster-id"],
      createCluster: options["create-cluster"]!,
      logFormat: options["log-format"]!,
      logLevel: options["log-level"]!,
      kafka,
      prices: withPrices(prices),
    },
  };
}
