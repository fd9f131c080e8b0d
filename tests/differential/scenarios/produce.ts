/** Produce: every check of a request and of a batch, and the sequence rules. */
import { produceApi } from "../../../src/protocol/message/00_produce.ts";
import { initProducerIdApi } from "../../../src/protocol/message/22_init_producer_id.ts";
import { concatBytes } from "../../../src/lib/bytes.ts";
import { ready } from "./ready.ts";
import { fetchAll } from "./fetch_all.ts";
import { batch, changed, type Scenario, type Script } from "../script.ts";

function to(name: string, records: Uint8Array | null, index = 0, acks = -1) {
  return { acks, timeoutMs: 5000, topicData: [{ name, partitionData: [{ index, records }] }] };
}

const MAGIC_AT = 16;
const ATTRIBUTES_AT = 21;
const LAST_DELTA_AT = 23;
const MAX_TIMESTAMP_AT = 35;
const PRODUCER_ID_AT = 43;
const PRODUCER_EPOCH_AT = 51;
const SEQUENCE_AT = 53;
const COUNT_AT = 57;

const checks: Scenario = {
  name: "produce",
  async run(script) {
    const id = await script.topic("d-produce", { partitions: 120 });
    const one = batch(["a"]);
    // Each in a partition of its own, so that one difference does not move what follows.
    let partition = 10;
    async function call(label: string, records: Uint8Array | null, version = 9): Promise<void> {
      partition += 1;
      await script.check(label, produceApi, version, to("d-produce", records, partition));
      await fetchAll(script, `${label}: stored`, "d-produce", partition);
    }
    await script.versions("good", produceApi, {
      ...to("d-produce", one),
      topicData: [{ name: "d-produce", topicId: id, partitionData: [{ index: 0, records: one }] }],
    });
    for (const acks of [1, 2, -2, 32767]) {
      await script.check(`acks ${acks}`, produceApi, 9, to("d-produce", one, 0, acks));
    }
    await script.check("unknown topic", produceApi, 9, to("d-produce-none", one));
    await script.check("unknown topic v12", produceApi, 12, to("d-produce-none", one));
    await script.check("unknown id", produceApi, 13, {
      acks: -1,
      timeoutMs: 5000,
      topicData: [{
        topicId: "000102030405060708090a0b0c0d0e0f",
        partitionData: [{ index: 0, records: one }],
      }],
    });
    await script.check("unknown partition", produceApi, 9, to("d-produce", one, 120));
    await script.check("negative partition", produceApi, 9, to("d-produce", one, -1));
    await script.check("bad topic name", produceApi, 9, to("a b", one));
    await script.check("no topics", produceApi, 9, { acks: -1, timeoutMs: 5000, topicData: [] });
    await script.check("partition twice", produceApi, 9, {
      acks: -1,
      timeoutMs: 5000,
      topicData: [{
        name: "d-produce",
        partitionData: [{ index: 0, records: batch(["1st"]) }, {
          index: 0,
          records: batch(["2nd"]),
        }],
      }],
    });
    await script.check("topic twice", produceApi, 9, {
      acks: -1,
      timeoutMs: 5000,
      topicData: [
        { name: "d-produce", partitionData: [{ index: 0, records: batch(["3rd"]) }] },
        {
          name: "d-produce",
          partitionData: [
            { index: 120, records: one },
            { index: 0, records: batch(["4th"]) },
            { index: 120, records: one },
          ],
        },
        { name: "d-produce-none", partitionData: [] },
      ],
    });
    await call("null records", null);
    await call("empty records", new Uint8Array(0));
    await call("two batches", concatBytes([one, one]));
    await call("half a batch", one.subarray(0, 40));
    await call("cut off in its records", one.subarray(0, one.length - 2));
    await call("bytes after it", concatBytes([one, new Uint8Array(5)]));
    for (const magic of [0, 1, 3, -1]) {
      await call(`magic ${magic}`, changed(one, (view) => view.setInt8(MAGIC_AT, magic)));
    }
    await call("wrong checksum", changed(one, (view) => view.setInt8(60, 9), { sealed: false }));
    await call("base offset 5", changed(one, (view) => view.setBigInt64(0, 5n)));
    await call("length field too small", changed(one, (view) => view.setInt32(8, 20)));
    await call("length field negative", changed(one, (view) => view.setInt32(8, -1)));
    await call("length field too large", changed(one, (view) => view.setInt32(8, 500)));
    await call("count 0", changed(one, (view) => view.setInt32(COUNT_AT, 0)));
    await call("count -1", changed(one, (view) => view.setInt32(COUNT_AT, -1)));
    await call(
      "count above",
      changed(one, (view) => {
        view.setInt32(COUNT_AT, 2);
        view.setInt32(LAST_DELTA_AT, 1);
      }),
    );
    await call(
      "count below",
      changed(batch(["a", "b"]), (view) => {
        view.setInt32(COUNT_AT, 1);
        view.setInt32(LAST_DELTA_AT, 0);
      }),
    );
    await call("last delta off", changed(one, (view) => view.setInt32(LAST_DELTA_AT, 5)));
    await call("control flag", batch(["a"], { control: true }));
    await call("append time flag", changed(one, (view) => view.setInt16(ATTRIBUTES_AT, 8)));
    await call(
      "append time flag, packed",
      changed(batch(["a"], { codec: "gzip" }), (view) => view.setInt16(ATTRIBUTES_AT, 9)),
    );
    await call("unknown codec", changed(one, (view) => view.setInt16(ATTRIBUTES_AT, 5)));
    await call("codec 7", changed(one, (view) => view.setInt16(ATTRIBUTES_AT, 7)));
    await call("unused attribute", changed(one, (view) => view.setInt16(ATTRIBUTES_AT, 0x100)));
    await call("delete horizon flag", changed(one, (view) => view.setInt16(ATTRIBUTES_AT, 0x40)));
    await call("claims gzip", changed(one, (view) => view.setInt16(ATTRIBUTES_AT, 1)));
    await call(
      "wrong max timestamp",
      changed(one, (view) => view.setBigInt64(MAX_TIMESTAMP_AT, 9n)),
    );
    await call("no timestamp", batch(["a"], { timestampMs: -1 }));
    await call("records are noise", changed(one, (view) => view.setInt8(61, 99)));
    await call(
      "producer without sequence",
      changed(one, (view) => {
        view.setBigInt64(PRODUCER_ID_AT, 777n);
        view.setInt16(PRODUCER_EPOCH_AT, 0);
      }),
    );
    await call(
      "producer without epoch",
      changed(one, (view) => {
        view.setBigInt64(PRODUCER_ID_AT, 777n);
        view.setInt32(SEQUENCE_AT, 0);
      }),
    );
    await call(
      "transactional without id",
      batch(["a"], {
        producerId: 5,
        producerEpoch: 0,
        baseSequence: 0,
        transactional: true,
      }),
    );
    for (const codec of ["gzip", "snappy", "lz4", "zstd"] as const) {
      const packed = batch(["a", "b", "c"], { codec });
      await call(codec, packed);
      await call(`${codec} broken`, changed(packed, (view) => view.setInt8(64, 99)));
      await call(
        `${codec} count above`,
        changed(packed, (view) => {
          view.setInt32(COUNT_AT, 4);
          view.setInt32(LAST_DELTA_AT, 3);
        }),
      );
      await call(
        `${codec} count below`,
        changed(packed, (view) => {
          view.setInt32(COUNT_AT, 2);
          view.setInt32(LAST_DELTA_AT, 1);
        }),
      );
    }
    await call("zstd v6", batch(["a"], { codec: "zstd" }), 6);
    await call("zstd v7", batch(["a"], { codec: "zstd" }), 7);
    await call("too large", batch(["x".repeat(1_048_600)]));
    await call("largest", batch(["x".repeat(1_048_500)]));
    await script.silent("acks 0", produceApi, 9, to("d-produce", one, 0, 0));
    await script.silent(
      "acks 0 to an unknown topic",
      produceApi,
      9,
      to("d-produce-none", one, 0, 0),
    );
    await script.silent(
      "acks 0 with a bad batch",
      produceApi,
      9,
      to("d-produce", one.subarray(0, 40), 0, 0),
    );
    await script.check("internal topic", produceApi, 9, to("__consumer_offsets", one));
    await fetchAll(script, "stored", "d-produce");
  },
};

