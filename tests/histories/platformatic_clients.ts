/** @platformatic/kafka, unmodified: idempotent and transactional producers, and a reader. */
import {
  Consumer,
  ProduceAcks,
  Producer,
  stringDeserializers,
  stringSerializers,
} from "@platformatic/kafka";
import { randomInt } from "../../src/env/random.ts";
import { pause } from "../soak/cluster.ts";
import { platformaticAt } from "../support/clients.ts";
import {
  breathe,
  LOG,
  messageOf,
  partitionName,
  sessions,
  type Topic,
  valueOf,
  type World,
} from "./world.ts";

const RECORDS_MAX = 4;
const SENDS_MAX = 3;
const SESSION_MS = 10_000;
/** Also the time-out of its transactions. */
const TIMEOUT_MS = 4_000;
const COMMITTED = 0.65;
const ABORTED = 0.2;
const STEP_MS = 100;

type Sender = Pick<Producer<string, string, string, string>, "send">;

function producerOf({ soak }: World, transactionalId?: string) {
  return new Producer({
    ...platformaticAt(soak.address, "histories"),
    serializers: stringSerializers,
    idempotent: true,
    timeout: TIMEOUT_MS,
    ...(transactionalId === undefined ? {} : { transactionalId }),
  });
}

async function send(
  { history }: World,
  sender: Sender,
  { producer, topic, partition, values, txn }: {
    readonly producer: string;
    readonly topic: string;
    readonly partition: number;
    readonly values: readonly string[];
    readonly txn: string | null;
  },
): Promise<void> {
  const place = partitionName(topic, partition);
  const op = history.invoke({ f: "produce", producer, partition: place, values, txn });
  try {
    const messages = values.map((value) => ({ topic, partition, value }));
    const { offsets } = await sender.send({ acks: ProduceAcks.ALL, messages });
    history.ok(op, { offset: Number(offsets?.[0]?.offset ?? -1) });
  } catch (error) {
    history.failed(op, messageOf(error), false);
    throw error;
  }
}

export async function platformaticIdempotent(
  world: World,
  name: string,
  topic: Topic,
): Promise<void> {
  const { soak, random } = world;
  let written = 0;
  await sessions(world, { name, goesOn: () => soak.writing }, async (number) => {
    const producer = producerOf(world);
    try {
      for (let i = randomInt(random, 100); i >= 0 && soak.writing; i--) {
        const length = 1 + randomInt(random, RECORDS_MAX);
        await send(world, producer, {
          producer: `${name}#${number}`,
          topic: topic.name,
          partition: randomInt(random, topic.partitions),
          values: Array.from({ length }, () => valueOf(name, ++written)),
          txn: null,
        });
        await breathe(world);
      }
    } finally {
      await producer.close();
    }
  });
}

/** A new transactional id for each session: it cannot become the successor of another process. */
export async function platformaticTransactions(world: World, name: string): Promise<void> {
  const { soak, random, history } = world;
  let written = 0;
  await sessions(world, { name, goesOn: () => soak.writing }, async (number) => {
    const id = `${name}-${number}`;
    const producer = producerOf(world, id);
    try {
      for (let i = 1; i < 30 && soak.writing; i++) {
        const txn = `${id}.${i}`;
        history.note({ kind: "txn", txn, id, producer: id, timeoutMs: TIMEOUT_MS });
        const transaction = await producer.beginTransaction();
        for (let sends = randomInt(random, SENDS_MAX); sends >= 0; sends--) {
          const length = 1 + randomInt(random, RECORDS_MAX);
          const values = Array.from({ length }, () => valueOf(name, ++written));
          const partition = randomInt(random, LOG.partitions);
          await send(world, transaction, { producer: id, topic: LOG.name, partition, values, txn });
        }
        const choice = random.float();
        // Left open: its time runs out. Not in the end, when that would be waited for.
        if (choice >= COMMITTED + ABORTED && soak.writing) return;
        const commit = choice < COMMITTED;
        const op = history.invoke({ f: "end", producer: id, txn, commit });
        try {
          await (commit ? transaction.commit() : transaction.abort());
          history.ok(op, null);
          soak.count(`${name}: ${commit ? "committed" : "aborted"}`);
        } catch (error) {
          history.failed(op, messageOf(error), false);
          throw error;
        }
        await breathe(world);
      }
    } finally {
      await producer.close(true);
    }
  });
}

export async function platformaticReader(world: World, name: string, topics: readonly Topic[]) {
  const { soak, history } = world;
  await sessions(world, { name, goesOn: () => soak.reading }, async (number) => {
    const consumer = new Consumer({
      ...platformaticAt(soak.address, "histories"),
      groupId: `${name}-${number}`,
      deserializers: stringDeserializers,
      sessionTimeout: SESSION_MS,
      heartbeatInterval: 1_000,
      isolationLevel: 0,
    });
    try {
      const stream = await consumer.consume({
        topics: topics.map((topic) => topic.name),
        mode: "earliest",
        autocommit: 1_000,
        maxWaitTime: 200,
      });
      const ended = setInterval(() => {
        if (!soak.reading) void stream.close().catch(() => {});
      }, STEP_MS);
      try {
        for await (const { topic, partition, offset, value } of stream) {
          const place = partitionName(topic, partition);
          const isolation = "uncommitted";
          const op = history.invoke({
            f: "read",
            reader: name,
            partition: place,
            isolation,
            from: null,
          });
          history.ok(op, { rows: [[Number(offset), String(value)]] });
        }
      } finally {
        clearInterval(ended);
      }
    } finally {
      await consumer.close(true).catch(() => {});
      await pause(STEP_MS);
    }
  });
}
