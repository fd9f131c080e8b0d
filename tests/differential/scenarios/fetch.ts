/** Fetch with its sessions, ListOffsets and OffsetForLeaderEpoch. */
import { produceApi } from "../../../src/protocol/message/00_produce.ts";
import { fetchApi } from "../../../src/protocol/message/01_fetch.ts";
import { listOffsetsApi } from "../../../src/protocol/message/02_list_offsets.ts";
import { offsetForLeaderEpochApi } from "../../../src/protocol/message/23_offset_for_leader_epoch.ts";
import { batch, type BatchOptions, type Scenario, type Script } from "../script.ts";

const NO_ID = "000102030405060708090a0b0c0d0e0f";

interface Part {
  readonly partition?: number;
  readonly fetchOffset?: number;
  readonly partitionMaxBytes?: number;
  readonly currentLeaderEpoch?: number;
  readonly lastFetchedEpoch?: number;
}

function asking(topic: string, parts: readonly Part[], topicId = NO_ID) {
  return {
    maxWaitMs: 0,
    minBytes: 0,
    maxBytes: 1_000_000,
    sessionId: 0,
    sessionEpoch: -1,
    topics: [{
      topic,
      topicId,
      partitions: parts.map((part) => ({
        partition: 0,
        fetchOffset: 0,
        partitionMaxBytes: 1_000_000,
        ...part,
      })),
    }],
    forgottenTopicsData: [] as { topic: string; topicId: string; partitions: number[] }[],
    rackId: "",
  };
}

async function fill(
  script: Script,
  name: string,
  index: number,
  values: readonly string[],
  options: BatchOptions = {},
) {
  const { responses: [topic] } = await script.call(
    `fills ${name} ${index} with ${values[0]?.slice(0, 9)}`,
    produceApi,
    9,
    {
      acks: -1,
      timeoutMs: 5000,
      topicData: [{ name, partitionData: [{ index, records: batch(values, options) }] }],
    },
  );
  return topic!.partitionResponses[0]!.baseOffset;
}