const times: Scenario = {
  name: "produce by topic settings",
  async run(script) {
    const topics: Readonly<Record<string, Readonly<Record<string, string>>>> = {
      compacted: { "cleanup.policy": "compact" },
      "both-policies": { "cleanup.policy": "compact,delete" },
      "append-time": { "message.timestamp.type": "LogAppendTime" },
      "time-limits": {
        "message.timestamp.before.max.ms": "60000",
        "message.timestamp.after.max.ms": "60000",
      },
      small: { "max.message.bytes": "200" },
      gzip: { "compression.type": "gzip" },
      uncompressed: { "compression.type": "uncompressed" },
      "two-replicas": { "min.insync.replicas": "2" },
    };
    for (const [topic, configs] of Object.entries(topics)) {
      const name = `d-set-${topic}`;
      await script.topic(name, { configs });
      const call = (label: string, records: Uint8Array, acks = -1) =>
        script.check(`${topic}: ${label}`, produceApi, 9, to(name, records, 0, acks));
      await call("no key", batch(["a"]));
      await call("some without key", batch(["k=a", "b", "c", "k=d"]));
      await call("keys", batch(["k=a", "l=b"]));
      await call("keys, zstd", batch(["k=a", "l=b"], { codec: "zstd" }));
      await call("no key, zstd", batch(["k=a", "l"], { codec: "zstd" }));
      await call("now", batch(["k=now"], { timestampMs: script.nowMs }));
      await call("an hour ahead", batch(["k=ahead"], { timestampMs: script.nowMs + 3_500_000 }));
      await call(
        "two hours ahead",
        batch(["k=ahead", "k=b"], { timestampMs: script.nowMs + 7_200_000 }),
      );
      await call("long ago", batch(["k=ago"], { timestampMs: 1 }));
      await call("300 bytes", batch([`k=${"x".repeat(300)}`]));
      await call("300 bytes packed", batch([`k=${"x".repeat(300)}`], { codec: "gzip" }));
      await call("acks 1", batch(["k=a"]), 1);
      await fetchAll(script, `${topic}: stored`, name);
    }
  },
};

