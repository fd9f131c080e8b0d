/**
 * A producer over the wire, with its own sequence in each of its partitions. Idempotent ones have up to
 * five requests under way, and after a lost connection send again what was not acknowledged, in order.
 */
import { initProducerIdApi } from "../../src/protocol/message/22_init_producer_id.ts";
import { produceApi } from "../../src/protocol/message/00_produce.ts";
import { type Random, randomInt } from "../../src/env/random.ts";
import type { PartitionBook } from "./book.ts";
import { pause, type Soak, WireClient } from "./cluster.ts";
import { batchOf } from "./payload.ts";

const VERSION = 9;
const PRODUCE_TIMEOUT_MS = 10_000;
const DUPLICATE = 46;
/** Not leader, timed out, no coordinator, too few replicas (twice), storage: all of them mean "again". */
const AGAIN = new Set([5, 6, 7, 14, 15, 16, 19, 20, 56]);
const UNKNOWN_TOPIC = 3;
const RETRY_PAUSE_MS = 100;
const PARTITIONS_PER_REQUEST_MAX = 12;

interface Batch {
  readonly book: PartitionBook;
  readonly sequence: number;
  readonly count: number;
  readonly records: Uint8Array;
}

/** The batches of one request that are not acknowledged yet. */
type Request = Batch[];

export interface WriterOptions {
  readonly name: string;
  readonly books: readonly PartitionBook[];
  readonly idempotent: boolean;
  readonly random: Random;
  /** Time between two requests, as it is at the moment. */
  readonly pauseMs: () => number;
  readonly recordsMax: number;
}

export class Writer {
  readonly #soak: Soak;
  readonly #options: WriterOptions;
  readonly #client: WireClient;
  readonly #next = new Map<PartitionBook, number>();
  #waiting: Request[] = [];
  #producerId = -1;
  #stopped = false;
  readonly done: Promise<void>;

  constructor(soak: Soak, options: WriterOptions) {
    this.#soak = soak;
    this.#options = options;
    this.#client = new WireClient(soak.address);
    this.done = this.#run().finally(() => this.#client.close());
  }

  /** Ends once all that was sent is acknowledged, or its topics are gone. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await this.done;
  }

  get #ending(): boolean {
    return this.#stopped || !this.#soak.writing;
  }

  async #run(): Promise<void> {
    while (!this.#ending || this.#waiting.length > 0) {
      try {
        await this.#session();
      } catch (error) {
        this.#soak.guard(this.#options.name, error);
      }
      this.#client.close();
      this.#forgetDeleted();
      if (this.#live().length === 0) return;
      await pause(RETRY_PAUSE_MS);
    }
  }

  #live(): PartitionBook[] {
    return this.#options.books.filter(({ deleted }) => !deleted);
  }

  #forgetDeleted(): void {
    this.#waiting = this.#waiting.map((request) => request.filter(({ book }) => !book.deleted))
      .filter((request) => request.length > 0);
  }

  /** One connection: first what is left of the last one, then new requests. */
  async #session(): Promise<void> {
    const { idempotent, random, pauseMs } = this.#options;
    if (idempotent && this.#producerId < 0 && !await this.#init()) return;
    const depth = idempotent ? 5 : 1;
    const again = this.#waiting.length;
    if (again > 0) this.#soak.count("requests sent again", again);
    let underWay = 0;
    for (;;) {
      const wanted = Math.max(1, Math.min(depth, 1 + randomInt(random, depth)));
      while (underWay < wanted) {
        const request = this.#waiting[underWay] ?? this.#newRequest();
        if (request === null) break;
        await this.#send(request);
        underWay += 1;
      }
      if (underWay === 0) return;
      if (!await this.#receive()) return;
      underWay -= 1;
      if (underWay === 0 && !this.#ending) await pause(pauseMs());
    }
  }

  async #init(): Promise<boolean> {
    const request = { transactionalId: null, transactionTimeoutMs: 60_000 };
    const answer = await this.#client.call(initProducerIdApi, 2, request);
    if (answer.errorCode !== 0) return false;
    this.#producerId = Number(answer.producerId);
    return true;
  }

  #newRequest(): Request | null {
    const live = this.#live();
    if (this.#ending || live.length === 0) return null;
    const { random, name, recordsMax } = this.#options;
    const from = randomInt(random, live.length);
    const size = Math.min(live.length, 1 + randomInt(random, PARTITIONS_PER_REQUEST_MAX));
    const request = Array.from({ length: size }, (_, i): Batch => {
      const book = live[(from + i) % live.length]!;
      const sequence = this.#next.get(book) ?? 0;
      const count = 1 + randomInt(random, recordsMax);
      this.#next.set(book, sequence + count);
      const producerId = this.#producerId;
      return {
        book,
        sequence,
        count,
        records: batchOf({ writer: name, sequence, count, producerId }),
      };
    });
    this.#waiting.push(request);
    return request;
  }

  async #send(request: Request): Promise<void> {
    const topics = new Map<string, { index: number; records: Uint8Array }[]>();
    for (const { book, records } of request) {
      const list = topics.get(book.topic.name) ?? [];
      list.push({ index: book.partition, records });
      topics.set(book.topic.name, list);
    }
    await this.#client.send(produceApi, VERSION, {
      transactionalId: null,
      acks: -1,
      timeoutMs: PRODUCE_TIMEOUT_MS,
      topicData: [...topics].map(([name, partitionData]) => ({ name, partitionData })),
    });
  }

  /** False when something of the oldest request has to go out again. */
  async #receive(): Promise<boolean> {
    const { responses } = await this.#client.receive(produceApi, VERSION);
    const request = this.#waiting[0]!;
    const left: Batch[] = [];
    for (const batch of request) {
      const answer = responses.find(({ name }) => name === batch.book.topic.name)
        ?.partitionResponses.find(({ index }) => index === batch.book.partition);
      if (answer === undefined || !this.#take(batch, answer.errorCode, Number(answer.baseOffset))) {
        left.push(batch);
      }
    }
    if (left.length === 0) this.#waiting.shift();
    else this.#waiting[0] = left;
    return left.length === 0;
  }

  #take({ book, sequence, count, records }: Batch, errorCode: number, offset: number): boolean {
    const { name } = this.#options;
    if (errorCode === 0 || errorCode === DUPLICATE) {
      this.#soak.count("records acknowledged", count);
      this.#soak.count("bytes acknowledged", records.length);
      try {
        book.answered(errorCode === 0 ? offset : -1, { writer: name, sequence }, count);
      } catch (error) {
        this.#soak.guard(name, error);
      }
      return true;
    }
    this.#soak.count(`produce error ${errorCode}`);
    if (AGAIN.has(errorCode) || book.deleted) return false;
    if (errorCode === UNKNOWN_TOPIC && book.topic.name.startsWith("passing")) return false;
    this.#soak.violation(`${name} got error ${errorCode} for ${book.name}, sequence ${sequence}`);
    return false;
  }
}
