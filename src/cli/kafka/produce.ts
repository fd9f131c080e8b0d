/** `skerry produce`: each line of standard input becomes a record. */
import type { CodecName } from "../../env/codecs.ts";
import { toUtf8 } from "../../lib/bytes.ts";
import type { NewRecord, RecordHeader } from "../../protocol/record_writer.ts";
import { CLIENT_EXIT, ClientFault, dataFault } from "../client/fault.ts";
import { Producer, type ProducerOptions } from "../client/producer.ts";
import { countOf, table, writeJson } from "./answer.ts";
import type { Call, Command } from "./command.ts";
import { linesOf, untilStopped } from "./lines.ts";
import { Progress } from "./progress.ts";
import { parsePair, separatorOf, WordFault, type Words } from "./syntax.ts";

/** Below the 64 MiB that a stored batch may have, with room for its headers. */
const LINE_BYTES_MAX = 60 * 1024 * 1024;
/** Beside key and value: what a record takes here, more than in its batch. */
const RECORD_OVERHEAD_BYTES = 64;
const BATCH_BYTES_MAX = 64 * 1024 * 1024;
const LINGER_MS_MAX = 60_000;

function codecOf(words: Words): CodecName | null {
  const name = words.oneOf("compression", ["none", "gzip", "snappy", "lz4", "zstd"]);
  return name === "none" ? null : name;
}

function optionsOf(words: Words): ProducerOptions {
  const acks = words.oneOf("acks", ["all", "1", "0"]);
  const [partition = null, ...more] = words.partitions("partition");
  if (more.length > 0) throw new WordFault("--partition: allowed is one partition");
  return {
    topic: words.operands[0]!,
    acks: acks === "all" ? -1 : acks === "1" ? 1 : 0,
    idempotent: acks === "all" && !words.isOn("no-idempotence"),
    codec: codecOf(words),
    lingerMs: words.number("linger", 0, LINGER_MS_MAX)!,
    batchBytes: words.integer("batch-bytes", 1, BATCH_BYTES_MAX)!,
    partition,
  };
}

function headersOf(words: Words): RecordHeader[] {
  return words.all("header").map((text) => {
    const [key, value] = parsePair(text, "--header");
    return { key, value: toUtf8(value) };
  });
}

function indexOfBytes(line: Uint8Array, wanted: Uint8Array): number {
  for (let at = line.indexOf(wanted[0]!); at >= 0; at = line.indexOf(wanted[0]!, at + 1)) {
    if (wanted.every((byte, i) => line[at + i] === byte)) return at;
  }
  return -1;
}

/** What stands before the first separator is the key, what follows the value. */
export function splitLine(
  line: Uint8Array,
  separator: Uint8Array | null,
): { readonly key: Uint8Array | null; readonly value: Uint8Array } | null {
  if (separator === null) return { key: null, value: line };
  const at = indexOfBytes(line, separator);
  if (at < 0) return null;
  return { key: line.subarray(0, at), value: line.subarray(at + separator.length) };
}

function recordMaker({ words, io }: Call): (line: Uint8Array, number: number) => NewRecord {
  const headers = headersOf(words);
  const given = words.text("key-separator");
  const separatorText = given === null ? null : separatorOf(given);
  if (separatorText === "") throw new WordFault("--key-separator: it is empty");
  const separator = separatorText === null ? null : toUtf8(separatorText);
  const nullText = words.text("null");
  const nullValue = nullText === null ? null : toUtf8(nullText);
  const isNull = (value: Uint8Array) =>
    nullValue !== null && value.length === nullValue.length && indexOfOrZero(value, nullValue);
  return (line, number) => {
    const split = splitLine(line, separator);
    if (split === null) {
      throw dataFault(`Cannot take line ${number}: it has no key, that is, no ${given}`);
    }
    const { key, value } = split;
    const timestampMs = io.env.clock.nowMs();
    return { key, value: isNull(value) ? null : value, headers, timestampMs };
  };
}

function indexOfOrZero(value: Uint8Array, wanted: Uint8Array): boolean {
  return wanted.length === 0 || indexOfBytes(value, wanted) === 0;
}

function bytesOf({ key, value }: NewRecord): number {
  return (key?.length ?? 0) + (value?.length ?? 0) + RECORD_OVERHEAD_BYTES;
}