async function freshProducer(script: Script, label: string): Promise<number> {
  const { producerId } = await script.call(label, initProducerIdApi, 4, {
    transactionalId: null,
    transactionTimeoutMs: 60_000,
  });
  return producerId;
}

const sequences: Scenario = {
  name: "sequences",
  async run(script) {
    await ready(script, "producer ids");
    await script.topic("d-seq", { partitions: 4 });
    const first = await freshProducer(script, "producer id");
    const call = (
      label: string,
      producerId: number,
      [producerEpoch, baseSequence, count]: readonly [number, number, number],
      index = 0,
    ) => {
      const values = Array.from({ length: count }, (_, i) => `v${i}`);
      const records = batch(values, { producerId, producerEpoch, baseSequence });
      return script.call(label, produceApi, 9, to("d-seq", records, index));
    };
    await call("first", first, [0, 0, 2]);
    await call("first again", first, [0, 0, 2]);
    await call("next", first, [0, 2, 1]);
    await call("gap", first, [0, 5, 1]);
    await call("overlap", first, [0, 1, 2]);
    await call("same start, other length", first, [0, 2, 2]);
    for (let sequence = 3; sequence < 9; sequence++) {
      await call(`batch ${sequence}`, first, [0, sequence, 1]);
    }
    await call("the fifth back", first, [0, 4, 1]);
    await call("older than the last five", first, [0, 2, 1]);
    await call("oldest of all", first, [0, 0, 2]);
    await call("higher epoch, not from 0", first, [1, 9, 1]);
    await call("higher epoch", first, [1, 0, 1]);
    await call("lower epoch", first, [0, 9, 1]);
    await call("duplicate of the lower epoch", first, [0, 8, 1]);
    const second = await freshProducer(script, "second producer id");
    await call("unknown producer, not from 0", second, [0, 7, 1], 1);
    await call("goes on", second, [0, 8, 1], 1);
    await call("near the end", second, [0, 2_147_483_640, 1], 2);
    await call("over the end", second, [0, 2_147_483_641, 10], 2);
    await call("behind the end", second, [0, 3, 1], 2);
    await call("over the end again", second, [0, 2_147_483_641, 10], 2);
    await call("never given out", 900_000, [0, 0, 1], 3);
    await call("epoch of its own", 900_000, [5, 0, 1], 3);
    await fetchAll(script, "stored", "d-seq");
    await script.check("two producers in a request", produceApi, 9, {
      acks: -1,
      timeoutMs: 5000,
      topicData: [{
        name: "d-seq",
        partitionData: [
          {
            index: 0,
            records: batch(["a"], { producerId: 900_001, producerEpoch: 0, baseSequence: 0 }),
          },
          {
            index: 1,
            records: batch(["a"], { producerId: 900_002, producerEpoch: 0, baseSequence: 0 }),
          },
        ],
      }],
    });
  },
};

const producerIds: Scenario = {
  name: "producer ids",
  async run(script) {
    await script.versions("fresh", initProducerIdApi, {
      transactionalId: null,
      transactionTimeoutMs: 60_000,
    });
    const call = (
      label: string,
      producerId: number,
      producerEpoch: number,
      transactionTimeoutMs = 1000,
    ) =>
      script.check(label, initProducerIdApi, 4, {
        transactionalId: null,
        transactionTimeoutMs,
        producerId,
        producerEpoch,
      });
    await call("id without epoch", 1, -1);
    await call("epoch without id", -1, 1);
    await call("id and epoch", 1, 1);
    await call("negative id", -2, 0);
    await call("time-out 0", -1, -1, 0);
    await call("time-out -1", -1, -1, -1);
    await script.check("empty transactional id", initProducerIdApi, 4, {
      transactionalId: "",
      transactionTimeoutMs: 1000,
    });
  },
};

export const PRODUCE = [checks, times, sequences, producerIds];
