/** Records of share groups (KIP-932): sessions, acquired ranges, acknowledgements and deliveries. */
import { produceApi } from "../../../src/protocol/message/00_produce.ts";
import { deleteRecordsApi } from "../../../src/protocol/message/21_delete_records.ts";
import { initProducerIdApi } from "../../../src/protocol/message/22_init_producer_id.ts";
import { endTxnApi } from "../../../src/protocol/message/26_end_txn.ts";
import { incrementalAlterConfigsApi } from "../../../src/protocol/message/44_incremental_alter_configs.ts";
import { shareGroupHeartbeatApi } from "../../../src/protocol/message/76_share_group_heartbeat.ts";
import { shareFetchApi } from "../../../src/protocol/message/78_share_fetch.ts";
import { shareAcknowledgeApi } from "../../../src/protocol/message/79_share_acknowledge.ts";
import { describeShareGroupOffsetsApi } from "../../../src/protocol/message/90_describe_share_group_offsets.ts";
import { ready } from "./ready.ts";
import { batch, pause, type Scenario, type Script } from "../script.ts";

const APIS = [76, 78, 79, 90];
const GROUP_RESOURCE = 32;
const KNOWN_MS = 1_000;
const ACCEPT = 1;
const RELEASE = 2;
const REJECT = 3;
const RENEW = 4;

type Ack = readonly [first: number, last: number, ...types: number[]];

interface Ask {
  readonly epoch?: number;
  readonly member?: string;
  readonly acks?: readonly Ack[];
  readonly partition?: number;
  readonly topicId?: string;
  readonly maxRecords?: number;
  readonly batchSize?: number;
  readonly maxWaitMs?: number;
  readonly mode?: number;
  readonly isRenewAck?: boolean;
  readonly version?: number;
  readonly forget?: readonly number[];
  readonly bare?: boolean;
  readonly maxBytes?: number;
  readonly minBytes?: number;
}

function batchesOf(acks: readonly Ack[]) {
  return acks.map(([firstOffset, lastOffset, ...acknowledgeTypes]) => ({
    firstOffset,
    lastOffset,
    acknowledgeTypes,
  }));
}

/** A topic, a group of one or two members that begins at its first record, and their sessions. */
class Group {
  readonly #script: Script;
  readonly #name: string;
  readonly #topicId: string;

  constructor(script: Script, name: string, topicId: string) {
    this.#script = script;
    this.#name = name;
    this.#topicId = topicId;
  }

  static async make(
    script: Script,
    name: string,
    settings: Readonly<Record<string, string>> = {},
    members: readonly string[] = ["d-a"],
  ): Promise<Group> {
    await ready(script, "group");
    const topicId = await script.topic(name, { partitions: 1 });
    await script.until(incrementalAlterConfigsApi, 1, {
      validateOnly: false,
      resources: [{
        resourceType: GROUP_RESOURCE,
        resourceName: name,
        configs: Object.entries({ "share.auto.offset.reset": "earliest", ...settings })
          .map(([key, value]) => ({ name: key, value, configOperation: 0 })),
      }],
    }, () => true);
    await pause(KNOWN_MS);
    const group = new Group(script, name, topicId);
    // Named first, whatever the answers begin with.
    script.note("topic", { topicId });
    for (const member of members) await group.join(member);
    return group;
  }

  async join(memberId: string): Promise<void> {
    const first = {
      groupId: this.#name,
      memberId,
      memberEpoch: 0,
      subscribedTopicNames: [this.#name],
    };
    const joined = await this.#script.until(shareGroupHeartbeatApi, 1, first, () => true);
    if ((joined.assignment?.topicPartitions.length ?? 0) === 0) {
      await this.#script.until(
        shareGroupHeartbeatApi,
        1,
        { groupId: this.#name, memberId, memberEpoch: joined.memberEpoch },
        ({ assignment }) => (assignment?.topicPartitions.length ?? 0) > 0,
      );
    }
    // Both brokers have made the state; a fetch of the empty topic opens the partition.
    await this.#script.until(
      shareFetchApi,
      1,
      this.#request({ epoch: 0, member: memberId }),
      ({ responses }) => responses.every(({ partitions }) => partitions[0]!.errorCode === 0),
    );
  }

