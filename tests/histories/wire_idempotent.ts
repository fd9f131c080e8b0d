/** An idempotent producer over the wire: several batches under way, sent again unchanged until they are answered. */
import { ZERO_UUID } from "../../src/lib/uuid.ts";
import { randomInt } from "../../src/env/random.ts";
import { type ErrorName, errorName } from "../../src/protocol/error_code.ts";
import { produceApi } from "../../src/protocol/message/00_produce.ts";
import { initProducerIdApi } from "../../src/protocol/message/22_init_producer_id.ts";
import { batch } from "../quirks/quirks.ts";
import { Hangup, pause, WireClient } from "../soak/cluster.ts";
import { again, breathe, partitionName, type Topic, valueOf, type World } from "./world.ts";

const VERSION = 9;
const WINDOW_MAX = 5;
const RECORDS_MAX = 5;
/** A producer lives for about so many windows. */
const WINDOWS_MAX = 80;
export const RETRIABLE: ReadonlySet<ErrorName> = new Set([
  "LEADER_NOT_AVAILABLE",
  "NOT_LEADER_OR_FOLLOWER",
  "REQUEST_TIMED_OUT",
  "COORDINATOR_LOAD_IN_PROGRESS",
  "COORDINATOR_NOT_AVAILABLE",
  "NOT_COORDINATOR",
  "NOT_ENOUGH_REPLICAS",
  "NOT_ENOUGH_REPLICAS_AFTER_APPEND",
  "KAFKA_STORAGE_ERROR",
  "CONCURRENT_TRANSACTIONS",
  "UNSTABLE_OFFSET_COMMIT",
  // As any client, this one asks for topics whose leader is not there yet.
  "UNKNOWN_TOPIC_OR_PARTITION",
]);

interface Sent {
  readonly op: number;
  readonly partition: number;
  readonly records: Uint8Array;
}

export async function wireIdempotent(world: World, name: string, topic: Topic): Promise<void> {
  const client = new WireClient(world.soak.address);
  let written = 0;
  for (let number = 1; world.soak.writing; number++) {
    const producerId = await again(world, async () => {
      const request = { transactionalId: null, transactionTimeoutMs: 60_000 };
      const answer = await client.call(initProducerIdApi, 2, request);
      return answer.errorCode === 0 ? Number(answer.producerId) : null;
    });
    if (producerId === null) break;
    const sequences = new Map<number, number>();
    for (let i = randomInt(world.random, WINDOWS_MAX); i >= 0 && world.soak.writing; i--) {
      const window = Array.from({ length: 1 + randomInt(world.random, WINDOW_MAX) }, () => {
        const partition = randomInt(world.random, topic.partitions);
        const count = 1 + randomInt(world.random, RECORDS_MAX);
        const values = Array.from({ length: count }, () => valueOf(name, ++written));
        const sequence = sequences.get(partition) ?? 0;
        sequences.set(partition, sequence + count);
        const op = world.history.invoke({
          f: "produce",
          producer: `${name}#${number}`,
          partition: partitionName(topic.name, partition),
          values,
          txn: null,
        });
        return { op, partition, records: batch(values, { producer: [producerId, 0, sequence] }) };
      });
      if (!await deliver(world, client, topic.name, window)) break;
      await breathe(world);
    }
  }
  client.close();
}

/** False when the window cannot be delivered: another producer has to go on. */
async function deliver(
  world: World,
  client: WireClient,
  topic: string,
  window: readonly Sent[],
): Promise<boolean> {
  let left = [...window];
  while (left.length > 0) {
    if (performance.now() > world.deadlineMs) return false;
    try {
      left = await deliverOnce(world, client, topic, left);
    } catch (error) {
      if (error instanceof Unexpected) return false;
      if (!(error instanceof Hangup)) throw error;
      // What was answered before the connection broke is in the history already.
      left = left.filter((one) => !answered.has(one));
    }
    if (left.length > 0) await pause(50);
  }
  return true;
}

class Unexpected extends Error {}
const answered = new WeakSet<Sent>();

async function deliverOnce(
  { history, soak }: World,
  client: WireClient,
  topic: string,
  window: readonly Sent[],
): Promise<Sent[]> {
  for (const { partition, records } of window) {
    await client.send(produceApi, VERSION, {
      transactionalId: null,
      acks: -1,
      timeoutMs: 10_000,
      topicData: [{
        name: topic,
        topicId: ZERO_UUID,
        partitionData: [{ index: partition, records }],
      }],
    });
  }
  const left: Sent[] = [];
  for (const one of window) {
    const { responses } = await client.receive(produceApi, VERSION);
    const { errorCode, baseOffset } = responses[0]!.partitionResponses[0]!;
    const error = errorName(errorCode);
    if (error === "NONE" || error === "DUPLICATE_SEQUENCE_NUMBER") {
      history.ok(one.op, { offset: Number(baseOffset) });
      answered.add(one);
    } else if (
      RETRIABLE.has(error) ||
      // Behind one that has to go again.
      (error === "OUT_OF_ORDER_SEQUENCE_NUMBER" &&
        left.some(({ partition }) => partition === one.partition))
    ) left.push(one);
    else {
      soak.violation(`an idempotent producer got ${error}`);
      throw new Unexpected(error);
    }
  }
  return left;
}
