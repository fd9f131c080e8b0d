/**
 * The object that makes a prefix one cluster: its id, format and feature level. The first start creates
 * it, every later one reads it; nobody ever changes it.
 */
import type { Clock } from "../env/clock.ts";
import type { Logger } from "../env/logger.ts";
import type { Random } from "../env/random.ts";
import { toUtf8 } from "../lib/bytes.ts";
import { CLUSTER_ID_ALLOWED, clusterSegment, isClusterId } from "../lib/cluster_id.ts";
import { corrupt } from "../lib/corrupt.ts";
import { crc32c } from "../lib/crc32c.ts";
import { FaultError } from "../lib/errors.ts";
import { METADATA_APPEND_TIMEOUT_MS, STORE_LIST_PAGE_KEYS } from "../lib/limits.ts";
import { createExactly } from "../object/create.ts";
import { CLUSTER_KEY, clusterSegmentOf, METADATA_PREFIX } from "../object/object_key.ts";
import type { ObjectStore } from "../object/object_store.ts";
import { FEATURE_LEVEL } from "./entry.ts";
import { parseJson } from "./record.ts";
import { int, readShape, type Shape, struct, text } from "./shape.ts";

const FORMAT_VERSION = 1;
/** Every key of a cluster begins like this; below another prefix of the bucket it is somebody else's. */
const OURS = /^[^/]+\/_kafka_([^/]+)\//;
const ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
const ID_BYTES = 16;

/** Objects of builds before the checksum have none. */
const checksum: Shape<number | null> = (value, path) =>
  value === undefined ? null : int(value, path);
const clusterShape = struct({
  clusterId: text,
  formatVersion: int,
  featureLevel: int,
  crc32c: checksum,
});

export interface Cluster {
  readonly clusterId: string;
  readonly formatVersion: number;
  readonly featureLevel: number;
}

export interface OpenClusterOptions {
  /** A name for a new cluster; must equal that of an existing one. */
  readonly clusterId?: string;
  /** Of a new cluster; by default the highest that is known. */
  readonly featureLevel?: number;
  /** Highest feature level that is read; by default this build's. */
  readonly known?: number;
  /** False: a store without a cluster is refused. */
  readonly mayCreate?: boolean;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly signal?: AbortSignal;
}

