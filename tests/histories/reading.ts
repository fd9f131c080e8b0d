/** Readers over the wire: at the tail and from the beginning, of everything and of what is committed. */
import { randomInt } from "../../src/env/random.ts";
import { errorName } from "../../src/protocol/error_code.ts";
import { fetchApi } from "../../src/protocol/message/01_fetch.ts";
import {
  isControlBatch,
  isIntact,
  isTransactionalBatch,
  splitBatches,
} from "../../src/protocol/record_batch.ts";
import { batchesOf, textOf } from "../quirks/quirks.ts";
import { Hangup, pause, WireClient } from "../soak/cluster.ts";
import type { Isolation, ReadResult, Row } from "./history.ts";
import { partitionName, type Place, type World } from "./world.ts";

const VERSION = 11;
const BYTES = 64 * 1024;
const PASS_PAUSE_MS = 1_500;
const AGAIN = new Set([
  "NOT_LEADER_OR_FOLLOWER",
  "LEADER_NOT_AVAILABLE",
  "KAFKA_STORAGE_ERROR",
  "UNKNOWN_TOPIC_OR_PARTITION",
]);

interface AbortedEntry {
  readonly producerId: number;
  readonly firstOffset: number;
}

/** What a consumer shows of an answer: no markers, and nothing of the transactions that are listed as aborted. */
function shown(
  bytes: Uint8Array,
  from: number,
  abortedEntries: readonly AbortedEntry[],
): { readonly rows: Row[]; readonly next: number } {
  const aborted = abortedEntries.toSorted((a, b) => a.firstOffset - b.firstOffset);
  const skipped = new Set<number>();
  const rows: Row[] = [];
  let next = from;
  for (const one of batchesOf(bytes)) {
    const last = one.baseOffset + one.lastOffsetDelta;
    while (aborted[0] !== undefined && aborted[0].firstOffset <= last) {
      skipped.add(aborted.shift()!.producerId);
    }
    if (isControlBatch(one)) skipped.delete(one.producerId);
    else if (!isTransactionalBatch(one) || !skipped.has(one.producerId)) {
      for (const { offset, value } of one.records) {
        if (offset >= from) rows.push([offset, textOf(value) ?? ""]);
      }
    }
    next = last + 1;
  }
  return { rows, next };
}

export class Reader {
  readonly #world: World;
  readonly #wire: WireClient;
  readonly #name: string;
  readonly #isolation: Isolation;

  constructor(world: World, name: string, isolation: Isolation) {
    this.#world = world;
    this.#wire = new WireClient(world.soak.address);
    this.#name = name;
    this.#isolation = isolation;
  }

  /** One request for all places; those that were answered with an error are not in the result. */
  async read(
    wanted: readonly { readonly place: Place; readonly from: number }[],
    { maxWaitMs }: { readonly maxWaitMs: number },
  ): Promise<Map<string, Required<ReadResult>>> {
    const { history, soak } = this.#world;
    const ops = wanted.map(({ place: { topic, partition }, from }) =>
      history.invoke({
        f: "read",
        reader: this.#name,
        partition: partitionName(topic, partition),
        isolation: this.#isolation,
        from,
      })
    );
    const { responses } = await this.#wire.call(fetchApi, VERSION, {
      maxWaitMs,
      minBytes: 1,
      maxBytes: 4 * BYTES,
      isolationLevel: this.#isolation === "committed" ? 1 : 0,
      sessionId: 0,
      topics: wanted.map(({ place, from }) => ({
        topic: place.topic,
        partitions: [{
          partition: place.partition,
          fetchOffset: from,
          partitionMaxBytes: BYTES,
        }],
      })),
      forgottenTopicsData: [],
      rackId: "",
    });
    const found = new Map<string, Required<ReadResult>>();
    for (const [i, { place, from }] of wanted.entries()) {
      const answer = responses.filter(({ topic }) => topic === place.topic)
        .flatMap(({ partitions }) => partitions)
        .find(({ partitionIndex }) => partitionIndex === place.partition);
      const name = partitionName(place.topic, place.partition);
      const error = answer === undefined ? "no answer" : errorName(answer.errorCode);
      if (answer === undefined || error !== "NONE") {
        if (!AGAIN.has(error)) soak.violation(`${this.#name}: ${name}: ${error} at ${from}`);
        continue;
      }
      const bytes = answer.records ?? new Uint8Array(0);
      if (!splitBatches(bytes).every(isIntact)) {
        soak.violation(`${this.#name}: ${name}: a batch with a wrong checksum behind ${from}`);
      }
      const aborted = (answer.abortedTransactions ?? []).map(({ producerId, firstOffset }) => ({
        producerId: Number(producerId),
        firstOffset: Number(firstOffset),
      }));
      const result = {
        ...shown(bytes, from, aborted),
        highWatermark: Number(answer.highWatermark),
        lastStableOffset: Number(answer.lastStableOffset),
      };
      history.ok(ops[i]!, result);
      found.set(name, result);
    }
    return found;
  }

  close(): void {
    this.#wire.close();
  }
}

async function whileReading(world: World, name: string, step: () => Promise<void>): Promise<void> {
  while (world.soak.reading) {
    try {
      await step();
    } catch (error) {
      if (!(error instanceof Hangup)) world.soak.guard(name, error);
      await pause(50);
    }
  }
}

export async function readTail(
  world: World,
  isolation: Isolation,
  places: readonly Place[],
): Promise<void> {
  const reader = new Reader(world, `tail ${isolation}`, isolation);
  const at = new Map<string, number>();
  await whileReading(world, "tail", async () => {
    const wanted = places.map((place) => ({
      place,
      from: at.get(partitionName(place.topic, place.partition)) ?? 0,
    }));
    const found = await reader.read(wanted, { maxWaitMs: 200 });
    found.forEach(({ next }, name) => at.set(name, next));
    await pause(found.size === places.length ? 20 : 50);
  });
  reader.close();
}

export async function readAgain(
  world: World,
  isolation: Isolation,
  places: readonly Place[],
): Promise<void> {
  const reader = new Reader(world, `again ${isolation}`, isolation);
  await whileReading(world, "again", async () => {
    const place = places[randomInt(world.random, places.length)]!;
    await readWhole(reader, place);
    await pause(randomInt(world.random, PASS_PAUSE_MS));
  });
  reader.close();
}

export interface Whole extends Required<ReadResult> {
  readonly rows: readonly Row[];
}

/** From the beginning to where a reader of this isolation comes to. */
export async function readWhole(reader: Reader, place: Place): Promise<Whole> {
  const rows: Row[] = [];
  const name = partitionName(place.topic, place.partition);
  for (let from = 0;;) {
    const part = (await reader.read([{ place, from }], { maxWaitMs: 0 })).get(name);
    if (part === undefined) throw new Hangup(`no answer for ${name}`);
    rows.push(...part.rows);
    if (part.next === from) return { ...part, rows };
    from = part.next;
  }
}
