/** Short ways to ask a quirk node for things; answers carry the names of errors, not their codes. */
import assert from "node:assert/strict";
import { createCodecs } from "../../src/adapters/codecs.ts";
import type { CodecName } from "../../src/env/codecs.ts";
import { toUtf8, viewOf } from "../../src/lib/bytes.ts";
import { crc32c } from "../../src/lib/crc32c.ts";
import { type Uuid, ZERO_UUID } from "../../src/lib/uuid.ts";
import type { Api } from "../../src/protocol/api.ts";
import { type ErrorName, errorName } from "../../src/protocol/error_code.ts";
import { produceApi } from "../../src/protocol/message/00_produce.ts";
import { fetchApi } from "../../src/protocol/message/01_fetch.ts";
import { metadataApi } from "../../src/protocol/message/03_metadata.ts";
import { offsetCommitApi } from "../../src/protocol/message/08_offset_commit.ts";
import { createTopicsApi } from "../../src/protocol/message/19_create_topics.ts";
import {
  type BatchHeader,
  buildBatch,
  readBatchHeader,
  splitBatches,
} from "../../src/protocol/record_batch.ts";
import { type BatchRecord, readRecords } from "../../src/protocol/record.ts";
import { type KeptParts, type QuirkNode, type RawClient, startQuirkNode } from "./quirk_node.ts";

const codecs = createCodecs();
let incarnations = 1;

export const TIME = 1_700_000_000_000;

export interface RecordInput {
  readonly key?: string | null;
  readonly value?: string | null;
  readonly timestamp?: number;
}

export interface CommitOptions {
  readonly generation?: number;
  readonly memberId?: string;
  readonly metadata?: string;
}

export interface BatchOptions {
  readonly codec?: CodecName | null;
  readonly producer?: readonly [id: number, epoch: number, sequence: number];
  readonly transactional?: boolean;
  readonly control?: boolean;
}

/** A batch as a client sends it; a text is a record with that value. */
export function batch(
  records: readonly (string | RecordInput)[],
  { codec = null, producer, ...flags }: BatchOptions = {},
): Uint8Array {
  return buildBatch({
    records: records.map((one) => {
      const { key = null, value = "v", timestamp = TIME } = typeof one === "string"
        ? { value: one }
        : one;
      return {
        key: key === null ? null : toUtf8(key),
        value: value === null ? null : toUtf8(value),
        headers: [],
        timestampMs: timestamp,
      };
    }),
    codec,
    codecs,
    ...(producer === undefined
      ? {}
      : { producerId: producer[0], producerEpoch: producer[1], baseSequence: producer[2] }),
    ...flags,
  });
}

/** A changed copy with a right checksum, as a client with other ideas would send it. */
export function altered(bytes: Uint8Array, change: (view: DataView) => void): Uint8Array {
  const copy = bytes.slice();
  const view = viewOf(copy);
  change(view);
  view.setUint32(17, crc32c(copy.subarray(21)));
  return copy;
}

export interface StoredBatch extends BatchHeader {
  readonly records: readonly BatchRecord[];
}

export function batchesOf(bytes: Uint8Array | null): StoredBatch[] {
  return splitBatches(bytes ?? new Uint8Array(0)).map((one) => ({
    ...readBatchHeader(one),
    records: [...readRecords(one, codecs)],
  }));
}

export function textOf(bytes: Uint8Array | null): string | null {
  return bytes === null ? null : new TextDecoder().decode(bytes);
}

/** Values of all records, in order. */
export function valuesOf(bytes: Uint8Array | null): (string | null)[] {
  return batchesOf(bytes).flatMap(({ records }) => records.map(({ value }) => textOf(value)));
}

export function named<T extends { readonly errorCode: number }>(
  answer: T,
): T & { readonly error: ErrorName } {
  return { ...answer, error: errorName(answer.errorCode) };
}

/** A topic by what the version asks for: its name, or its id. */
export type TopicRef = string | { readonly id: Uuid };

function refOf(topic: TopicRef): { readonly name: string; readonly topicId: Uuid } {
  return typeof topic === "string"
    ? { name: topic, topicId: ZERO_UUID }
    : { name: "", topicId: topic.id };
}

export interface ProduceOptions {
  readonly version?: number;
  readonly acks?: number;
  readonly partition?: number;
  readonly clientId?: string;
  readonly timeoutMs?: number;
}