/** 16 random bytes as Kafka writes its cluster ids: URL-safe base64, 22 characters, no leading dash. */
export function newClusterId(random: Random): string {
  const bytes = random.bytes(ID_BYTES);
  let id = "";
  for (let at = 0; at < ID_BYTES; at += 3) {
    const group = (bytes[at]! << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
    for (let i = 0; i < 4; i++) id += ALPHABET[(group >>> (18 - 6 * i)) & 63];
  }
  return id.slice(0, 22).replace(/^-/, "A");
}

function configFault(message: string): FaultError {
  return new FaultError("config", message, { retriable: false });
}

/** CRC-32C of the JSON without it. */
function checksumOf({ clusterId, formatVersion, featureLevel }: Cluster): number {
  return crc32c(toUtf8(JSON.stringify({ clusterId, formatVersion, featureLevel })));
}

/** Throws FaultError: `corrupt`, or `config` for a newer build's. */
export function readCluster(bytes: Uint8Array, known = FEATURE_LEVEL): Cluster {
  const { crc32c: wanted, ...found } = readShape(clusterShape, parseJson(bytes), CLUSTER_KEY);
  if (wanted !== null && wanted !== checksumOf(found)) {
    throw corrupt(`Cannot read ${CLUSTER_KEY}: its checksum does not match`);
  }
  if (found.formatVersion > FORMAT_VERSION || found.featureLevel > known) {
    throw configFault(
      `Cannot open the store: its format is ${found.formatVersion}, feature level ` +
        `${found.featureLevel}; this build knows up to ${FORMAT_VERSION} and ${known}. ` +
        "Start a newer build.",
    );
  }
  if (!isClusterId(found.clusterId)) {
    throw corrupt(`Cannot read ${CLUSTER_KEY}: cluster id ${JSON.stringify(found.clusterId)}`);
  }
  return found;
}

/**
 * Throws FaultError: `config` when the store belongs to another cluster or a newer build, `corrupt` when the
 * cluster object is lost.
 */
export async function openCluster(
  store: ObjectStore,
  options: OpenClusterOptions,
): Promise<Cluster> {
  const { clusterId: asked, ...rest } = options;
  if (asked !== undefined && !isClusterId(asked)) {
    throw configFault(
      `Cannot use cluster-id = ${JSON.stringify(asked)}: allowed is ${CLUSTER_ID_ALLOWED}`,
    );
  }
  const existing = await readExisting(store, options);
  if (existing === null && options.mayCreate === false) {
    throw configFault(
      `Cannot open the store: it holds no cluster (${CLUSTER_KEY} is missing), and create-cluster is off. ` +
        "Nothing was written. Is it the right store? Has it been emptied?",
    );
  }
  const cluster = existing ??
    await createCluster(store, asked ?? newClusterId(options.random), rest);
  if (asked !== undefined && asked !== cluster.clusterId) {
    throw configFault(
      `Cannot use cluster-id = ${asked}: the store belongs to cluster ${cluster.clusterId}.`,
    );
  }
  return cluster;
}

/**
 * Null when a new cluster may be made. Metadata without the object that names its cluster is a loss: a new name
 * would hide everything that is there, so only whoever knows the old one may go on.
 */
async function readExisting(
  store: ObjectStore,
  { clusterId: asked, known }: OpenClusterOptions,
): Promise<Cluster | null> {
  const existing = await store.get(CLUSTER_KEY);
  if (existing !== null) return readCluster(existing.bytes, known);
  const segment = await firstSegment(store);
  if (segment === null) return null;
  const isNamed = asked !== undefined && segment === clusterSegment(asked);
  if (isNamed && await holdsMetadata(store)) return null;
  // Another start may have made both since we looked.
  const made = await store.get(CLUSTER_KEY);
  if (made !== null) return readCluster(made.bytes, known);
  const found =
    `Cannot open the store: ${CLUSTER_KEY} is missing, but objects of cluster ${segment} are there`;
  throw corrupt(
    isNamed
      ? `${found}, and no metadata that names them. Is it a copy that was broken off? ` +
        "Copy again, or bring the objects below meta/ back."
      : `${found}. Bring the object back, or start once with the cluster's id as cluster-id.`,
  );
}

async function holdsMetadata(store: ObjectStore): Promise<boolean> {
  for await (const { key } of store.list(METADATA_PREFIX, { anyOrder: true })) {
    if (clusterSegmentOf(key) !== null) return true;
  }
  return false;
}

/** The part of a key that names a cluster whose objects are in the store; null when there are none of ours. */
export async function firstSegment(store: ObjectStore): Promise<string | null> {
  for await (const { key } of store.list(METADATA_PREFIX, { anyOrder: true })) {
    const segment = clusterSegmentOf(key);
    if (segment !== null) return segment;
  }
  // Without any metadata what is left of an emptied store may still be ours. A page of keys is enough of a look.
  let seen = 0;
  for await (const { key } of store.list("", { anyOrder: true })) {
    const segment = OURS.exec(key)?.[1];
    if (segment !== undefined) return segment;
    if (++seen >= STORE_LIST_PAGE_KEYS) break;
  }
  return null;
}

/** Two first starts race for the name; the loser takes what the winner wrote. */
export async function createCluster(
  store: ObjectStore,
  clusterId: string,
  options: Omit<OpenClusterOptions, "clusterId">,
): Promise<Cluster> {
  const { known = FEATURE_LEVEL, featureLevel = known } = options;
  const cluster = { clusterId, formatVersion: FORMAT_VERSION, featureLevel };
  const body = toUtf8(`${JSON.stringify({ ...cluster, crc32c: checksumOf(cluster) })}\n`);
  const deadlineMs = METADATA_APPEND_TIMEOUT_MS;
  const outcome = await createExactly(store, CLUSTER_KEY, body, { ...options, deadlineMs });
  return outcome.created ? cluster : readCluster(outcome.found, known);
}
