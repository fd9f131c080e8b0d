/** A member of a share group as a raw client: joins, fetches under its session, acknowledges. */
import { seededRandom } from "../../src/env/random.ts";
import { uuidOf } from "../../src/lib/uuid.ts";
import { errorName } from "../../src/protocol/error_code.ts";
import { incrementalAlterConfigsApi } from "../../src/protocol/message/44_incremental_alter_configs.ts";
import { shareGroupHeartbeatApi } from "../../src/protocol/message/76_share_group_heartbeat.ts";
import {
  shareFetchApi,
  type ShareFetchRequest,
} from "../../src/protocol/message/78_share_fetch.ts";
import {
  shareAcknowledgeApi,
  type ShareAcknowledgeRequest,
} from "../../src/protocol/message/79_share_acknowledge.ts";
import type { RawClient } from "./quirk_node.ts";
import { named, type Quirks, valuesOf } from "./quirks.ts";

export const GAP = 0;
export const ACCEPT = 1;
export const RELEASE = 2;
export const REJECT = 3;
export const RENEW = 4;

const GROUP_RESOURCE = 32;
const SET = 0;

/** First and last offset and one type, or one for each record. */
export type Ack = readonly [first: number, last: number, type: number | readonly number[]];

export interface ShareAsk {
  readonly epoch?: number;
  readonly partition?: number;
  readonly acks?: readonly Ack[];
  readonly maxRecords?: number;
  readonly batchSize?: number;
  readonly maxWaitMs?: number;
  readonly minBytes?: number;
  readonly maxBytes?: number;
  readonly mode?: number;
  readonly isRenewAck?: boolean;
  readonly version?: number;
  readonly forget?: readonly number[];
  /** Without the partition: of the session as it is. */
  readonly bare?: boolean;
  readonly more?: Partial<ShareFetchRequest>;
}

let ids = 0;

function batchesOf(acks: readonly Ack[]) {
  return acks.map(([firstOffset, lastOffset, type]) => ({
    firstOffset,
    lastOffset,
    acknowledgeTypes: typeof type === "number" ? [type] : [...type],
  }));
}

export async function setGroup(
  q: Quirks,
  group: string,
  settings: Readonly<Record<string, string>>,
): Promise<string> {
  const answer = await q.call(incrementalAlterConfigsApi, 1, {
    resources: [{
      resourceType: GROUP_RESOURCE,
      resourceName: group,
      configs: Object.entries(settings).map(([name, value]) => ({
        name,
        value,
        configOperation: SET,
      })),
    }],
    validateOnly: false,
  });
  return errorName(answer.responses[0]!.errorCode);
}

export class ShareMember {
  readonly q: Quirks;
  readonly client: RawClient;
  readonly id: string;
  readonly group: string;
  readonly topicId: string;
  memberEpoch = 0;
  /** Of the session. */
  epoch = 0;

  constructor(q: Quirks, topicId: string, group = "g") {
    this.q = q;
    this.client = q.node.connect();
    this.topicId = topicId;
    this.group = group;
    ids += 1;
    this.id = uuidOf(seededRandom(ids).bytes(16));
  }

  async beat(memberEpoch = this.memberEpoch, names: readonly string[] | null = ["t"]) {
    const answer = named(
      await this.client.call(shareGroupHeartbeatApi, 1, {
        groupId: this.group,
        memberId: this.id,
        memberEpoch,
        subscribedTopicNames: names,
      }),
    );
    if (answer.error === "NONE") this.memberEpoch = answer.memberEpoch;
    return answer;
  }

  /** Joins, and opens a session of partition 0; takes nothing. */
  async join(): Promise<this> {
    await this.beat(0);
    await this.fetch({ maxRecords: 0, epoch: 0 });
    return this;
  }

  request(ask: ShareAsk) {
    const { partition = 0, acks = [], bare = false } = ask;
    const partitions = [{ partitionIndex: partition, acknowledgementBatches: batchesOf(acks) }];
    return {
      groupId: this.group,
      memberId: this.id,
      shareSessionEpoch: ask.epoch ?? this.epoch,
      maxWaitMs: ask.maxWaitMs ?? 0,
      minBytes: ask.minBytes ?? 1,
      maxBytes: ask.maxBytes ?? 1 << 20,
      maxRecords: ask.maxRecords ?? 500,
      batchSize: ask.batchSize ?? 500,
      shareAcquireMode: ask.mode ?? 0,
      isRenewAck: ask.isRenewAck ?? false,
      topics: bare ? [] : [{ topicId: this.topicId, partitions }],
      forgottenTopicsData: ask.forget === undefined
        ? []
        : [{ topicId: this.topicId, partitions: ask.forget }],
      ...ask.more,
    };
  }

  /** Of one partition: acquired ranges with their deliveries, values of all records sent, errors by name. */
  async fetch(ask: ShareAsk = {}) {
    const version = ask.version ?? 2;
    const answer = await this.client.call(shareFetchApi, version, this.request(ask));
    return this.read(answer, ask);
  }

  read(answer: Awaited<ReturnType<ShareMember["raw"]>>, ask: ShareAsk = {}) {
    const error = errorName(answer.errorCode);
    if (error === "NONE") this.epoch = (ask.epoch ?? this.epoch) + 1;
    const index = ask.partition ?? 0;
    const found = answer.responses.flatMap(({ partitions }) => partitions)
      .find(({ partitionIndex }) => partitionIndex === index);
    return {
      error,
      partitions: answer.responses.flatMap(({ partitions }) => partitions).length,
      lockMs: answer.acquisitionLockTimeoutMs,
      fetchError: found === undefined ? null : errorName(found.errorCode),
      ackError: found === undefined ? null : errorName(found.acknowledgeErrorCode),
      values: found === undefined ? [] : valuesOf(joined(found.records)),
      acquired: (found?.acquiredRecords ?? []).map((one) =>
        [one.firstOffset, one.lastOffset, one.deliveryCount] as const
      ),
    };
  }

  raw(ask: ShareAsk = {}) {
    return this.client.call(shareFetchApi, ask.version ?? 2, this.request(ask));
  }

  /** By a request of its own; the error of the request, or of the partition. */
  async ack(
    acks: readonly Ack[],
    { epoch, version = 2, isRenewAck = false, partition = 0, more = {} }: {
      readonly epoch?: number;
      readonly version?: number;
      readonly isRenewAck?: boolean;
      readonly partition?: number;
      readonly more?: Partial<ShareAcknowledgeRequest>;
    } = {},
  ): Promise<string> {
    const shareSessionEpoch = epoch ?? this.epoch;
    const answer = await this.client.call(shareAcknowledgeApi, version, {
      groupId: this.group,
      memberId: this.id,
      shareSessionEpoch,
      isRenewAck,
      topics: [{
        topicId: this.topicId,
        partitions: [{ partitionIndex: partition, acknowledgementBatches: batchesOf(acks) }],
      }],
      ...more,
    });
    const error = errorName(answer.errorCode);
    if (error !== "NONE") return error;
    this.epoch = shareSessionEpoch + 1;
    return errorName(answer.responses[0]?.partitions[0]?.errorCode ?? 0);
  }
}

function joined(records: Uint8Array | readonly Uint8Array[]): Uint8Array {
  if (records instanceof Uint8Array) return records;
  return new Uint8Array(records.flatMap((one) => [...one]));
}