const fetches: Scenario = {
  name: "fetch",
  async run(script) {
    const id = await script.topic("d-fetch", { partitions: 3 });
    await fill(script, "d-fetch", 0, ["a", "b", "c"]);
    await fill(script, "d-fetch", 0, ["d", "e"], { codec: "gzip" });
    await fill(script, "d-fetch", 0, ["f"], { codec: "zstd" });
    await fill(script, "d-fetch", 1, ["g".repeat(5000)]);
    await fill(script, "d-fetch", 1, ["h".repeat(5000)]);
    await script.versions("all", fetchApi, asking("d-fetch", [{}], id));
    const call = (label: string, part: Part, version = 12) =>
      script.call(label, fetchApi, version, asking("d-fetch", [part], id));
    for (const fetchOffset of [1, 2, 3, 4, 5, 6, 7, -1, -2, Number.MAX_SAFE_INTEGER]) {
      await call(`offset ${fetchOffset}`, { fetchOffset });
    }
    await call("unknown partition", { partition: 3 });
    await call("negative partition", { partition: -1 });
    await call("empty partition", { partition: 2 });
    await call("empty partition, offset 1", { partition: 2, fetchOffset: 1 });
    for (const currentLeaderEpoch of [0, 1, 99, -2]) {
      await call(`leader epoch ${currentLeaderEpoch}`, { currentLeaderEpoch });
      await call(`leader epoch ${currentLeaderEpoch} v16`, { currentLeaderEpoch }, 16);
    }
    for (const lastFetchedEpoch of [0, 1, -2]) {
      await call(`last fetched epoch ${lastFetchedEpoch}`, { lastFetchedEpoch, fetchOffset: 6 });
      await call(`last fetched epoch ${lastFetchedEpoch} at 3`, {
        lastFetchedEpoch,
        fetchOffset: 3,
      });
    }
    await call("last fetched epoch past the end", { lastFetchedEpoch: 0, fetchOffset: 9 });
    for (const version of [4, 11, 12]) {
      await script.check(
        `unknown topic v${version}`,
        fetchApi,
        version,
        asking("d-fetch-none", [{}]),
      );
    }
    for (const version of [13, 16, 18]) {
      await script.check(`unknown id v${version}`, fetchApi, version, asking("", [{}]));
    }
    await script.check("zero id", fetchApi, 13, asking("", [{}], "0".repeat(32)));
    await script.check("bad name", fetchApi, 12, asking("a b", [{}]));
    await script.check("no topics", fetchApi, 12, { ...asking("", []), topics: [] });
    await script.check("topic without partitions", fetchApi, 12, asking("d-fetch", []));
    await script.check("read committed", fetchApi, 12, {
      ...asking("d-fetch", [{}]),
      isolationLevel: 1,
    });
    await script.check("isolation level 7", fetchApi, 12, {
      ...asking("d-fetch", [{}]),
      isolationLevel: 7,
    });
    await call("one byte", { partitionMaxBytes: 1 });
    await call("no bytes", { partitionMaxBytes: 0 });
    const parts = [{ partition: 1 }, { partition: 0 }];
    await script.check("one byte in all", fetchApi, 12, {
      ...asking("d-fetch", parts),
      maxBytes: 1,
    });
    await script.check("6000 bytes in all", fetchApi, 12, {
      ...asking("d-fetch", parts),
      maxBytes: 6000,
    });
    await script.check(
      "6000 bytes each",
      fetchApi,
      12,
      asking("d-fetch", parts.map((part) => ({ ...part, partitionMaxBytes: 6000 }))),
    );
    await script.check(
      "two of three",
      fetchApi,
      12,
      asking("d-fetch", [{ partition: 0 }, { partition: 9 }]),
    );
    await script.check("waits in vain", fetchApi, 12, {
      ...asking("d-fetch", [{ fetchOffset: 6 }]),
      maxWaitMs: 100,
      minBytes: 1,
    });
    await script.check(
      "partition twice",
      fetchApi,
      12,
      asking("d-fetch", [{}, { fetchOffset: 3 }]),
    );
    const [place] = asking("d-fetch", [{}]).topics;
    await script.check("topic twice", fetchApi, 12, {
      ...asking("d-fetch", []),
      topics: [place!, ...asking("d-fetch", [{ partition: 1 }]).topics, place!],
    });
    await call("last fetched epoch below the start", { lastFetchedEpoch: 0, fetchOffset: -1 });
    await script.check("as a replica", fetchApi, 12, { ...asking("d-fetch", [{}]), replicaId: 1 });
    await script.check("as a debug consumer", fetchApi, 12, {
      ...asking("d-fetch", [{}]),
      replicaId: -2,
    });
    await script.check("from a rack", fetchApi, 12, { ...asking("d-fetch", [{}]), rackId: "r1" });
    await script.check(
      "offset in the middle of a packed batch",
      fetchApi,
      12,
      asking("d-fetch", [{ fetchOffset: 4 }]),
    );
    const waiting = await script.begin("woken by a record", fetchApi, 12, {
      ...asking("d-fetch", [{ partition: 2 }]),
      maxWaitMs: 10_000,
      minBytes: 1,
    }, { on: "second" });
    await fill(script, "d-fetch", 2, ["wake"]);
    await waiting.answer();
  },
};

