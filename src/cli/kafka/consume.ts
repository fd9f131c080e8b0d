/** `skerry consume`: records of a topic to standard output, alone or as a member of a group. */
import { concatBytes } from "../../lib/bytes.ts";
import type { BatchRecord } from "../../protocol/record.ts";
import { CLIENT_EXIT } from "../client/fault.ts";
import { boundsOf, partitionsOf, type Place, placeIn } from "../client/place.ts";
import { Reader, type RecordSink } from "../client/reader.ts";
import { PLACE_FORMS } from "../client/place.ts";
import type { Call, Command } from "./command.ts";
import { consumeInGroup } from "./consume_group.ts";
import type { Io } from "./io.ts";
import { Progress } from "./progress.ts";
import { type Format, FORMATS, type RecordFormat, recordFormat } from "./record_format.ts";
import { separatorOf, WordFault, type Words } from "./syntax.ts";

/** Written in pieces of at least this much, and at the end of a round. */
const PIECE_BYTES = 64 * 1024;

export interface ConsumeOptions {
  readonly topic: string;
  readonly from: Place;
  readonly committed: boolean;
  readonly untilEnd: boolean;
}

/** Counts, formats and writes. */
export class Printed implements RecordSink {
  readonly #io: Io;
  readonly #format: RecordFormat;
  readonly #countMax: number;
  readonly #progress: Progress;
  #waiting: Uint8Array[] = [];
  #waitingBytes = 0;
  #records = 0;
  #bytes = 0;

  constructor(io: Io, format: RecordFormat, countMax: number) {
    this.#io = io;
    this.#format = format;
    this.#countMax = countMax;
    this.#progress = new Progress(io, !process.stdout.isTTY);
  }

  get hasEnough(): boolean {
    return this.#records >= this.#countMax;
  }

  get isFull(): boolean {
    return this.#waitingBytes >= PIECE_BYTES;
  }

  take(partition: number, record: BatchRecord): void {
    this.#format(partition, record, (bytes) => {
      this.#waiting.push(bytes);
      this.#waitingBytes += bytes.length;
    });
    this.#records += 1;
  }

  async drain(): Promise<void> {
    const pieces = this.#waiting;
    if (pieces.length === 0) return;
    this.#waiting = [];
    this.#bytes += this.#waitingBytes;
    this.#waitingBytes = 0;
    this.#progress.update(this.#records, this.#bytes);
    await this.#io.write(concatBytes(pieces));
  }

  end(): void {
    this.#progress.end();
  }
}

function formatOf(words: Words): Format {
  const format = words.oneOf("format", FORMATS);
  return words.json ? "json" : format;
}

function check(words: Words): void {
  if (words.text("group") === null) return;
  if (words.isOn("partition")) {
    throw new WordFault("--partition: the members of a --group share all partitions");
  }
  if (words.text("group") === "") throw new WordFault("--group: it is empty");
}

async function consumeAlone(
  { words, cluster, io }: Call,
  { topic, from, committed, untilEnd }: ConsumeOptions,
  sink: Printed,
  stop: AbortSignal,
): Promise<void> {
  const given = words.partitions("partition");
  const view = await cluster.retrying((leftMs) => cluster.topic(topic, { leftMs }));
  const numbers = partitionsOf(view, given);
  const starts = await placeIn(cluster, topic, numbers, from, { committed });
  const bounds = untilEnd ? await boundsOf(cluster, topic, numbers, { committed }) : null;
  const positions = numbers.map((partition) => ({
    partition,
    offset: starts.get(partition)!,
    end: bounds?.get(partition)?.end ?? null,
  }));
  const { env, note: warn } = io;
  await new Reader({ cluster, env, topic, committed, positions, sink, warn, stop }).run();
}

async function consume(call: Call): Promise<number> {
  const { words, io } = call;
  check(words);
  const options: ConsumeOptions = {
    topic: words.operands[0]!,
    from: words.place("from"),
    committed:
      words.oneOf("isolation", ["read_uncommitted", "read_committed"]) === "read_committed",
    untilEnd: words.isOn("until-end"),
  };
  const format = recordFormat({
    format: formatOf(words),
    topic: options.topic,
    separator: separatorOf(words.required("key-separator")),
  });
  const count = words.integer("count", 1, Number.MAX_SAFE_INTEGER) ?? Infinity;
  const sink = new Printed(io, format, count);
  const group = words.text("group");
  const stop = io.untilStop();
  try {
    if (group === null) await consumeAlone(call, options, sink, stop);
    else await consumeInGroup(call, { ...options, group }, sink, stop);
  } finally {
    sink.end();
  }
  return CLIENT_EXIT.ok;
}

export const CONSUME: Command = {
  name: "consume",
  operands: "TOPIC",
  operandsMin: 1,
  operandsMax: 1,
  help: "Prints records as they come, without end unless told. Ctrl-C ends; in a group it commits.",
  options: {
    "from": { value: "PLACE", fallback: "earliest", help: PLACE_FORMS },
    "partition": { value: "N,...", repeats: true, help: "only these; default: all" },
    "count": { value: "N", help: "ends after so many records" },
    "until-end": { value: null, help: "ends where the topic ended when it began" },
    "group": {
      value: "GROUP",
      short: "g",
      help: "goes on where the group was, shares with its members, commits; --from if it is new",
    },
    "isolation": {
      value: "LEVEL",
      fallback: "read_uncommitted",
      help: "read_committed leaves out open and aborted transactions",
    },
    "format": { value: FORMATS.join("|"), fallback: "value", help: "--json is --format json" },
    "key-separator": { value: "TEXT", short: "k", fallback: "\\t", help: "of --format key-value" },
  },
  run: consume,
};
