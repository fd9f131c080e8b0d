/** Readers over the wire: those that follow the tail, and those that start at the beginning, again and again. */
import { fetchApi } from "../../src/protocol/message/01_fetch.ts";
import { listOffsetsApi } from "../../src/protocol/message/02_list_offsets.ts";
import { type Random, randomInt } from "../../src/env/random.ts";
import { readRecords } from "../../src/protocol/record.ts";
import { isIntact, splitBatches } from "../../src/protocol/record_batch.ts";
import { OrderCheck, type PartitionBook, Violation } from "./book.ts";
import { Hangup, pause, type Soak, WireClient } from "./cluster.ts";
import { codecs, readPayload, type Told } from "./payload.ts";

const VERSION = 11;
const OUT_OF_RANGE = 1;
const EARLIEST = -2;
/** Not leader, storage. */
const AGAIN = new Set([5, 6, 7, 56]);
const TAIL_BYTES = 256 * 1024;
const COLD_BYTES = 1024 * 1024;
const PAUSE_MS = 100;

interface Row extends Told {
  readonly offset: number;
  readonly timestampMs: number;
  readonly isBase: boolean;
}

/** The records of an answer from `from` on; every batch with a right checksum. */
function rowsOf(bytes: Uint8Array, from: number, where: string): Row[] {
  const rows: Row[] = [];
  for (const batch of splitBatches(bytes)) {
    if (!isIntact(batch)) throw new Violation(`${where}: a batch with a wrong checksum`);
    let isBase = true;
    for (const record of readRecords(batch, codecs)) {
      const { offset, timestamp } = record;
      if (offset >= from) {
        rows.push({ ...readPayload(record), offset, timestampMs: timestamp, isBase });
      }
      isBase = false;
    }
  }
  return rows;
}

interface Part {
  readonly errorCode: number;
  readonly highWatermark: number;
  readonly logStartOffset: number;
  readonly records: Uint8Array | null;
}

async function fetchParts(
  client: WireClient,
  wanted: readonly { readonly book: PartitionBook; readonly from: number }[],
  { maxWaitMs, bytes }: { readonly maxWaitMs: number; readonly bytes: number },
): Promise<Map<PartitionBook, Part>> {
  const topics = new Map<
    string,
    { partition: number; fetchOffset: number; partitionMaxBytes: number }[]
  >();
  for (const { book, from } of wanted) {
    const list = topics.get(book.topic.name) ?? [];
    list.push({ partition: book.partition, fetchOffset: from, partitionMaxBytes: bytes });
    topics.set(book.topic.name, list);
  }
  const { responses } = await client.call(fetchApi, VERSION, {
    maxWaitMs,
    minBytes: 1,
    maxBytes: 16 * bytes,
    isolationLevel: 0,
    sessionId: 0,
    topics: [...topics].map(([topic, partitions]) => ({ topic, partitions })),
    forgottenTopicsData: [],
    rackId: "",
  });
  const parts = new Map<PartitionBook, Part>();
  for (const { topic, partitions } of responses) {
    for (const each of partitions) {
      const found = wanted.find(({ book }) =>
        book.topic.name === topic && book.partition === each.partitionIndex
      );
      if (found === undefined) continue;
      parts.set(found.book, {
        errorCode: each.errorCode,
        highWatermark: Number(each.highWatermark),
        logStartOffset: Number(each.logStartOffset ?? -1),
        records: each.records ?? null,
      });
    }
  }
  return parts;
}

async function earliest(client: WireClient, { topic, partition }: PartitionBook): Promise<number> {
  const answer = await client.call(listOffsetsApi, 2, {
    replicaId: -1,
    isolationLevel: 0,
    topics: [{
      name: topic.name,
      partitions: [{ partitionIndex: partition, timestamp: EARLIEST }],
    }],
  });
  const found = answer.topics[0]?.partitions[0];
  if (found === undefined || found.errorCode !== 0) throw new Hangup("no log start");
  return Number(found.offset);
}

// --- the tail ---------------------------------------------------------------------------------