const sessions: Scenario = {
  name: "fetch sessions",
  async run(script) {
    const id = await script.topic("d-session", { partitions: 3 });
    await fill(script, "d-session", 0, ["a"]);
    const full = asking("d-session", [{ partition: 0 }, { partition: 1 }, { partition: 2 }]);
    const open = await script.call("opens", fetchApi, 12, { ...full, sessionEpoch: 0 });
    const go = (
      label: string,
      sessionEpoch: number,
      parts: readonly Part[] = [],
      { sessionId = open.sessionId!, forget = [] as number[], version = 12 } = {},
    ) =>
      script.call(label, fetchApi, version, {
        ...asking("d-session", parts, id),
        ...(parts.length === 0 ? { topics: [] } : {}),
        sessionId,
        sessionEpoch,
        forgottenTopicsData: forget.length === 0
          ? []
          : [{ topic: "d-session", topicId: id, partitions: forget }],
      });
    await go("nothing changed", 1);
    await go("moves on", 2, [{ partition: 0, fetchOffset: 1 }]);
    await go("still nothing", 3);
    await fill(script, "d-session", 1, ["b"]);
    await go("one has news", 4);
    await go("not taken, so again", 5);
    await go("taken", 6, [{ partition: 1, fetchOffset: 1 }]);
    await go("wrong epoch", 9);
    await go("old epoch", 6);
    await go("after the wrong ones", 7);
    await go("unknown session", 1, [], { sessionId: 123_456 });
    await go("forgets", 8, [], { forget: [2] });
    await fill(script, "d-session", 2, ["c"]);
    await go("forgotten is not seen", 9);
    await go("unknown partition joins", 10, [{ partition: 9 }]);
    await go("unknown partition stays", 11);
    await go("offset out of range", 12, [{ partition: 0, fetchOffset: 50 }]);
    await go("offset still out of range", 13);
    await go("other version", 14, [], { version: 13 });
    await go("closes", -1, [{ partition: 0 }]);
    await go("closed", 15);
    await script.check("no session", fetchApi, 12, full);
    await script.check("epoch without id", fetchApi, 12, { ...full, sessionEpoch: 5 });
    await script.check("negative session", fetchApi, 12, {
      ...full,
      sessionId: -5,
      sessionEpoch: 0,
    });
    await script.check("by id opens", fetchApi, 13, { ...asking("", [{}], id), sessionEpoch: 0 });
    await script.check("unknown id opens", fetchApi, 13, { ...asking("", [{}]), sessionEpoch: 0 });
  },
};

