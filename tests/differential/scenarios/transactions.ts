/** Transactions of both kinds: their life, their errors, and what readers and admins see of them. */
import { produceApi } from "../../../src/protocol/message/00_produce.ts";
import { fetchApi } from "../../../src/protocol/message/01_fetch.ts";
import { listOffsetsApi } from "../../../src/protocol/message/02_list_offsets.ts";
import { offsetFetchApi } from "../../../src/protocol/message/09_offset_fetch.ts";
import { initProducerIdApi } from "../../../src/protocol/message/22_init_producer_id.ts";
import { addPartitionsToTxnApi } from "../../../src/protocol/message/24_add_partitions_to_txn.ts";
import { addOffsetsToTxnApi } from "../../../src/protocol/message/25_add_offsets_to_txn.ts";
import { endTxnApi } from "../../../src/protocol/message/26_end_txn.ts";
import { writeTxnMarkersApi } from "../../../src/protocol/message/27_write_txn_markers.ts";
import { txnOffsetCommitApi } from "../../../src/protocol/message/28_txn_offset_commit.ts";
import { describeProducersApi } from "../../../src/protocol/message/61_describe_producers.ts";
import { describeTransactionsApi } from "../../../src/protocol/message/65_describe_transactions.ts";
import { listTransactionsApi } from "../../../src/protocol/message/66_list_transactions.ts";
import { ready } from "./ready.ts";
import { batch, type Scenario, type Script } from "../script.ts";

const APIS = [24, 25, 26, 27, 28, 61, 65, 66];

interface Producer {
  readonly transactionalId: string;
  readonly producerId: number;
  readonly producerEpoch: number;
}

/** Markers follow the answer of EndTxn. */
async function ended(script: Script, transactionalId: string): Promise<void> {
  await script.until(
    describeTransactionsApi,
    0,
    { transactionalIds: [transactionalId] },
    ({ transactionStates: [one] }) => !(one?.transactionState ?? "").startsWith("Prepare"),
  );
}

async function init(
  script: Script,
  label: string,
  transactionalId: string,
  of: { readonly producerId?: number; readonly producerEpoch?: number; readonly version?: number } =
    {},
): Promise<Producer> {
  const { version = 5, ...rest } = of;
  const { producerId, producerEpoch } = await script.call(label, initProducerIdApi, version, {
    transactionalId,
    transactionTimeoutMs: 60_000,
    ...rest,
  });
  return { transactionalId, producerId: producerId ?? -1, producerEpoch };
}

function adding(producer: Producer, topic: string, ...partitions: readonly number[]) {
  const topics = [{ name: topic, partitions }];
  return {
    v3AndBelowTransactionalId: producer.transactionalId,
    v3AndBelowProducerId: producer.producerId,
    v3AndBelowProducerEpoch: producer.producerEpoch,
    v3AndBelowTopics: topics,
    transactions: [{ ...producer, topics }],
  };
}

function producing(
  { transactionalId, producerId, producerEpoch }: Producer,
  name: string,
  baseSequence: number,
  index = 0,
) {
  const records = batch([`k=v${baseSequence}`], {
    producerId,
    producerEpoch,
    baseSequence,
    transactional: true,
  });
  return {
    transactionalId,
    acks: -1,
    timeoutMs: 5000,
    topicData: [{ name, partitionData: [{ index, records }] }],
  };
}

async function seen(script: Script, label: string, topic: string): Promise<void> {
  for (const isolationLevel of [0, 1]) {
    await script.check(`${label}: fetch at level ${isolationLevel}`, fetchApi, 11, {
      maxWaitMs: 0,
      minBytes: 0,
      maxBytes: 1_000_000,
      isolationLevel,
      sessionId: 0,
      topics: [{
        topic,
        partitions: [{ partition: 0, fetchOffset: 0, partitionMaxBytes: 1_000_000 }],
      }],
      forgottenTopicsData: [],
      rackId: "",
    });
    await script.check(`${label}: end at level ${isolationLevel}`, listOffsetsApi, 9, {
      replicaId: -1,
      isolationLevel,
      topics: [{ name: topic, partitions: [{ partitionIndex: 0, timestamp: -1 }] }],
    });
  }
  await script.check(`${label}: producers`, describeProducersApi, 0, {
    topics: [{ name: topic, partitionIndexes: [0] }],
  });
}

