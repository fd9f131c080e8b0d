/** A reader over HTTP: pages and long polls, as JSON and as lines, and single records. Judged like one over TCP. */
import { type Random, randomInt } from "../../../src/env/random.ts";
import { checkContiguous } from "../checker/contiguous.ts";
import { checkWatermark } from "../checker/high_watermark.ts";
import { type PartitionHistory, watermarkSeen } from "../checker/history.ts";
import { type HttpAnswer, HttpClient } from "../http_client.ts";
import { NoAnswer } from "../kafka_client.ts";
import { chance, pick } from "../world.ts";
import { type Context, pauseOf } from "./context.ts";
import { TRY_AGAIN } from "./http_producer.ts";

const TIMEOUT_MS = 20_000;

interface Page {
  readonly records: readonly {
    readonly offset: number;
    readonly value: string;
    readonly timestamp: number;
  }[];
  readonly next: number;
  readonly highWatermark: number;
  readonly logStart: number;
}

function pageOf({ headers, text }: HttpAnswer, isLines: boolean): Page {
  if (!isLines) return JSON.parse(text) as Page;
  const lines = text.split("\n").filter((line) => line !== "");
  return {
    records: lines.map((line) => JSON.parse(line) as Page["records"][number]),
    next: Number(headers.get("kafka-next-offset")),
    highWatermark: Number(headers.get("kafka-high-watermark")),
    logStart: Number(headers.get("kafka-log-start")),
  };
}

export class HttpReader {
  readonly #context: Context;
  readonly #name: string;
  readonly #random: Random;
  readonly #client: HttpClient;

  constructor(context: Context, name: string) {
    this.#context = context;
    this.#name = name;
    this.#random = context.world.random(name);
    this.#client = new HttpClient(context.world, context.cluster, name);
  }

  async run(pauseMs: number): Promise<void> {
    while (!this.#context.over) {
      await this.#context.world.sleep(pauseOf(this.#context, this.#random, pauseMs));
      await this.#follow(randomInt(this.#random, this.#context.steady.partitions));
    }
  }

  /** A few pages from some offset on. */
  async #follow(partition: number): Promise<void> {
    const { history, steady, world } = this.#context;
    const seen = watermarkSeen(history.of(steady.topicId, partition), Infinity);
    let offset = pick(this.#random, [0, seen, randomInt(this.#random, seen + 1)]);
    for (let i = 0; i < 5 && !this.#context.over; i++) {
      try {
        const next = await this.#page(partition, offset);
        if (next === null) return;
        offset = next;
      } catch (error) {
        if (!(error instanceof NoAnswer)) throw error;
        await world.sleep(200);
      }
    }
  }

  /** The offset that follows; null to turn away. Throws NoAnswer. */
  async #page(partition: number, offset: number): Promise<number | null> {
    const { history, steady, world } = this.#context;
    const past = history.of(steady.topicId, partition);
    const seen = new Map(past.watermarks);
    const isLines = chance(this.#random, 0.3);
    const limit = pick(this.#random, [1, 7, 500]);
    const wait = pick(this.#random, [0, 0, 800]);
    const path = `/v1/topics/${steady.name}/partitions/${partition}/records` +
      `?offset=${offset}&limit=${limit}&wait=${wait}`;
    const headers = { accept: isLines ? "application/x-ndjson" : "application/json" };
    const answer = await this.#client.call({ method: "GET", path, headers }, TIMEOUT_MS);
    if (answer.status !== 200) return this.#refused(answer, offset);
    const page = pageOf(answer, isLines);
    const { records, next, highWatermark: watermark } = page;
    const seenBefore = watermarkSeen({ ...past, watermarks: seen }, answer.by);
    checkWatermark(world, past, { watermark, by: answer.by, seenBefore });
    checkContiguous(world, past, offset, watermark, records);
    const after = (records.at(-1)?.offset ?? offset - 1) + 1;
    if (records.length > limit || next !== after || (records[0]?.offset ?? offset) !== offset) {
      world.violated(`${this.#name}: ${records.length} records from ${offset}, next is ${next}`);
    }
    this.#learn(past, page, answer.by);
    return next;
  }

  #learn(past: PartitionHistory, { records }: Page, by: number): void {
    const { history } = this.#context;
    for (const { offset, value, timestamp } of records) {
      history.know(past, offset, value, `read over HTTP from epoch ${by}`);
      history.date(past, offset, timestamp);
    }
  }

  #refused({ status, text, by }: HttpAnswer, offset: number): null {
    const { cluster, world } = this.#context;
    const isBehind = status === 416 && cluster.isReplaced(by);
    if (!isBehind && !TRY_AGAIN.includes(status)) {
      world.violated(`${this.#name} asks for ${offset}, is answered ${status}: ${text}`);
    }
    return null;
  }
}