  #request(ask: Ask) {
    const partitions = [{
      partitionIndex: ask.partition ?? 0,
      acknowledgementBatches: batchesOf(ask.acks ?? []),
    }];
    const topicId = ask.topicId ?? this.#topicId;
    return {
      groupId: this.#name,
      memberId: ask.member ?? "d-a",
      shareSessionEpoch: ask.epoch ?? 1,
      maxWaitMs: ask.maxWaitMs ?? 300,
      minBytes: ask.minBytes ?? 1,
      maxBytes: ask.maxBytes ?? 1 << 20,
      maxRecords: ask.maxRecords ?? 500,
      batchSize: ask.batchSize ?? 500,
      shareAcquireMode: ask.mode ?? 0,
      isRenewAck: ask.isRenewAck ?? false,
      topics: ask.bare === true ? [] : [{ topicId, partitions }],
      forgottenTopicsData: ask.forget === undefined ? [] : [{ topicId, partitions: ask.forget }],
    };
  }

  fetch(label: string, ask: Ask = {}) {
    return this.#script.call(label, shareFetchApi, ask.version ?? 2, this.#request(ask));
  }

  /** Of the partition that was asked for. */
  async acquired(label: string, ask: Ask = {}): Promise<readonly (readonly number[])[]> {
    const { responses } = await this.fetch(label, ask);
    return (responses[0]?.partitions[0]?.acquiredRecords ?? [])
      .map((
        { firstOffset, lastOffset, deliveryCount },
      ) => [firstOffset, lastOffset, deliveryCount]);
  }

  ack(label: string, epoch: number, acks: readonly Ack[], ask: Ask = {}) {
    return this.#script.call(label, shareAcknowledgeApi, ask.version ?? 2, {
      groupId: this.#name,
      memberId: ask.member ?? "d-a",
      shareSessionEpoch: epoch,
      isRenewAck: ask.isRenewAck ?? false,
      topics: [{
        topicId: ask.topicId ?? this.#topicId,
        partitions: [{
          partitionIndex: ask.partition ?? 0,
          acknowledgementBatches: batchesOf(acks),
        }],
      }],
    });
  }

  async produce(...batches: readonly Uint8Array[]): Promise<void> {
    for (const records of batches) {
      await this.#script.until(
        produceApi,
        9,
        {
          acks: -1,
          timeoutMs: 5_000,
          topicData: [{ name: this.#name, partitionData: [{ index: 0, records }] }],
        },
        () => true,
      );
    }
  }

  offsets(label: string) {
    return this.#script.call(label, describeShareGroupOffsetsApi, 1, {
      groups: [{ groupId: this.#name, topics: [{ topicName: this.#name, partitions: [0] }] }],
    });
  }
}

function values(count: number, from = 0): string[] {
  return Array.from({ length: count }, (_, at) => `v${from + at}`);
}