const first: Scenario = {
  name: "transactions v1",
  needs: APIS,
  async run(script) {
    await ready(script, "group", "transaction");
    await script.topic("d-txn", { partitions: 2 });
    let producer = await init(script, "first use", "d-txn-1", { version: 4 });
    const { transactionalId } = producer;
    const end = (label: string, committed: boolean, of: Partial<Producer> = {}, version = 3) =>
      script.check(label, endTxnApi, version, { ...producer, ...of, committed });
    const describe = (label: string) =>
      script.check(label, describeTransactionsApi, 0, { transactionalIds: [transactionalId] });
    await describe("describe, empty");
    await end("commit, empty", true);
    await end("abort, empty", false);
    await script.check(
      "produce before it is added",
      produceApi,
      9,
      producing(producer, "d-txn", 0),
    );
    await script.check(
      "produce before it is added v11",
      produceApi,
      11,
      producing(producer, "d-txn", 0),
    );
    await script.check("add", addPartitionsToTxnApi, 3, adding(producer, "d-txn", 0));
    await script.check("add again", addPartitionsToTxnApi, 3, adding(producer, "d-txn", 0));
    await script.check(
      "add an unknown topic",
      addPartitionsToTxnApi,
      3,
      adding(producer, "d-txn-none", 0),
    );
    await script.check("add an unknown partition", addPartitionsToTxnApi, 3, {
      ...adding(producer, "d-txn", 1, 9),
    });
    await script.check("add nothing", addPartitionsToTxnApi, 3, adding(producer, "d-txn"));
    await script.versions("verify", addPartitionsToTxnApi, {
      transactions: [{
        ...producer,
        verifyOnly: true,
        topics: [{ name: "d-txn", partitions: [0, 1] }],
      }],
    }, { from: 4 });
    await describe("describe, ongoing");
    await script.check("produce", produceApi, 9, producing(producer, "d-txn", 0));
    await script.check("produce again", produceApi, 9, producing(producer, "d-txn", 0));
    await script.check("produce with a gap", produceApi, 9, producing(producer, "d-txn", 5));
    await script.check("produce without a transaction", produceApi, 9, {
      ...producing(producer, "d-txn", 1),
      topicData: [{
        name: "d-txn",
        partitionData: [{
          index: 0,
          records: batch(["x"], { ...producer, baseSequence: 1 }),
        }],
      }],
    });
    await seen(script, "open", "d-txn");
    await script.versions("list", listTransactionsApi, { stateFilters: [], producerIdFilters: [] });
    await end("commit", true);
    await ended(script, transactionalId);
    await describe("describe, committed");
    await end("commit again", true);
    await end("abort after commit", false);
    await seen(script, "committed", "d-txn");
    await script.check("add for the next", addPartitionsToTxnApi, 3, adding(producer, "d-txn", 0));
    await script.check("produce the next", produceApi, 9, producing(producer, "d-txn", 1));
    await end("abort", false);
    await ended(script, transactionalId);
    await end("abort again", false);
    await end("commit after abort", true);
    await describe("describe, aborted");
    await seen(script, "aborted", "d-txn");
    for (
      const [label, of] of [
        ["unknown id", { transactionalId: "d-txn-none" }],
        ["empty id", { transactionalId: "" }],
        ["other producer", { producerId: 999_999 }],
        ["higher epoch", { producerEpoch: producer.producerEpoch + 1 }],
        ["lower epoch", { producerEpoch: producer.producerEpoch - 1 }],
      ] as const
    ) {
      const other = { ...producer, ...of };
      await script.versions(`${label}: add`, addPartitionsToTxnApi, adding(other, "d-txn", 0), {
        to: 3,
      });
      await script.check(`${label}: add offsets`, addOffsetsToTxnApi, 3, {
        ...other,
        groupId: "d-txn-group",
      });
      await script.versions(`${label}: end`, endTxnApi, { ...other, committed: true }, { to: 4 });
      await script.check(`${label}: produce`, produceApi, 9, producing(other, "d-txn", 2));
    }
    const old = producer;
    producer = await init(script, "bump", transactionalId);
    await script.check("add by the old epoch", addPartitionsToTxnApi, 3, adding(old, "d-txn", 0));
    await script.check("produce by the old epoch", produceApi, 9, producing(old, "d-txn", 2));
    producer = await init(script, "bump with what is known", transactionalId, producer);
    await init(script, "bump with what was known before", transactionalId, old);
    await init(script, "bump with what was known before v3", transactionalId, {
      ...old,
      version: 3,
    });
    await script.check(
      "add for the fenced one",
      addPartitionsToTxnApi,
      3,
      adding(producer, "d-txn", 0),
    );
    await script.check(
      "produce for the fenced one",
      produceApi,
      9,
      producing(producer, "d-txn", 0),
    );
    await init(script, "fence an open transaction", transactionalId);
    await ended(script, transactionalId);
    await end("commit by the fenced one", true);
    await end("commit by the fenced one v1", true, {}, 1);
    await init(script, "after the fence", transactionalId);
    await seen(script, "after all", "d-txn");
    for (const transactionTimeoutMs of [0, -1, 900_000, 900_001]) {
      await script.check(`time-out ${transactionTimeoutMs}`, initProducerIdApi, 5, {
        transactionalId: "d-txn-time",
        transactionTimeoutMs,
      });
    }
  },
};

