/** Topics that are made and deleted, also while they are written and read. */
import { createTopicsApi } from "../../src/protocol/message/19_create_topics.ts";
import { deleteTopicsApi } from "../../src/protocol/message/20_delete_topics.ts";
import { type Random, randomInt } from "../../src/env/random.ts";
import { PartitionBook } from "./book.ts";
import { Hangup, pause, type Soak, WireClient } from "./cluster.ts";
import { PASSING_TOPICS, passingPlan, type TopicPlan } from "./settings.ts";
import { Writer } from "./writer.ts";

const TIMEOUT_MS = 10_000;
const EXISTS = 36;
const UNKNOWN_TOPIC = 3;
/** Timed out, no controller. */
const AGAIN = new Set([7, 41]);
const PAUSE_MS = 200;

/** Repeats a request until it is answered; from the second attempt on it may have been done already. */
async function untilDone(
  soak: Soak,
  what: string,
  already: number,
  ask: () => Promise<number | undefined>,
): Promise<void> {
  for (let attempt = 1;; attempt++) {
    try {
      const code = await ask();
      if (code === 0 || (code === already && attempt > 1)) return;
      if (code === undefined || !AGAIN.has(code)) {
        return soak.violation(`${what}: error ${code} at attempt ${attempt}`);
      }
    } catch (error) {
      if (!(error instanceof Hangup)) throw error;
    }
    await pause(PAUSE_MS);
  }
}

export async function createTopic(soak: Soak, client: WireClient, plan: TopicPlan) {
  const { name, partitions, configs } = plan;
  const topic = {
    name,
    numPartitions: partitions,
    replicationFactor: 1,
    assignments: [],
    configs: Object.entries(configs).map(([key, value]) => ({ name: key, value })),
  };
  await untilDone(soak, `create ${name}`, EXISTS, async () => {
    const request = { topics: [topic], timeoutMs: TIMEOUT_MS, validateOnly: false };
    return (await client.call(createTopicsApi, 4, request)).topics[0]?.errorCode;
  });
  soak.count("topics created");
  const books = Array.from({ length: partitions }, (_, i) => new PartitionBook(plan, i));
  for (const book of books) soak.books.add(book);
  return books;
}

async function deleteTopic(soak: Soak, client: WireClient, books: readonly PartitionBook[]) {
  const { name } = books[0]!.topic;
  for (const book of books) {
    book.deleted = true;
    soak.books.delete(book);
  }
  await untilDone(soak, `delete ${name}`, UNKNOWN_TOPIC, async () => {
    const request = { topicNames: [name], timeoutMs: TIMEOUT_MS };
    return (await client.call(deleteTopicsApi, 3, request)).responses[0]?.errorCode;
  });
  soak.count("topics deleted");
}

interface Passing {
  readonly name: string;
  readonly books: readonly PartitionBook[];
  readonly writer: Writer;
}

export interface PassingOptions {
  readonly random: Random;
  readonly everyMs: number;
  readonly pauseMs: () => number;
}

/** Replaces the oldest topic every now and then; some names come back. */
export async function passTopics(soak: Soak, options: PassingOptions): Promise<void> {
  const { random, everyMs, pauseMs } = options;
  const client = new WireClient(soak.address);
  const alive: Passing[] = [];
  let made = 0;
  const make = async (name: string) => {
    made += 1;
    const books = await createTopic(soak, client, passingPlan(name));
    const writer = new Writer(soak, {
      name: `once-${name}-${made}`,
      books,
      idempotent: true,
      random,
      pauseMs,
      recordsMax: 10,
    });
    alive.push({ name, books, writer });
  };
  while (alive.length < PASSING_TOPICS) await make(`passing-${made}`);
  while (soak.writing) {
    for (let left = everyMs; left > 0 && soak.writing; left -= PAUSE_MS) await pause(PAUSE_MS);
    if (!soak.writing) break;
    const { name, books, writer } = alive.shift()!;
    const again = randomInt(random, 3) === 0;
    // A late request would be one to the new topic of the same name.
    if (again || randomInt(random, 2) === 0) await writer.stop();
    await deleteTopic(soak, client, books);
    await writer.stop();
    await make(again ? name : `passing-${made}`);
  }
  await Promise.all(alive.map(({ writer }) => writer.done));
  client.close();
}