const sessions: Scenario = {
  name: "share sessions",
  needs: APIS,
  async run(script) {
    const group = await Group.make(script, "d-share-sessions");
    await group.produce(batch(values(4)));
    for (const epoch of [5, 2, 0x7fffffff]) {
      await group.fetch(`epoch ${epoch}`, { epoch });
      await group.ack(`ack of epoch ${epoch}`, epoch, [[0, 0, ACCEPT]]);
    }
    await group.ack("ack of epoch 0", 0, [[0, 0, ACCEPT]]);
    await group.fetch("ack in the first fetch", { epoch: 0, acks: [[0, 0, ACCEPT]] });
    for (const epoch of [1, -1]) {
      await group.fetch(`no session ${epoch}`, { epoch, member: "d-none" });
      await group.ack(`ack without session ${epoch}`, epoch, [[0, 0, ACCEPT]], {
        member: "d-none",
      });
    }
    await group.fetch("no member", { member: "" });
    await group.fetch("long member", { member: "m".repeat(37) });
    await group.ack("ack of no member", 1, [[0, 0, ACCEPT]], { member: "" });
    await group.fetch("unknown topic", { epoch: 0, topicId: "ab".repeat(16) });
    await group.fetch("unknown partition", { epoch: 0, partition: 7 });
    await group.fetch("first", { epoch: 0 });
    await group.fetch("nothing new", { epoch: 1, bare: true });
    await group.fetch("named again", { epoch: 2 });
    await group.fetch("unknown topic later", { epoch: 3, topicId: "ab".repeat(16) });
    await group.fetch("forget", { epoch: 4, bare: true, forget: [0] });
    await group.ack("unknown topic of ack", 5, [[0, 0, ACCEPT]], { topicId: "ab".repeat(16) });
    await group.ack("unknown partition of ack", 6, [[0, 0, ACCEPT]], { partition: 7 });
    await group.fetch("nothing wanted", { epoch: 0, maxRecords: 0 });
    await group.fetch("last", { epoch: -1, acks: [[0, 0, ACCEPT]] });
    await group.fetch("after the last", { epoch: 2 });
    await group.fetch("again from the start", { epoch: 0 });
    await group.ack("last by ack", -1, [[1, 1, ACCEPT]]);
    await group.ack("after the last by ack", -1, [[1, 1, ACCEPT]]);
  },
};

const ranges: Scenario = {
  name: "share ranges",
  needs: APIS,
  async run(script) {
    const group = await Group.make(script, "d-share-ranges", {}, ["d-a", "d-b"]);
    const b = { member: "d-b" };
    await group.offsets("before anything");
    for (const from of [0, 5, 10, 15, 20]) await group.produce(batch(values(5, from)));
    await group.fetch("to the end of a batch", { epoch: 1, maxRecords: 7, batchSize: 3 });
    await group.fetch("so many", { ...b, epoch: 1, maxRecords: 3, mode: 1 });
    await group.fetch("so many more", { ...b, epoch: 2, maxRecords: 3, mode: 1 });
    await group.ack("of another", 3, [[0, 4, ACCEPT]], b);
    await group.ack("of nobody", 4, [[16, 17, ACCEPT]], b);
    await group.ack("past the end", 2, [[0, 40, ACCEPT]]);
    await group.ack("turned round", 3, [[4, 0, ACCEPT]]);
    await group.ack("out of order", 4, [[3, 4, ACCEPT], [0, 1, ACCEPT]]);
    await group.ack("wrong number of types", 5, [[0, 4, ACCEPT, ACCEPT]]);
    await group.ack("no type", 6, [[0, 4]]);
    await group.ack("unknown type", 7, [[0, 4, 7]]);
    await group.ack("renewal in version 1", 8, [[0, 4, RENEW]], { version: 1 });
    await group.ack("renewal without the flag", 9, [[0, 4, RENEW]]);
    await group.ack("renewal", 10, [[0, 4, RENEW]], { isRenewAck: true });
    await group.ack("part good, part bad", 11, [[1, 1, ACCEPT], [20, 20, ACCEPT]]);
    await group.ack("of each kind", 12, [[1, 3, ACCEPT, RELEASE, REJECT]]);
    await group.ack("again", 13, [[1, 1, ACCEPT]]);
    await group.offsets("some are done");
    await group.fetch("what was released", { epoch: 14, maxRecords: 1 });
    await group.ack("the first", 15, [[0, 0, ACCEPT]]);
    await group.ack("below the start", 16, [[0, 1, ACCEPT]]);
    await group.ack("over the start", 17, [[1, 2, ACCEPT]]);
    await group.offsets("the start has moved");
    await group.ack("gap", 18, [[4, 4, 0]]);
    await group.fetch("with acknowledgements", { epoch: 19, acks: [[5, 9, ACCEPT]] });
    await group.fetch("with wrong ones", { epoch: 20, acks: [[5, 9, 9]] });
    await group.fetch("renewal and fetch", { epoch: 21, isRenewAck: true });
    await group.offsets("at last");
  },
};