const second: Scenario = {
  name: "transactions v2",
  needs: APIS,
  async run(script) {
    await ready(script, "group", "transaction");
    await script.topic("d-txn2");
    let producer = await init(script, "first use", "d-txn-2");
    const { transactionalId } = producer;
    async function end(
      label: string,
      committed: boolean,
      of: Partial<Producer> = {},
    ): Promise<void> {
      const answer = await script.call(label, endTxnApi, 5, { ...producer, ...of, committed });
      if (answer.errorCode !== 0) return;
      producer = {
        transactionalId,
        producerId: answer.producerId ?? -1,
        producerEpoch: answer.producerEpoch ?? -1,
      };
      await ended(script, transactionalId);
    }
    await end("commit, empty", true);
    await end("abort, empty", false);
    await script.check("produce adds", produceApi, 12, producing(producer, "d-txn2", 0));
    await seen(script, "open", "d-txn2");
    await end("commit", true);
    await end("commit as a retry", true, { producerEpoch: producer.producerEpoch - 1 });
    await end("abort as a retry", false, { producerEpoch: producer.producerEpoch - 1 });
    await end("commit, nothing open", true);
    await end("abort, nothing open", false);
    await script.check("produce the next", produceApi, 12, producing(producer, "d-txn2", 0));
    await script.check("produce more", produceApi, 12, producing(producer, "d-txn2", 1));
    await end("abort", false);
    await end("abort as a retry again", false, { producerEpoch: producer.producerEpoch - 1 });
    await end("commit as a retry again", true, { producerEpoch: producer.producerEpoch - 1 });
    await seen(script, "aborted", "d-txn2");
    await script.check("produce not from 0", produceApi, 12, producing(producer, "d-txn2", 7));
    await script.check(
      "produce by an old epoch",
      produceApi,
      12,
      producing(
        {
          ...producer,
          producerEpoch: producer.producerEpoch - 1,
        },
        "d-txn2",
        0,
      ),
    );
    await script.check(
      "produce by a later epoch",
      produceApi,
      12,
      producing(
        {
          ...producer,
          producerEpoch: producer.producerEpoch + 5,
        },
        "d-txn2",
        0,
      ),
    );
    await end("by a later epoch", true, { producerEpoch: producer.producerEpoch + 5 });
    await end("by another producer", true, { producerId: 999_999 });
    await end("by an unknown id", true, { transactionalId: "d-txn-none" });
    await script.check("describe", describeTransactionsApi, 0, {
      transactionalIds: [transactionalId],
    });
  },
};

const offsets: Scenario = {
  name: "offsets in transactions",
  needs: APIS,
  async run(script) {
    await ready(script, "group", "transaction");
    await script.topic("d-txn3");
    let producer = await init(script, "first use", "d-txn-3");
    const group = "d-txn-group";
    const committing = (committedOffset: number, of: {
      readonly generationId?: number;
      readonly memberId?: string;
      readonly groupId?: string;
      readonly producerEpoch?: number;
      readonly name?: string;
      readonly committedMetadata?: string;
    } = {}) => {
      const { name = "d-txn3", committedMetadata = "", ...rest } = of;
      return {
        groupId: group,
        ...producer,
        ...rest,
        topics: [{ name, partitions: [{ partitionIndex: 0, committedOffset, committedMetadata }] }],
      };
    };
    const fetched = (label: string, requireStable = false) =>
      script.check(label, offsetFetchApi, 7, {
        groupId: group,
        topics: [{ name: "d-txn3", partitionIndexes: [0] }],
        requireStable,
      });
    await script.check("commit before the group is added", txnOffsetCommitApi, 3, committing(1));
    await script.check("commit before the group is added v4", txnOffsetCommitApi, 4, committing(1));
    await script.check("add the group", addOffsetsToTxnApi, 3, { ...producer, groupId: group });
    await script.check("add the empty group", addOffsetsToTxnApi, 3, { ...producer, groupId: "" });
    await script.versions("commit", txnOffsetCommitApi, (version) => committing(10 + version), {
      to: 4,
    });
    await script.check(
      "unknown topic",
      txnOffsetCommitApi,
      3,
      committing(5, { name: "d-txn-none" }),
    );
    await script.check(
      "metadata too large",
      txnOffsetCommitApi,
      3,
      committing(5, { committedMetadata: "m".repeat(4097) }),
    );
    await script.check(
      "unknown member",
      txnOffsetCommitApi,
      3,
      committing(5, { memberId: "x", generationId: 1 }),
    );
    await script.check(
      "generation alone",
      txnOffsetCommitApi,
      3,
      committing(5, { generationId: 1 }),
    );
    await script.check("empty group", txnOffsetCommitApi, 3, committing(5, { groupId: "" }));
    await script.check("old epoch", txnOffsetCommitApi, 3, committing(5, { producerEpoch: -1 }));
    await fetched("fetch while open");
    await fetched("fetch stable while open", true);
    await script.check("describe", describeTransactionsApi, 0, { transactionalIds: ["d-txn-3"] });
    await script.check("end", endTxnApi, 4, { ...producer, committed: true });
    await ended(script, "d-txn-3");
    await fetched("fetch after commit", true);
    producer = await init(script, "bump", "d-txn-3");
    await script.check("commit v5 adds the group", txnOffsetCommitApi, 5, committing(77));
    await fetched("fetch stable while open again", true);
    await script.check("abort", endTxnApi, 5, { ...producer, committed: false });
    await ended(script, "d-txn-3");
    await fetched("fetch after abort", true);
  },
};

