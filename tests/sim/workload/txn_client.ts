/** The requests of a transactional producer, each sent until it is answered for good. */
import type { Random } from "../../../src/env/random.ts";
import { type ErrorName, errorName } from "../../../src/protocol/error_code.ts";
import { produceApi } from "../../../src/protocol/message/00_produce.ts";
import { initProducerIdApi } from "../../../src/protocol/message/22_init_producer_id.ts";
import { addPartitionsToTxnApi } from "../../../src/protocol/message/24_add_partitions_to_txn.ts";
import { addOffsetsToTxnApi } from "../../../src/protocol/message/25_add_offsets_to_txn.ts";
import { endTxnApi } from "../../../src/protocol/message/26_end_txn.ts";
import { txnOffsetCommitApi } from "../../../src/protocol/message/28_txn_offset_commit.ts";
import { ZERO_UUID } from "../../../src/lib/uuid.ts";
import { KafkaClient, NoAnswer } from "../kafka_client.ts";
import { between } from "../world.ts";
import { type Context, isTransient } from "./context.ts";
import type { Place } from "./semantics_context.ts";

const TIMEOUT_MS = 8_000;
const AGAIN_MS = [20, 300] as const;

export interface Told<T> {
  readonly error: ErrorName;
  readonly by: number;
  readonly value: T;
  /** An attempt before it had no answer, or one that says nothing about what became of it. */
  readonly isRepeat: boolean;
}

export interface TxnClientOptions {
  readonly context: Context;
  readonly name: string;
  readonly transactionalId: string;
  readonly timeoutMs: number;
  /** By the rules of KIP-890 part 2: the broker adds partitions, each end raises the epoch. */
  readonly isV2: boolean;
}

export class TxnClient {
  readonly #options: TxnClientOptions;
  readonly #random: Random;
  readonly #client: KafkaClient;
  producerId = -1;
  epoch = -1;

  constructor(options: TxnClientOptions) {
    const { context: { world, cluster }, name } = options;
    this.#options = options;
    this.#random = world.random(`${name} client`);
    this.#client = new KafkaClient(world, cluster, name);
  }

  get #who() {
    const { transactionalId } = this.#options;
    return { transactionalId, producerId: this.producerId, producerEpoch: this.epoch };
  }

  /** Null when the run is over before there is an answer for good. */
  async #asks<T>(
    attempt: () => Promise<{ error: ErrorName; by: number; value: T }>,
  ): Promise<Told<T> | null> {
    const { context } = this.#options;
    for (let isRepeat = false; !context.over; isRepeat = true) {
      try {
        const told = await attempt();
        const isAgain = isTransient(told.error) || told.error === "CONCURRENT_TRANSACTIONS";
        // One that was replaced may not know the newest of the coordinator.
        const isPast = told.error !== "NONE" && context.cluster.isReplaced(told.by);
        if (!isAgain && !isPast) return { ...told, isRepeat };
      } catch (error) {
        if (!(error instanceof NoAnswer)) throw error;
      }
      await context.world.sleep(between(this.#random, ...AGAIN_MS));
    }
    return null;
  }

  /** `onSend` runs before each attempt, what it returns at its answer. `keep` says who it was before (KIP-360). */
  init(keep: boolean, onSend: () => () => void) {
    return this.#asks(async () => {
      const onAnswer = onSend();
      const { transactionalId, timeoutMs } = this.#options;
      const { response, by } = await this.#client.call(initProducerIdApi, 5, {
        transactionalId,
        transactionTimeoutMs: timeoutMs,
        ...(keep ? { producerId: this.producerId, producerEpoch: this.epoch } : {}),
      }, TIMEOUT_MS);
      onAnswer();
      const value = { producerId: response.producerId!, epoch: response.producerEpoch };
      return { error: errorName(response.errorCode), by, value };
    });
  }

  become(producerId: number, epoch: number): void {
    this.producerId = producerId;
    this.epoch = epoch;
  }

  add({ topic: { name }, partition }: Place) {
    return this.#asks(async () => {
      const { transactionalId, producerId, producerEpoch } = this.#who;
      const { response, by } = await this.#client.call(addPartitionsToTxnApi, 3, {
        v3AndBelowTransactionalId: transactionalId,
        v3AndBelowProducerId: producerId,
        v3AndBelowProducerEpoch: producerEpoch,
        v3AndBelowTopics: [{ name, partitions: [partition] }],
      }, TIMEOUT_MS);
      const [first] = response.resultsByTopicV3AndBelow;
      const error = errorName(first!.resultsByPartition[0]!.partitionErrorCode);
      return { error, by, value: null };
    });
  }

  /** One batch; the value is its first offset, -1 where the answer does not say. */
  produce({ topic: { name }, partition }: Place, records: Uint8Array, label: string) {
    const { isV2, transactionalId } = this.#options;
    return this.#asks(async () => {
      const { response, by } = await this.#client.call(
        produceApi,
        isV2 ? 12 : 11,
        {
          transactionalId,
          acks: -1,
          timeoutMs: Math.round(TIMEOUT_MS * 0.8),
          topicData: [{
            name,
            topicId: ZERO_UUID,
            partitionData: [{ index: partition, records }],
          }],
        },
        TIMEOUT_MS,
        label,
      );
      const { errorCode, baseOffset } = response.responses[0]!.partitionResponses[0]!;
      return { error: errorName(errorCode), by, value: baseOffset };
    });
  }

  addOffsets(groupId: string) {
    return this.#asks(async () => {
      const request = { ...this.#who, groupId };
      const { response, by } = await this.#client.call(addOffsetsToTxnApi, 3, request, TIMEOUT_MS);
      return { error: errorName(response.errorCode), by, value: null };
    });
  }

  commitOffset(groupId: string, { topic: { name }, partition }: Place, committedOffset: number) {
    const { isV2 } = this.#options;
    return this.#asks(async () => {
      const { response, by } = await this.#client.call(txnOffsetCommitApi, isV2 ? 5 : 4, {
        ...this.#who,
        groupId,
        memberId: "",
        generationId: -1,
        topics: [{
          name,
          partitions: [{ partitionIndex: partition, committedOffset, committedMetadata: "" }],
        }],
      }, TIMEOUT_MS);
      const error = errorName(response.topics[0]!.partitions[0]!.errorCode);
      return { error, by, value: null };
    });
  }

  end(commit: boolean) {
    const { isV2 } = this.#options;
    return this.#asks(async () => {
      const request = { ...this.#who, committed: commit };
      const { response, by } = await this.#client.call(
        endTxnApi,
        isV2 ? 5 : 4,
        request,
        TIMEOUT_MS,
        commit ? "commit" : "abort",
      );
      const value = isV2
        ? { producerId: response.producerId!, epoch: response.producerEpoch! }
        : { producerId: this.producerId, epoch: this.epoch };
      return { error: errorName(response.errorCode), by, value };
    });
  }
}
