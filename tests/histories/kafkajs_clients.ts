/**
 * kafkajs, unmodified: idempotent and transactional producers, a reader, and one that copies exactly once.
 *
 * It takes up one entry of the list of aborted transactions per record, in the order of the list, which Kafka does
 * not sort by first offset: where transactions of several producers overlap, it shows aborted records, whoever the
 * broker is. So its readers of committed records read INPUT, whose partitions have one such producer each.
 */
import type { Kafka, Producer, Transaction } from "kafkajs";
import { randomInt } from "../../src/env/random.ts";
import { pause } from "../soak/cluster.ts";
import { kafkajsAt } from "../support/clients.ts";
import { committedPositions, type CopyPlan, isCopied } from "./wire_copier.ts";
import {
  breathe,
  FOR_EVER,
  INPUT,
  LOG,
  messageOf,
  partitionName,
  type Place,
  placesOf,
  sessions,
  type Topic,
  valueOf,
  type World,
} from "./world.ts";

const RECORDS_MAX = 4;
const SENDS_MAX = 4;
const TXN_TIMEOUT_MS = 5_000;
const SESSION_MS = 10_000;
const COMMITTED = 0.6;
const ABORTED = 0.2;
const STEP_MS = 100;

function kafkaOf({ soak }: World, retries: number): Kafka {
  const retry = { maxRetryTime: 500, retries };
  return kafkajsAt(soak.address, { clientId: "histories", requestTimeout: 15_000, retry });
}

/** One batch as an operation of the history. An error says nothing: the client has tried several times. */
async function send(
  { history }: World,
  sender: Pick<Producer | Transaction, "send">,
  { producer, place, values, txn, sources }: {
    readonly producer: string;
    readonly place: Place;
    readonly values: readonly string[];
    readonly txn: string | null;
    readonly sources?: readonly string[];
  },
): Promise<void> {
  const { topic, partition } = place;
  const op = history.invoke({
    f: "produce",
    producer,
    partition: partitionName(topic, partition),
    values,
    txn,
    ...(sources === undefined ? {} : { sources }),
  });
  try {
    const messages = values.map((value) => ({ partition, value }));
    const [answer] = await sender.send({ topic, acks: -1, messages });
    history.ok(op, { offset: Number(answer?.baseOffset ?? -1) });
  } catch (error) {
    history.failed(op, messageOf(error), false);
    throw error;
  }
}

export async function kafkajsIdempotent(world: World, name: string, topic: Topic): Promise<void> {
  const { soak, random } = world;
  let written = 0;
  await sessions(world, { name, goesOn: () => soak.writing }, async (number) => {
    const producer = kafkaOf(world, FOR_EVER).producer({
      idempotent: true,
      maxInFlightRequests: 1,
    });
    await producer.connect();
    try {
      for (let i = randomInt(random, 100); i >= 0 && soak.writing; i--) {
        const values = Array.from(
          { length: 1 + randomInt(random, RECORDS_MAX) },
          () => valueOf(name, ++written),
        );
        const place = { topic: topic.name, partition: randomInt(random, topic.partitions) };
        await send(world, producer, { producer: `${name}#${number}`, place, values, txn: null });
        await breathe(world);
      }
    } finally {
      await producer.disconnect();
    }
  });
}

interface Session {
  readonly world: World;
  readonly id: string;
  readonly name: string;
  readonly producer: Producer;
  /** Begun to become the producer of the id, which kafkajs does not do earlier; used by the first `begin`. */
  first: Transaction | null;
  txns: number;
}

async function open(world: World, id: string, number: number): Promise<Session> {
  const name = `${id}#${number}`;
  const producer = kafkaOf(world, 12).producer({
    idempotent: true,
    maxInFlightRequests: 1,
    transactionalId: id,
    transactionTimeout: TXN_TIMEOUT_MS,
  });
  const op = world.history.invoke({ f: "init", producer: name, id });
  try {
    await producer.connect();
    const first = await producer.transaction();
    world.history.ok(op, null);
    return { world, id, name, producer, first, txns: 0 };
  } catch (error) {
    world.history.failed(op, messageOf(error), false);
    await producer.disconnect().catch(() => {});
    throw error;
  }
}

interface Begun {
  readonly txn: string;
  readonly transaction: Transaction;
}

async function begin(session: Session): Promise<Begun> {
  const { world, id, name, producer } = session;
  session.txns += 1;
  const txn = `${name}.${session.txns}`;
  world.history.note({ kind: "txn", txn, id, producer: name, timeoutMs: TXN_TIMEOUT_MS });
  const transaction = session.first ?? await producer.transaction();
  session.first = null;
  return { txn, transaction };
}

async function end(
  { world: { history, soak }, id, name }: Session,
  { txn, transaction }: Begun,
  commit: boolean,
): Promise<void> {
  const op = history.invoke({ f: "end", producer: name, txn, commit });
  try {
    await (commit ? transaction.commit() : transaction.abort());
    history.ok(op, null);
    soak.count(`${id}: ${commit ? "committed" : "aborted"}`);
  } catch (error) {
    history.failed(op, messageOf(error), false);
    throw error;
  }
}

