/** A transactional producer in raw requests, by the old rules or by those of KIP-890 part 2. */
import assert from "node:assert/strict";
import { ZERO_UUID } from "../../src/lib/uuid.ts";
import type { Api } from "../../src/protocol/api.ts";
import { type ErrorName, errorName } from "../../src/protocol/error_code.ts";
import { produceApi } from "../../src/protocol/message/00_produce.ts";
import { offsetFetchApi } from "../../src/protocol/message/09_offset_fetch.ts";
import { initProducerIdApi } from "../../src/protocol/message/22_init_producer_id.ts";
import { addPartitionsToTxnApi } from "../../src/protocol/message/24_add_partitions_to_txn.ts";
import { addOffsetsToTxnApi } from "../../src/protocol/message/25_add_offsets_to_txn.ts";
import { endTxnApi } from "../../src/protocol/message/26_end_txn.ts";
import { txnOffsetCommitApi } from "../../src/protocol/message/28_txn_offset_commit.ts";
import { describeTransactionsApi } from "../../src/protocol/message/65_describe_transactions.ts";
import { batch } from "../quirks/quirks.ts";

export interface Caller {
  call<Q, S, QIn, SOut>(api: Api<Q, S, QIn, SOut>, version: number, request: QIn): Promise<SOut>;
}

export interface TxnClientOptions {
  readonly isV2?: boolean;
  readonly timeoutMs?: number;
}

export class TxnClient {
  readonly transactionalId: string;
  readonly isV2: boolean;
  producerId = -1;
  producerEpoch = -1;
  /** Of the last batch that was taken; -1 when the answer did not say. */
  lastOffset = -1;
  readonly #caller: Caller;
  readonly #timeoutMs: number;
  /** Next sequence by topic and partition. */
  readonly #sequences = new Map<string, number>();

  constructor(caller: Caller, transactionalId: string, options: TxnClientOptions = {}) {
    this.#caller = caller;
    this.transactionalId = transactionalId;
    this.isV2 = options.isV2 ?? false;
    this.#timeoutMs = options.timeoutMs ?? 60_000;
  }

  get #who() {
    const { transactionalId, producerId, producerEpoch } = this;
    return { transactionalId, producerId, producerEpoch };
  }

  #become(producerId: number, producerEpoch: number): void {
    if (producerId !== this.producerId || producerEpoch !== this.producerEpoch) {
      this.#sequences.clear();
    }
    this.producerId = producerId;
    this.producerEpoch = producerEpoch;
  }

  /** As a new producer of the id; `keep` says who it was before (KIP-360). */
  async init({ keep = false, version = 5 } = {}): Promise<ErrorName> {
    const answer = await this.#caller.call(initProducerIdApi, version, {
      transactionalId: this.transactionalId,
      transactionTimeoutMs: this.#timeoutMs,
      ...(keep ? { producerId: this.producerId, producerEpoch: this.producerEpoch } : {}),
    });
    const error = errorName(answer.errorCode);
    if (error === "NONE") this.#become(answer.producerId, answer.producerEpoch);
    return error;
  }

  async add(topic: string, partitions: readonly number[] = [0], version = 3): Promise<ErrorName> {
    const answer = await this.#caller.call(addPartitionsToTxnApi, version, {
      v3AndBelowTransactionalId: this.transactionalId,
      v3AndBelowProducerId: this.producerId,
      v3AndBelowProducerEpoch: this.producerEpoch,
      v3AndBelowTopics: [{ name: topic, partitions }],
    });
    const [first] = answer.resultsByTopicV3AndBelow;
    return errorName(first!.resultsByPartition[0]!.partitionErrorCode);
  }

  /** One batch; its sequence is used up once it was taken. */
  async produce(
    topic: string,
    values: readonly string[],
    { partition = 0, version = this.isV2 ? 12 : 11 } = {},
  ): Promise<ErrorName> {
    const key = `${topic}-${partition}`;
    const sequence = this.#sequences.get(key) ?? 0;
    const records = batch(values, {
      producer: [this.producerId, this.producerEpoch, sequence],
      transactional: true,
    });
    const { error, baseOffset } = await this.send(topic, records, { partition, version });
    if (error === "NONE") {
      this.#sequences.set(key, sequence + values.length);
      this.lastOffset = baseOffset;
    }
    return error;
  }

  /** A batch as it is, whatever it says of its producer. */
  async send(
    topic: string,
    records: Uint8Array,
    { partition = 0, version = this.isV2 ? 12 : 11 } = {},
  ): Promise<{ readonly error: ErrorName; readonly baseOffset: number }> {
    const answer = await this.#caller.call(produceApi, version, {
      transactionalId: this.transactionalId,
      acks: -1,
      timeoutMs: 30_000,
      topicData: [{
        name: topic,
        topicId: ZERO_UUID,
        partitionData: [{ index: partition, records }],
      }],
    });
    const { errorCode, baseOffset } = answer.responses[0]!.partitionResponses[0]!;
    return { error: errorName(errorCode), baseOffset: Number(baseOffset) };
  }

  async addOffsets(groupId: string, version = 3): Promise<ErrorName> {
    const answer = await this.#caller.call(addOffsetsToTxnApi, version, { ...this.#who, groupId });
    return errorName(answer.errorCode);
  }

  async commitOffset(
    groupId: string,
    topic: string,
    committedOffset: number,
    { version = this.isV2 ? 5 : 4, memberId = "", generationId = -1, partition = 0 } = {},
  ): Promise<ErrorName> {
    const answer = await this.#caller.call(txnOffsetCommitApi, version, {
      ...this.#who,
      groupId,
      memberId,
      generationId,
      topics: [{
        name: topic,
        partitions: [{ partitionIndex: partition, committedOffset, committedMetadata: "" }],
      }],
    });
    return errorName(answer.topics[0]!.partitions[0]!.errorCode);
  }

  async end(commit: boolean, version = this.isV2 ? 5 : 4): Promise<ErrorName> {
    const answer = await this.#caller.call(endTxnApi, version, { ...this.#who, committed: commit });
    const error = errorName(answer.errorCode);
    if (error === "NONE" && version >= 5) this.#become(answer.producerId, answer.producerEpoch);
    return error;
  }
}

export async function stateOf(caller: Caller, transactionalId: string): Promise<string> {
  const request = { transactionalIds: [transactionalId] };
  const { transactionStates } = await caller.call(describeTransactionsApi, 0, request);
  const [state] = transactionStates;
  assert.ok(state !== undefined);
  const error = errorName(state.errorCode);
  return error === "NONE" ? state.transactionState : error;
}

/** The committed offset of partition 0, or the error's name. */
export async function fetchOffset(
  caller: Caller,
  groupId: string,
  topic: string,
  requireStable = true,
): Promise<number | ErrorName> {
  const answer = await caller.call(offsetFetchApi, 7, {
    groupId,
    topics: [{ name: topic, partitionIndexes: [0] }],
    requireStable,
  });
  assert.equal(errorName(answer.errorCode), "NONE");
  const found = answer.topics[0]!.partitions[0]!;
  return found.errorCode === 0 ? found.committedOffset : errorName(found.errorCode);
}