const admin: Scenario = {
  name: "transactions seen by admins",
  needs: APIS,
  async run(script) {
    await ready(script, "group", "transaction");
    await script.topic("d-txn4");
    const producer = await init(script, "first use", "d-txn-4");
    await script.check("describe unknown", describeTransactionsApi, 0, {
      transactionalIds: ["d-txn-none", "d-txn-4"],
    });
    await script.check("describe the empty id", describeTransactionsApi, 0, {
      transactionalIds: [""],
    });
    await script.check("describe nothing", describeTransactionsApi, 0, { transactionalIds: [] });
    for (const state of ["Empty", "Ongoing", "CompleteCommit", "Dead", "Nonsense", ""]) {
      await script.check(`list ${state || "no state"}`, listTransactionsApi, 0, {
        stateFilters: [state],
        producerIdFilters: [],
      });
    }
    await script.check("list by producer", listTransactionsApi, 0, {
      stateFilters: [],
      producerIdFilters: [producer.producerId],
    });
    await script.check("list by unknown producer", listTransactionsApi, 0, {
      stateFilters: [],
      producerIdFilters: [999_999],
    });
    await script.check("list by duration", listTransactionsApi, 1, {
      stateFilters: [],
      producerIdFilters: [],
      durationFilter: 3_600_000,
    });
    for (const transactionalIdPattern of ["d-txn-4", "d-txn-[14]", "nothing", "(", ""]) {
      await script.check(
        `list by pattern ${transactionalIdPattern || "empty"}`,
        listTransactionsApi,
        2,
        {
          stateFilters: [],
          producerIdFilters: [],
          transactionalIdPattern,
        },
      );
    }
    await script.check("producers of an unknown topic", describeProducersApi, 0, {
      topics: [{ name: "d-txn-none", partitionIndexes: [0] }],
    });
    await script.check("producers of an unknown partition", describeProducersApi, 0, {
      topics: [{ name: "d-txn4", partitionIndexes: [0, 7] }],
    });
    await script.check("produce", produceApi, 12, producing(producer, "d-txn4", 0));
    const marking = (
      of: {
        readonly producerEpoch?: number;
        readonly coordinatorEpoch?: number;
        readonly producerId?: number;
      } = {},
      name = "d-txn4",
      partition = 0,
    ) => ({
      markers: [{
        producerId: producer.producerId,
        producerEpoch: producer.producerEpoch,
        transactionResult: false,
        coordinatorEpoch: 0,
        ...of,
        topics: [{ name, partitionIndexes: [partition] }],
      }],
    });
    await script.check(
      "marker of an old epoch",
      writeTxnMarkersApi,
      1,
      marking({ producerEpoch: -1 }),
    );
    await script.check(
      "marker for an unknown topic",
      writeTxnMarkersApi,
      1,
      marking({}, "d-txn-none"),
    );
    await script.check(
      "marker for an unknown partition",
      writeTxnMarkersApi,
      1,
      marking({}, "d-txn4", 9),
    );
    await script.check(
      "marker of an unknown producer",
      writeTxnMarkersApi,
      1,
      marking({ producerId: 999_998 }),
    );
    await seen(script, "before the marker", "d-txn4");
    await script.check("marker", writeTxnMarkersApi, 1, marking());
    await seen(script, "after the marker", "d-txn4");
    await script.check("markers of none", writeTxnMarkersApi, 1, { markers: [] });
  },
};

export const TRANSACTIONS = [first, second, offsets, admin];