const deliveries: Scenario = {
  name: "share deliveries",
  needs: APIS,
  async run(script) {
    const group = await Group.make(script, "d-share-deliveries");
    await group.produce(batch(values(8)));
    let epoch = 1;
    for (let round = 0; round < 30; round++) {
      const acquired = await group.acquired(`round ${round}`, { epoch: epoch++, maxWaitMs: 100 });
      if (acquired.length === 0) break;
      const acks = acquired.map(([first, last]): Ack => [first!, last!, RELEASE]);
      await group.ack(`released ${round}`, epoch++, acks);
    }
    await group.offsets("all used up");
    await group.produce(batch(values(6)));
    await group.fetch("split", { epoch: epoch++ });
    await group.ack("every second", epoch++, [[8, 13, 1, 2, 1, 2, 1, 2]]);
    await group.fetch("every second again", { epoch: epoch++ });
    await group.ack("two of three", epoch++, [[9, 9, RELEASE], [11, 11, ACCEPT]]);
    await group.fetch("one more", { epoch: epoch++ });
    await group.offsets("the rest");
  },
};

const window: Scenario = {
  name: "share window",
  needs: APIS,
  async run(script) {
    const group = await Group.make(script, "d-share-window");
    for (const from of [0, 900, 1800]) await group.produce(batch(values(900, from)));
    await group.fetch("first", { epoch: 1, maxRecords: 900 });
    await group.fetch("second", { epoch: 2, maxRecords: 900 });
    await group.fetch("third", { epoch: 3, maxRecords: 900 });
    await group.fetch("full", { epoch: 4, maxRecords: 900 });
    await group.ack("release in between", 5, [[100, 149, RELEASE]]);
    await group.fetch("in between", { epoch: 6, maxRecords: 900 });
    await group.ack("room", 7, [[0, 899, ACCEPT]]);
    await group.fetch("more", { epoch: 8, maxRecords: 900 });
    await script.call("delete records", deleteRecordsApi, 2, {
      topics: [{
        name: "d-share-window",
        partitions: [{ partitionIndex: 0, offset: 2000 }],
      }],
      timeoutMs: 5_000,
    });
    await group.ack("release all", 9, [[900, 2699, RELEASE]]);
    await group.fetch("above the start of the log", { epoch: 10, maxRecords: 900 });
  },
};

const transactions: Scenario = {
  name: "share transactions",
  needs: [...APIS, 22, 26],
  async run(script) {
    const settings = { "share.isolation.level": "read_committed" };
    const group = await Group.make(script, "d-share-txn", settings);
    await ready(script, "transaction");
    const made = await script.until(
      initProducerIdApi,
      4,
      { transactionalId: "d-share-txn", transactionTimeoutMs: 60_000 },
      ({ errorCode }) => errorCode === 0,
    );
    let { producerEpoch } = made;
    let epoch = 1;
    const { producerId } = made;
    for (const committed of [true, false, true]) {
      const records = batch(values(2), {
        producerId,
        producerEpoch,
        baseSequence: 0,
        transactional: true,
      });
      await script.until(produceApi, 12, {
        transactionalId: "d-share-txn",
        acks: -1,
        timeoutMs: 5_000,
        topicData: [{ name: "d-share-txn", partitionData: [{ index: 0, records }] }],
      }, ({ responses: [one] }) => one?.partitionResponses[0]?.errorCode === 0);
      await group.fetch(`open ${epoch}`, { epoch: epoch++, maxWaitMs: 100 });
      const ended = await script.until(
        endTxnApi,
        5,
        { transactionalId: "d-share-txn", producerId, producerEpoch, committed },
        ({ errorCode }) => errorCode === 0,
      );
      ({ producerEpoch } = ended);
    }
    await pause(KNOWN_MS);
    await group.fetch("all", { epoch: epoch++ });
    await group.offsets("aborted ones are done");
  },
};

export const SHARE_FETCH: readonly Scenario[] = [
  sessions,
  ranges,
  deliveries,
  window,
  transactions,
];