const offsets: Scenario = {
  name: "list offsets",
  async run(script) {
    await script.topic("d-list", { partitions: 3 });
    await fill(script, "d-list", 0, ["a", "b", "c"], { timestampMs: 1_700_000_000_000 });
    await fill(script, "d-list", 0, ["d", "e"], { timestampMs: 1_700_000_005_000, codec: "gzip" });
    await fill(script, "d-list", 0, ["f", "g"], { timestampMs: 1_700_000_001_000 });
    await fill(script, "d-list", 0, ["h"], { timestampMs: 1_700_000_009_000 });
    await fill(script, "d-list", 0, ["i"], { timestampMs: 1_700_000_009_000 });
    await fill(script, "d-list", 2, ["untimed", "as well"], { timestampMs: -1 });
    await fill(script, "d-list", 2, ["untimed too"], { timestampMs: -1 });
    const request = (
      timestamp: number,
      partitionIndex = 0,
      extra: { readonly currentLeaderEpoch?: number } = {},
    ) => ({
      replicaId: -1,
      isolationLevel: 0,
      timeoutMs: 1000,
      topics: [{ name: "d-list", partitions: [{ partitionIndex, timestamp, ...extra }] }],
    });
    await script.versions("earliest", listOffsetsApi, request(-2));
    await script.versions("latest", listOffsetsApi, request(-1));
    await script.versions("by time", listOffsetsApi, request(1_700_000_000_001));
    for (const special of [-3, -4, -5, -6, -7]) {
      await script.versions(`special ${special}`, listOffsetsApi, request(special), { from: 6 });
      await script.check(
        `special ${special}, empty partition`,
        listOffsetsApi,
        11,
        request(special, 1),
      );
    }
    for (const at of [-1, 999, 1000, 2000, 5000, 5001, 8999, 9000, 9001]) {
      await script.check(
        `at 1700000000000 + ${at}`,
        listOffsetsApi,
        9,
        request(1_700_000_000_000 + at),
      );
    }
    await script.check("at 0", listOffsetsApi, 9, request(0));
    await script.check("at the end of time", listOffsetsApi, 9, request(Number.MAX_SAFE_INTEGER));
    for (const timestamp of [-2, -1, 0, 5]) {
      await script.check(`empty partition ${timestamp}`, listOffsetsApi, 9, request(timestamp, 1));
      await script.check(`untimed record ${timestamp}`, listOffsetsApi, 9, request(timestamp, 2));
    }
    await script.check("untimed record -3", listOffsetsApi, 9, request(-3, 2));
    await script.check("unknown partition", listOffsetsApi, 9, request(-1, 3));
    await script.check("negative partition", listOffsetsApi, 9, request(-1, -1));
    for (const currentLeaderEpoch of [0, 1, 99, -2]) {
      await script.check(
        `leader epoch ${currentLeaderEpoch}`,
        listOffsetsApi,
        9,
        request(-1, 0, { currentLeaderEpoch }),
      );
    }
    await script.check("unknown topic", listOffsetsApi, 9, {
      ...request(-1),
      topics: [{ name: "d-list-none", partitions: [{ partitionIndex: 0, timestamp: -1 }] }],
    });
    await script.check("partition twice", listOffsetsApi, 9, {
      ...request(-1),
      topics: [{
        name: "d-list",
        partitions: [{ partitionIndex: 0, timestamp: -1 }, { partitionIndex: 0, timestamp: -2 }],
      }],
    });
    await script.check("topic twice", listOffsetsApi, 9, {
      ...request(-1),
      topics: [-1, -2].map((timestamp) => ({
        name: "d-list",
        partitions: [{ partitionIndex: 0, timestamp }],
      })),
    });
    await script.check("read committed", listOffsetsApi, 9, { ...request(-1), isolationLevel: 1 });
    await script.check("no topics", listOffsetsApi, 9, { ...request(-1), topics: [] });
    await script.check("as a replica", listOffsetsApi, 9, { ...request(-1), replicaId: 1 });
    await script.check("as a debug consumer", listOffsetsApi, 9, { ...request(-1), replicaId: -2 });
  },
};

const epochs: Scenario = {
  name: "leader epochs",
  async run(script) {
    await script.topic("d-epoch", { partitions: 2 });
    await fill(script, "d-epoch", 0, ["a", "b"]);
    const request = (leaderEpoch: number, partition = 0, currentLeaderEpoch = -1) => ({
      replicaId: -1,
      topics: [{ topic: "d-epoch", partitions: [{ partition, currentLeaderEpoch, leaderEpoch }] }],
    });
    await script.versions("current", offsetForLeaderEpochApi, request(0));
    for (const epoch of [-2, -1, 1, 2147483647]) {
      await script.check(`epoch ${epoch}`, offsetForLeaderEpochApi, 4, request(epoch));
    }
    await script.check("empty partition", offsetForLeaderEpochApi, 4, request(0, 1));
    await script.check("unknown partition", offsetForLeaderEpochApi, 4, request(0, 2));
    for (const current of [0, 1, 99, -2]) {
      await script.check(
        `current epoch ${current}`,
        offsetForLeaderEpochApi,
        4,
        request(0, 0, current),
      );
    }
    await script.check("unknown topic", offsetForLeaderEpochApi, 4, {
      replicaId: -1,
      topics: [{ topic: "d-epoch-none", partitions: [{ partition: 0, leaderEpoch: 0 }] }],
    });
    await script.check("as a replica", offsetForLeaderEpochApi, 4, { ...request(0), replicaId: 1 });
    await script.check("no topics", offsetForLeaderEpochApi, 4, { replicaId: -1, topics: [] });
  },
};

export const FETCH = [fetches, sessions, offsets, epochs];