interface Taken {
  records: number;
  bytes: number;
}

async function takeLines(call: Call, producer: Producer, taken: Taken): Promise<void> {
  const { io } = call;
  const record = recordMaker(call);
  const progress = new Progress(io);
  try {
    for await (const line of linesOf(untilStopped(io.input, io.untilStop()), LINE_BYTES_MAX)) {
      const made = record(line, taken.records + 1);
      const wait = producer.add(made, bytesOf(made));
      taken.records += 1;
      taken.bytes += line.length;
      if (wait !== null) await wait;
      progress.update(taken.records, taken.bytes);
    }
  } finally {
    progress.end();
  }
}

/** Everything up to the mistake is delivered, and told, before the mistake is. */
async function produceAll(
  call: Call,
  producer: Producer,
  taken: Taken,
): Promise<ClientFault | null> {
  let fault: unknown = null;
  try {
    await takeLines(call, producer, taken);
  } catch (error) {
    fault = error;
  }
  try {
    await producer.end();
  } catch (error) {
    fault ??= error;
  }
  if (fault !== null && !(fault instanceof ClientFault)) throw fault;
  return fault;
}

async function tell(
  { words, io }: Call,
  producer: Producer,
  taken: Taken,
  fault: ClientFault | null,
): Promise<number> {
  const partitions = producer.acknowledged;
  const acknowledged = partitions.reduce((sum, { records }) => sum + records, 0);
  if (words.json) {
    await writeJson(io, {
      topic: words.operands[0],
      read: taken.records,
      delivered: acknowledged,
      error: fault?.message ?? null,
      partitions: partitions.map((one) => ({
        ...one,
        firstOffset: one.firstOffset < 0 ? null : one.firstOffset,
        lastOffset: one.lastOffset < 0 ? null : one.lastOffset,
      })),
    });
  } else if (words.isOn("verbose")) {
    const shown = (offset: number) => offset < 0 ? "-" : String(offset);
    const rows = partitions.map(({ partition, records, firstOffset, lastOffset }) => [
      String(partition),
      String(records),
      shown(firstOffset),
      shown(lastOffset),
    ]);
    await io.write(table(["PARTITION", "RECORDS", "FIRST", "LAST"], rows));
  }
  return acknowledged;
}

async function produce(call: Call): Promise<number> {
  const { words, cluster, io } = call;
  const options = optionsOf(words);
  // Before anything is connected: a mistake on the line costs nothing.
  recordMaker(call);
  const producer = await Producer.open(cluster, io.env, options);
  const taken: Taken = { records: 0, bytes: 0 };
  const fault = await produceAll(call, producer, taken);
  const acknowledged = await tell(call, producer, taken, fault);
  if (fault === null) return CLIENT_EXIT.ok;
  io.note(fault.message);
  const others = acknowledged < taken.records ? "; of the others some may be stored too" : "";
  const state = options.acks === 0 ? "sent" : "stored";
  io.note(`${state}: ${countOf(acknowledged, "record")} of ${taken.records}${others}`);
  return fault.exit;
}

export const PRODUCE: Command = {
  name: "produce",
  operands: "TOPIC",
  operandsMin: 1,
  operandsMax: 1,
  help: "Each line of standard input becomes a record. Ctrl-C delivers what was read and ends.",
  options: {
    "key-separator": {
      value: "TEXT",
      short: "k",
      help: "what stands before it on a line is the key; without it there are no keys",
    },
    "partition": { value: "N", help: "where all go; default: the key decides, or they take turns" },
    "header": { value: "NAME=VALUE", repeats: true, help: "for each record, may be repeated" },
    "null": { value: "TEXT", help: "a value of this text becomes null: a tombstone" },
    "acks": { value: "all|1|0", fallback: "all", help: "what counts as delivered" },
    "compression": { value: "CODEC", fallback: "none", help: "none, gzip, snappy, lz4 or zstd" },
    "linger": { value: "MS", fallback: "5", help: "how long a batch waits for more" },
    "batch-bytes": {
      value: "N",
      fallback: "524288",
      help: "largest batch; one record may pass it",
    },
    "no-idempotence": { value: null, help: "a batch that is sent twice may be stored twice" },
    "verbose": { value: null, help: "ends with a table of what went where" },
  },
  run: produce,
};