/** Some transactions are left open: the next session fences their producer, which is only then told to commit. */
export async function kafkajsTransactions(world: World, id: string): Promise<void> {
  const { soak, random } = world;
  const places = placesOf([LOG]);
  let written = 0;
  const left: (() => Promise<void>)[] = [];
  await sessions(
    world,
    { name: id, goesOn: () => soak.writing || left.length > 0 },
    async (number) => {
      const session = await open(world, id, number);
      await left.pop()?.();
      let isLeft = false;
      try {
        while (soak.writing && !isLeft) {
          const begun = await begin(session);
          for (let i = randomInt(random, SENDS_MAX); i >= 0; i--) {
            const length = 1 + randomInt(random, RECORDS_MAX);
            const values = Array.from({ length }, () => valueOf(id, ++written));
            const place = places[randomInt(random, places.length)]!;
            const { txn, transaction } = begun;
            await send(world, transaction, { producer: session.name, place, values, txn });
          }
          const choice = random.float();
          isLeft = choice >= COMMITTED + ABORTED;
          if (isLeft) {
            left.push(async () => {
              await end(session, begun, true).catch(() => {});
              await session.producer.disconnect();
            });
          } else await end(session, begun, choice < COMMITTED);
          await breathe(world);
        }
      } finally {
        if (!isLeft) await session.producer.disconnect();
      }
    },
  );
}

export async function kafkajsReader(
  world: World,
  { name, topics, committed }: {
    readonly name: string;
    readonly topics: readonly Topic[];
    readonly committed: boolean;
  },
): Promise<void> {
  const { soak, history } = world;
  await sessions(world, { name, goesOn: () => soak.reading }, async (number) => {
    const consumer = kafkaOf(world, 12).consumer({
      // Each session from the beginning.
      groupId: `${name}-${number}`,
      readUncommitted: !committed,
      sessionTimeout: SESSION_MS,
      heartbeatInterval: 300,
      maxWaitTimeInMs: 200,
    });
    let crashed = false;
    consumer.on("consumer.crash", () => void (crashed = true));
    try {
      await consumer.connect();
      await consumer.subscribe({ topics: topics.map((topic) => topic.name), fromBeginning: true });
      await consumer.run({
        autoCommitInterval: 1_000,
        eachBatch: ({ batch, resolveOffset }) => {
          const isolation = committed ? "committed" : "uncommitted";
          const partition = partitionName(batch.topic, batch.partition);
          const op = history.invoke({ f: "read", reader: name, partition, isolation, from: null });
          const rows = batch.messages.map(({ offset, value }) =>
            [Number(offset), value?.toString() ?? ""] as const
          );
          // Its high watermark is older than the invocation that is seen here.
          history.ok(op, { rows });
          resolveOffset(batch.lastOffset());
          return Promise.resolve();
        },
      });
      while (soak.reading && !crashed) await pause(STEP_MS);
    } finally {
      await consumer.disconnect();
    }
  });
}

/**
 * A group of one member; its offsets are in the transactions. A session goes on from what is committed once its
 * producer has fenced the one before, and keeps its own place from then on, since kafkajs asks for offsets
 * without waiting for transactions that are about to end.
 */
export async function kafkajsCopier(world: World, plan: CopyPlan): Promise<void> {
  const { soak } = world;
  const copies = { count: 0 };
  let done = false;
  const goesOn = () => !done && performance.now() < world.deadlineMs;
  await sessions(world, { name: plan.id, goesOn }, async (number) => {
    const session = await open(world, plan.id, number);
    try {
      const positions = await committedPositions(world, plan.group);
      if (positions === null) return;
      await copy(session, plan, { positions, copies, goesOn });
      done = isCopied(world, positions);
    } finally {
      await session.producer.disconnect();
    }
  });
  if (!done) soak.violation(`${plan.id} did not come to the end of its input`);
}

interface Copying {
  readonly positions: number[];
  readonly copies: { count: number };
  goesOn(): boolean;
}

async function copy(session: Session, plan: CopyPlan, copying: Copying): Promise<void> {
  const { world } = session;
  const { positions, goesOn } = copying;
  const consumer = kafkaOf(world, 12).consumer({
    groupId: plan.group,
    sessionTimeout: SESSION_MS,
    heartbeatInterval: 300,
    maxWaitTimeInMs: 200,
  });
  let broken = false;
  consumer.on("consumer.crash", () => void (broken = true));
  try {
    await consumer.connect();
    await consumer.subscribe({ topic: INPUT.name, fromBeginning: true });
    await consumer.run({
      autoCommit: false,
      eachBatch: async ({ batch }) => {
        if (broken) return;
        const from = positions[batch.partition]!;
        const rows = batch.messages.map(({ offset, value }) =>
          [Number(offset), value?.toString() ?? ""] as const
        ).filter(([offset]) => offset >= from);
        if (rows.length === 0) return;
        try {
          await copyBatch(session, plan, {
            partition: batch.partition,
            rows,
            copies: copying.copies,
          });
          positions[batch.partition] = rows.at(-1)![0] + 1;
        } catch {
          // Whether it is committed the next session will see.
          broken = true;
        }
      },
    });
    while (!broken && goesOn() && !isCopied(world, positions)) await pause(STEP_MS);
  } finally {
    broken = true;
    await consumer.disconnect();
  }
}

async function copyBatch(
  session: Session,
  { id, group, output }: CopyPlan,
  { partition, rows, copies }: {
    readonly partition: number;
    readonly rows: readonly (readonly [number, string])[];
    readonly copies: { count: number };
  },
): Promise<void> {
  const begun = await begin(session);
  await send(session.world, begun.transaction, {
    producer: session.name,
    place: { topic: output, partition: 0 },
    values: rows.map(([, value]) => `${id}/${++copies.count} of ${value}`),
    txn: begun.txn,
    sources: rows.map(([offset]) => `${partitionName(INPUT.name, partition)}@${offset}`),
  });
  const offset = String(rows.at(-1)![0] + 1);
  await begun.transaction.sendOffsets({
    consumerGroupId: group,
    topics: [{ topic: INPUT.name, partitions: [{ partition, offset }] }],
  });
  await end(session, begun, true);
}
