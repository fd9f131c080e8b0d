/**
 * Answers made comparable. What each broker picks for itself (ids, ports, times, the words of its
 * messages) becomes a name on first sight, so that it still shows whether two of them are the same.
 * Lists of named things become objects: their order is Kafka's hash order and means nothing.
 */
import { createCodecs } from "../../src/adapters/codecs.ts";
import { DecodeError, toHex, utf8 } from "../../src/lib/bytes.ts";
import { FaultError } from "../../src/lib/errors.ts";
import { ZERO_UUID } from "../../src/lib/uuid.ts";
import {
  codecOf,
  isControlBatch,
  isLogAppendTime,
  isTransactionalBatch,
  readBatchHeader,
  splitBatches,
} from "../../src/protocol/record_batch.ts";
import { readRecords } from "../../src/protocol/record.ts";
import type { Entry } from "./script.ts";

export type Json = null | boolean | number | string | readonly Json[] | {
  readonly [key: string]: Json;
};

/** Fields that say which element of a list this is, the first that is there and not empty. */
const IDENTITY = [
  "name",
  "topic",
  "topicName",
  "groupId",
  "transactionalId",
  "resourceName",
  "key",
  "apiKey",
  "nodeId",
  "brokerId",
  "partitionIndex",
  "partition",
  "index",
  "topicId",
  "memberId",
];
/** Lists whose order has a meaning. */
const ORDERED = new Set(["synonyms", "records", "batches", "abortedTransactions", "recordErrors"]);
const TEXTS = new Set([
  "errorMessage",
  "acknowledgeErrorMessage",
  "batchIndexErrorMessage",
  "documentation",
]);
/** How much a store takes is its own. */
const SIZES = new Set(["partitionSize", "totalBytes", "usableBytes"]);
const UUID = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;
const HOUR_MS = 3_600_000;

const codecs = createCodecs();

export interface Side {
  readonly port: number;
  readonly nowMs: number;
}

class Names {
  readonly #known = new Map<string, string>();
  readonly #counts = new Map<string, number>();

  of(kind: string, value: string | number): string {
    const known = this.#known.get(`${kind} ${value}`);
    if (known !== undefined) return known;
    const count = (this.#counts.get(kind) ?? 0) + 1;
    this.#counts.set(kind, count);
    const name = `<${kind} ${count}>`;
    this.#known.set(`${kind} ${value}`, name);
    return name;
  }
}

class Normaliser {
  readonly #names = new Names();
  readonly #side: Side;

  constructor(side: Side) {
    this.#side = side;
  }

  value(field: string, value: unknown): Json {
    if (value === null || value === undefined || typeof value === "boolean") return value ?? null;
    if (typeof value === "number") return this.#number(field, value);
    if (typeof value === "string") return this.#text(field, value);
    if (value instanceof Uint8Array) {
      return field === "records" ? this.#batches(value) : readable(value);
    }
    if (Array.isArray(value)) return this.#list(field, value);
    return this.#row(value as Record<string, unknown>);
  }

  #number(field: string, value: number): Json {
    if (Math.abs(value - this.#side.nowMs) < HOUR_MS) return "<time>";
    if (field === "port" && value === this.#side.port) return "<port>";
    if (SIZES.has(field) && value > 0) return "<size>";
    if (field === "finalizedFeaturesEpoch" && value >= 0) return "<epoch>";
    if (field === "producerId" && value >= 0) return this.#names.of("producer", value);
    if (field === "sessionId" && value > 0) return this.#names.of("session", value);
    return value;
  }

  #text(field: string, value: string): Json {
    if (field === "clusterId") return "<cluster>";
    if (field === "logDir") return "<directory>";
    // No message is null in some answers and empty in others, whatever the outcome.
    if (TEXTS.has(field)) return value === "" ? null : "<text>";
    if (field === "topicId") return value === ZERO_UUID ? "<none>" : this.#names.of("topic", value);
    return value.replace(UUID, (uuid) => this.#names.of("uuid", uuid));
  }

  #row(row: Record<string, unknown>): Json {
    return Object.fromEntries(
      Object.entries(row).map(([name, value]) => [name, this.value(name, value)]),
    );
  }

  #list(field: string, list: readonly unknown[]): Json {
    if (ORDERED.has(field)) return list.map((item) => this.value(field, item));
    const rows = inOrder(list).map((item) => this.value(field, item));
    const named: Record<string, Json> = {};
    for (const row of rows) {
      const id = identityOf(row);
      if (id === null) return rows.toSorted(byText);
      let name = id;
      for (let again = 2; name in named; again++) name = `${id} again ${again}`;
      named[name] = row;
    }
    return named;
  }

  #batches(bytes: Uint8Array): Json {
    return splitBatches(bytes).map((batch): Json => {
      const header = readBatchHeader(batch);
      const codec = codecOf(header) ?? "none";
      const plain = codec === "none" ? { batchLength: header.batchLength } : {};
      const { crc: _crc, batchLength: _length, attributes: _attributes, ...rest } = header;
      const kind = {
        codec,
        control: isControlBatch(header),
        transactional: isTransactionalBatch(header),
        appendTime: isLogAppendTime(header),
      };
      const records = recordsOf(batch);
      return this.value("", { ...rest, ...plain, ...kind, records });
    });
  }
}

/** Brokers store what they did not look into. */
function recordsOf(batch: Uint8Array): unknown {
  try {
    return [...readRecords(batch, codecs)];
  } catch (error) {
    if (error instanceof DecodeError || error instanceof FaultError) return "cannot be read";
    throw error;
  }
}

/** By name, so that ids of lists in hash order get their names in the same order on both sides. */
function inOrder(list: readonly unknown[]): readonly unknown[] {
  const nameOf = (item: unknown) => (item as { readonly name?: unknown } | null)?.name;
  if (!list.every((item) => typeof nameOf(item) === "string")) return list;
  return list.toSorted((a, b) => String(nameOf(a)) < String(nameOf(b)) ? -1 : 1);
}

function isRow(value: Json): value is { readonly [key: string]: Json } {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function byText(a: Json, b: Json): number {
  return JSON.stringify(a) < JSON.stringify(b) ? -1 : 1;
}

function identityOf(value: Json): string | null {
  if (!isRow(value)) return null;
  for (const field of IDENTITY) {
    const id = value[field];
    const isGiven = typeof id === "string" || typeof id === "number";
    if (isGiven && id !== "" && id !== "<none>") return String(id);
  }
  return IDENTITY.some((field) => field in value) ? "(empty)" : null;
}

function readable(bytes: Uint8Array): string {
  try {
    const text = utf8(bytes);
    // oxlint-disable-next-line no-control-regex
    if (!/[\0-\x1f]/.test(text)) return text;
  } catch {
    // Not text.
  }
  return `0x${toHex(bytes)}`;
}

/** One side of one scenario. */
export function normalise(entries: readonly Entry[], side: Side): Map<string, Json> {
  const normaliser = new Normaliser(side);
  return new Map(entries.map(({ label, value }) => [label, normaliser.value("", value)]));
}