/** Reads those books of the soak for which `index` is its own, as they come and go. */
export async function followTail(soak: Soak, index: number, readers: number): Promise<void> {
  const client = new WireClient(soak.address);
  while (soak.reading) {
    const mine = [...soak.books].filter(({ deleted, partition }) =>
      !deleted && partition % readers === index
    );
    if (mine.length === 0) {
      await pause(PAUSE_MS);
      continue;
    }
    try {
      const wanted = mine.map((book) => ({ book, from: book.tail }));
      const parts = await fetchParts(client, wanted, { maxWaitMs: 300, bytes: TAIL_BYTES });
      for (const [book, part] of parts) await takeTail(soak, client, book, part);
    } catch (error) {
      soak.guard(`tail reader ${index}`, error);
      await pause(PAUSE_MS);
    }
  }
  client.close();
}

async function takeTail(soak: Soak, client: WireClient, book: PartitionBook, part: Part) {
  if (book.deleted) return;
  try {
    if (part.errorCode === OUT_OF_RANGE) {
      const start = await earliest(client, book);
      if (start <= book.tail) {
        throw new Violation(
          `${book.name}: ${book.tail} is out of range, and the log starts at ${start}`,
        );
      }
      soak.count("tail readers behind retention");
      book.skipTo(start);
    } else if (part.errorCode !== 0) {
      soak.count(`fetch error ${part.errorCode}`);
      if (!AGAIN.has(part.errorCode)) throw new Violation(`${book.name}: error ${part.errorCode}`);
    } else {
      if (part.highWatermark < book.tail) {
        throw new Violation(
          `${book.name}: high watermark ${part.highWatermark} below ${book.tail}`,
        );
      }
      book.started(part.logStartOffset);
      for (const row of rowsOf(part.records ?? new Uint8Array(0), book.tail, book.name)) {
        book.read(row.offset, row, row.timestampMs, row.isBase);
        soak.count("records read at the tail");
      }
    }
  } catch (error) {
    if (!book.deleted) soak.guard("tail reader", error);
    // One report of a broken partition is enough; its place cannot be known any more.
    if (error instanceof Violation) book.deleted = true;
  }
}

// --- the whole log ----------------------------------------------------------------------------

export async function readCold(soak: Soak, name: string, random: Random): Promise<void> {
  const client = new WireClient(soak.address);
  while (soak.reading) {
    const live = [...soak.books].filter(({ deleted }) => !deleted);
    const book = live[randomInt(random, Math.max(1, live.length))];
    if (book === undefined) {
      await pause(PAUSE_MS);
      continue;
    }
    try {
      await readWhole(soak, client, book);
      soak.count("logs read from the beginning");
      // The clients of this process want a part of it too.
      await pause(randomInt(random, 2 * PAUSE_MS));
    } catch (error) {
      if (!book.deleted) soak.guard(name, error);
      await pause(PAUSE_MS);
    }
  }
  client.close();
}

/** From the log start to what was the high watermark at first; the bytes that were read. */
export async function readWhole(
  soak: Soak,
  client: WireClient,
  book: PartitionBook,
): Promise<number> {
  let at = await earliest(client, book);
  let order = new OrderCheck();
  let end: number | null = null;
  let bytes = 0;
  while (end === null || at < end) {
    const wanted = [{ book, from: at }];
    const part = (await fetchParts(client, wanted, { maxWaitMs: 0, bytes: COLD_BYTES })).get(book);
    if (book.deleted) return bytes;
    if (part === undefined) throw new Hangup("no such partition in the answer");
    if (part.errorCode === OUT_OF_RANGE) {
      const start = await earliest(client, book);
      if (start <= at) throw new Violation(`${book.name}: ${at} is out of range, start ${start}`);
      book.started(start);
      soak.count("cold readers behind retention");
      at = start;
      order = new OrderCheck();
      continue;
    }
    if (part.errorCode !== 0) {
      soak.count(`fetch error ${part.errorCode}`);
      if (!AGAIN.has(part.errorCode)) throw new Violation(`${book.name}: error ${part.errorCode}`);
      throw new Hangup(`error ${part.errorCode}`);
    }
    end ??= part.highWatermark;
    const records = part.records ?? new Uint8Array(0);
    bytes += records.length;
    for (const row of rowsOf(records, at, book.name)) {
      if (row.offset !== at) {
        throw new Violation(`${book.name}: ${row.offset} where ${at} must follow`);
      }
      order.take(row);
      book.compare(row.offset, row);
      at = row.offset + 1;
      soak.count("records read cold");
    }
    if (records.length === 0 && at < end) throw new Hangup("nothing yet");
  }
  return bytes;
}