export interface FetchOptions {
  readonly version?: number;
  readonly partition?: number;
  readonly maxBytes?: number;
  readonly partitionMaxBytes?: number;
  readonly minBytes?: number;
  readonly maxWaitMs?: number;
  readonly isolationLevel?: number;
  readonly currentLeaderEpoch?: number;
  readonly lastFetchedEpoch?: number;
}

export function produceRequest(
  topic: TopicRef,
  records: Uint8Array | null,
  { acks = -1, partition = 0, timeoutMs = 30_000 }: ProduceOptions = {},
) {
  return {
    acks,
    timeoutMs,
    topicData: [{ ...refOf(topic), partitionData: [{ index: partition, records }] }],
  };
}

export function fetchRequest(topic: TopicRef, fetchOffset: number, options: FetchOptions = {}) {
  const { partition = 0, partitionMaxBytes = 1 << 20, maxBytes = 50 << 20 } = options;
  const { minBytes = 1, maxWaitMs = 0, isolationLevel = 0 } = options;
  const { currentLeaderEpoch = -1, lastFetchedEpoch = -1 } = options;
  const { name, topicId } = refOf(topic);
  const one = { partition, fetchOffset, partitionMaxBytes, currentLeaderEpoch, lastFetchedEpoch };
  const topics = [{ topic: name, topicId, partitions: [one] }];
  return { maxBytes, minBytes, maxWaitMs, isolationLevel, topics };
}

export class Quirks {
  readonly node: QuirkNode;
  readonly client: RawClient;

  constructor(node: QuirkNode) {
    this.node = node;
    this.client = node.connect();
  }

  call<Q, S, QIn, SOut>(api: Api<Q, S, QIn, SOut>, version: number, request: QIn): Promise<SOut> {
    return this.client.call(api, version, request);
  }

  /** Creates a topic; gives its id. */
  async topic(
    name: string,
    numPartitions = 1,
    configs: Readonly<Record<string, string>> = {},
  ): Promise<Uuid> {
    const answer = await this.call(createTopicsApi, 7, {
      topics: [{
        name,
        numPartitions,
        replicationFactor: 1,
        assignments: [],
        configs: Object.entries(configs).map(([key, value]) => ({ name: key, value })),
      }],
    });
    const [made] = answer.topics;
    assert.equal(errorName(made!.errorCode), "NONE", made!.errorMessage ?? "");
    return made!.topicId;
  }

  async produce(topic: TopicRef, records: Uint8Array | null, options: ProduceOptions = {}) {
    const { version = 9, clientId = "quirk" } = options;
    const request = produceRequest(topic, records, options);
    const answer = await this.client.call(produceApi, version, request, clientId);
    const found = answer.responses[0]!.partitionResponses[0]!;
    return { ...named(found), nodeEndpoints: answer.nodeEndpoints };
  }

  async fetch(topic: TopicRef, fetchOffset: number, options: FetchOptions = {}) {
    const { version = 11 } = options;
    const answer = await this.call(fetchApi, version, fetchRequest(topic, fetchOffset, options));
    assert.equal(errorName(answer.errorCode), "NONE");
    return named(answer.responses[0]!.partitions[0]!);
  }

  /** Of a simple consumer, unless a member is named; partition 0. The error's name. */
  async commit(
    groupId: string,
    topic: string,
    committedOffset: number,
    { generation = -1, memberId = "", metadata = "" }: CommitOptions = {},
  ): Promise<ErrorName> {
    const answer = await this.call(offsetCommitApi, 8, {
      groupId,
      generationIdOrMemberEpoch: generation,
      memberId,
      topics: [{
        name: topic,
        partitions: [{ partitionIndex: 0, committedOffset, committedMetadata: metadata }],
      }],
    });
    return errorName(answer.topics[0]!.partitions[0]!.errorCode);
  }

  async metadata(topics: readonly string[] | null, version = 9, allowAutoTopicCreation = false) {
    const asked = topics?.map((name) => ({ name })) ?? null;
    return await this.call(metadataApi, version, { topics: asked, allowAutoTopicCreation });
  }
}

export async function startQuirks(
  kafka: Readonly<Record<string, string>> = {},
  kept: KeptParts = {},
): Promise<Quirks> {
  return new Quirks(await startQuirkNode(kafka, kept));
}

/** The node's next incarnation on the same store; without `clean` the old one just stops being talked to. */
export async function restarted(
  q: Quirks,
  { clean }: { readonly clean: boolean },
  kafka: Readonly<Record<string, string>> = {},
): Promise<Quirks> {
  const { clock, store } = q.node;
  if (clean) await q.node.close();
  incarnations += 1;
  return await startQuirks(kafka, { clock, store, seed: incarnations });
}
