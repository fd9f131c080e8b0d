/**
 * Real clients: consumer groups of kafkajs and @platformatic/kafka, whose members come and go, and an
 * idempotent producer of each. A group passes over no record, and may see some twice.
 */
import { Consumer, ProduceAcks, Producer } from "@platformatic/kafka";
import type { Kafka } from "kafkajs";
import { type Random, randomInt } from "../../src/env/random.ts";
import { kafkajsAt } from "../support/clients.ts";
import type { PartitionBook } from "./book.ts";
import { pause, type Soak } from "./cluster.ts";
import { payloadOf, readPayload } from "./payload.ts";
import { GROUPED } from "./settings.ts";

const SESSION_MS = 10_000;
const STEP_MS = 200;
const FOR_EVER = 1_000_000;

/** What a group has seen of each partition, whichever member it was. */
export class GroupBook {
  readonly name: string;
  readonly next = new Map<number, number>();
  #seen = 0;
  #repeated = 0;

  constructor(name: string) {
    this.name = name;
  }

  get seen(): number {
    return this.#seen;
  }
  get repeated(): number {
    return this.#repeated;
  }

  take(
    soak: Soak,
    partition: number,
    offset: number,
    key: Uint8Array | null,
    value: Uint8Array | null,
  ) {
    const next = this.next.get(partition) ?? 0;
    this.#seen += 1;
    if (offset < next) this.#repeated += 1;
    if (offset > next) {
      soak.violation(`${this.name}: partition ${partition} goes from ${next} to ${offset}`);
    }
    this.next.set(partition, Math.max(next, offset + 1));
    try {
      readPayload({ key, value });
    } catch (error) {
      soak.violation(`${this.name}: partition ${partition} offset ${offset}: ${String(error)}`);
    }
  }

  /** What it has not reached yet. */
  missing(books: readonly PartitionBook[]): string[] {
    return books.filter(({ partition, tail }) => (this.next.get(partition) ?? 0) < tail)
      .map(({ name, partition, tail }) => `${name}: ${this.next.get(partition) ?? 0} of ${tail}`);
  }
}

function kafkaOf(address: string): Kafka {
  const retry = { maxRetryTime: 1_000, retries: FOR_EVER };
  return kafkajsAt(address, { clientId: "soak", requestTimeout: 15_000, retry });
}

/**
 * One member of the group of kafkajs for about `lifeMs`, or until it crashes: its own restarts would go on
 * after it was disconnected, as a member that nobody sees.
 */
async function kafkajsMember(soak: Soak, book: GroupBook, lifeMs: number): Promise<void> {
  const consumer = kafkaOf(soak.address).consumer({
    groupId: book.name,
    sessionTimeout: SESSION_MS,
    rebalanceTimeout: SESSION_MS,
    // It heartbeats between its fetches only.
    heartbeatInterval: 300,
    maxWaitTimeInMs: 300,
  });
  let crashed = false;
  consumer.on("consumer.crash", () => void (crashed = true));
  await consumer.connect();
  await consumer.subscribe({ topic: GROUPED.name, fromBeginning: true });
  await consumer.run({
    autoCommitInterval: 1_000,
    eachMessage: ({ partition, message }) => {
      book.take(soak, partition, Number(message.offset), message.key, message.value);
      return Promise.resolve();
    },
  });
  for (let ms = 0; ms < lifeMs && soak.reading && !crashed; ms += STEP_MS) await pause(STEP_MS);
  await consumer.disconnect();
  soak.count(crashed ? "group members that crashed" : "group members that left");
}

export async function kafkajsGroup(soak: Soak, book: GroupBook, random: Random): Promise<void> {
  const member = async () => {
    while (soak.reading) {
      await kafkajsMember(soak, book, 15_000 + randomInt(random, 45_000)).catch(
        (error: unknown) => {
          soak.count(`kafkajs: ${error instanceof Error ? error.name : "error"}`);
        },
      );
    }
  };
  await Promise.all([member(), member()]);
}

export async function platformaticGroup(soak: Soak, book: GroupBook): Promise<void> {
  while (soak.reading) {
    await platformaticMember(soak, book).catch((error: unknown) => {
      soak.count(`platformatic: ${error instanceof Error ? error.name : "error"}`);
      return pause(1_000);
    });
  }
}

async function platformaticMember(soak: Soak, book: GroupBook): Promise<void> {
  const consumer = new Consumer({
    clientId: "soak",
    bootstrapBrokers: [soak.address],
    groupId: book.name,
    retries: 20,
    retryDelay: 500,
    sessionTimeout: SESSION_MS,
    heartbeatInterval: 1_000,
  });
  try {
    const stream = await consumer.consume({
      topics: [GROUPED.name],
      mode: "committed",
      fallbackMode: "earliest",
      autocommit: 1_000,
      maxWaitTime: 300,
    });
    const ended = setInterval(() => {
      if (!soak.reading) void stream.close().catch(() => {});
    }, STEP_MS);
    try {
      for await (const { partition, offset, key, value } of stream) {
        book.take(soak, partition, Number(offset), key ?? null, value ?? null);
      }
    } finally {
      clearInterval(ended);
    }
  } finally {
    await consumer.close(true).catch(() => {});
  }
}

/** Numbered records, one request after the other; what fails is sent again as the client's own retries do. */
export async function kafkajsWriter(
  soak: Soak,
  books: readonly PartitionBook[],
  pauseMs: () => number,
) {
  const name = "once-kafkajs";
  const producer = kafkaOf(soak.address).producer({ idempotent: true, maxInFlightRequests: 1 });
  await producer.connect();
  const next = books.map(() => 0);
  for (let i = 0; soak.writing; i++) {
    const book = books[i % books.length]!;
    const sequence = next[i % books.length]!;
    const message = { key: name, value: payloadOf(name, sequence), partition: book.partition };
    const [answer] = await producer.send({ topic: GROUPED.name, acks: -1, messages: [message] });
    next[i % books.length] = sequence + 1;
    book.answered(Number(answer?.baseOffset ?? -1), { writer: name, sequence }, 1);
    soak.count("records acknowledged by kafkajs");
    await pause(pauseMs());
  }
  await producer.disconnect();
}

/** Plain, since a producer that gave up cannot know what it may repeat. */
export async function platformaticWriter(
  soak: Soak,
  books: readonly PartitionBook[],
  pauseMs: () => number,
) {
  const name = "plain-platformatic";
  const producer = new Producer({
    clientId: "soak",
    bootstrapBrokers: [soak.address],
    retries: 5,
    retryDelay: 300,
  });
  const next = books.map(() => 0);
  for (let i = 0; soak.writing; i++) {
    const book = books[i % books.length]!;
    const sequence = next[i % books.length]!;
    const { partition } = book;
    const message = {
      topic: GROUPED.name,
      partition,
      key: Buffer.from(name),
      value: payloadOf(name, sequence),
    };
    for (let done = false; !done;) {
      done = await producer.send({ acks: ProduceAcks.ALL, messages: [message] }).then(
        ({ offsets }) => {
          const offset = Number(
            offsets?.find((each) => each.partition === partition)?.offset ?? -1,
          );
          book.answered(offset, { writer: name, sequence }, 1);
          return true;
        },
        () => pause(200).then(() => false),
      );
    }
    next[i % books.length] = sequence + 1;
    soak.count("records acknowledged by platformatic");
    await pause(pauseMs());
  }
  await producer.close();
}
