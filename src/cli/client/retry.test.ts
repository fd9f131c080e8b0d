/** Answers that are late, wrong or missing, from a broker that follows a script. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createCodecs } from "../../adapters/codecs.ts";
import { runCli } from "../../../tests/support/cli_io.ts";
import {
  HANG_UP,
  type Script,
  script,
  SILENT,
  startScriptedBroker,
} from "../../../tests/support/scripted_broker.ts";
import { toUtf8 } from "../../lib/bytes.ts";
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import { produceApi } from "../../protocol/message/00_produce.ts";
import { fetchApi } from "../../protocol/message/01_fetch.ts";
import { listOffsetsApi } from "../../protocol/message/02_list_offsets.ts";
import { initProducerIdApi } from "../../protocol/message/22_init_producer_id.ts";
import { assignOffsets, buildBatch, readBatchHeader } from "../../protocol/record_batch.ts";

async function against(
  scripts: readonly Script[],
  words: string,
  input: string | AsyncIterable<Uint8Array> = "",
) {
  const broker = await startScriptedBroker(scripts);
  try {
    return await runCli([...words.split(" "), "-b", broker.address], { input });
  } finally {
    await broker.close();
  }
}

const producerId = script(initProducerIdApi, () => ({
  throttleTimeMs: 0,
  errorCode: 0,
  producerId: 77,
  producerEpoch: 3,
}));

/** A produce script that answers one after another, and keeps what it was sent. */
function produces(answers: readonly (ErrorName | typeof HANG_UP | typeof SILENT)[]) {
  const batches: { sequence: number; records: number; producerId: number }[] = [];
  const scripted = script(produceApi, ({ topicData }) => {
    const { baseSequence, recordCount, producerId: id } = readBatchHeader(
      topicData[0]!.partitionData[0]!.records!,
    );
    const answer = answers[Math.min(batches.length, answers.length - 1)]!;
    batches.push({ sequence: baseSequence, records: recordCount, producerId: id });
    if (typeof answer === "symbol") return answer;
    const row = { index: 0, errorCode: errorCode(answer), baseOffset: 5, recordErrors: [] };
    return { responses: [{ name: "t", partitionResponses: [row] }] };
  });
  return { scripted, batches };
}

test("a batch goes again with the same sequence, to a new leader or over a new connection", async () => {
  const { scripted, batches } = produces(["NOT_LEADER_OR_FOLLOWER", HANG_UP, "NONE"]);
  const got = await against([scripted, producerId], "produce t --json", "a\nb\n");
  assert.equal(got.code, 0, got.err);
  assert.deepEqual(
    batches,
    Array.from({ length: 3 }, () => ({ sequence: 0, records: 2, producerId: 77 })),
  );
  assert.deepEqual(JSON.parse(got.out), {
    topic: "t",
    read: 2,
    delivered: 2,
    error: null,
    partitions: [{ partition: 0, records: 2, firstOffset: 5, lastOffset: 6 }],
  });
});

test("a duplicate is delivered, though nobody knows where", async () => {
  const { scripted } = produces([HANG_UP, "DUPLICATE_SEQUENCE_NUMBER"]);
  const got = await against([scripted, producerId], "produce t --json", "a\n");
  assert.equal(got.code, 0, got.err);
  const { partitions } = JSON.parse(got.out) as { partitions: unknown[] };
  assert.deepEqual(partitions, [{ partition: 0, records: 1, firstOffset: null, lastOffset: null }]);
});

test("a batch that the topic does not take goes in halves", async () => {
  const { scripted, batches } = produces(["MESSAGE_TOO_LARGE", "NONE"]);
  const got = await against([scripted, producerId], "produce t", "a\nb\nc\nd\n");
  assert.equal(got.code, 0, got.err);
  assert.deepEqual(batches.map(({ sequence, records }) => [sequence, records]), [
    [0, 4],
    [0, 2],
    [2, 2],
  ]);
});

test("a record that is refused is told with its count, and not sent again", async () => {
  const { scripted, batches } = produces(["MESSAGE_TOO_LARGE"]);
  const got = await against([scripted, producerId], "produce t --batch-bytes 1", "a\nb\n");
  assert.equal(got.code, 1);
  assert.match(
    got.err,
    /^Cannot write to t-0: MESSAGE_TOO_LARGE.*max\.message\.bytes.*\nstored: 0 records of 2/,
  );
  assert.equal(batches.length, 1);
});

test("what does not pass within the time-out is told by the broker's word", async () => {
  const { scripted, batches } = produces(["NOT_ENOUGH_REPLICAS"]);
  const got = await against([scripted, producerId], "produce t --timeout 0.3", "a\n");
  assert.equal(got.code, 1);
  assert.match(got.err, /^Cannot write to t-0: NOT_ENOUGH_REPLICAS/);
  assert.ok(batches.length > 1);
});

test("without idempotence batches have no producer id", async () => {
  for (const more of ["--no-idempotence", "--acks 1"]) {
    const { scripted, batches } = produces(["NONE"]);
    const got = await against([scripted], `produce t ${more}`, "a\n");
    assert.equal(got.code, 0, got.err);
    assert.deepEqual(batches, [{ sequence: -1, records: 1, producerId: -1 }]);
  }
});

test("a broker that does not answer holds up the input", async () => {
  const chunk = toUtf8(`${"y".repeat(9_999)}\n`.repeat(100));
  let given = 0;
  async function* long(): AsyncGenerator<Uint8Array> {
    while (given < 64e6) {
      given += chunk.length;
      yield chunk;
    }
  }
  const { scripted } = produces([SILENT]);
  const got = await against([scripted, producerId], "produce t --timeout 0.5", long());
  assert.equal(got.code, 3, got.err);
  assert.match(got.err, /^No answer from /);
  assert.ok(given > 10e6 && given < 20e6, `${given}`);
});

const bounds = script(listOffsetsApi, ({ topics }) => ({
  topics: topics.map(({ name, partitions }) => ({
    name,
    partitions: partitions.map(({ partitionIndex, timestamp }) => ({
      partitionIndex,
      errorCode: 0,
      // The first offset moves while the client begins to read.
      offset: timestamp === -2 ? starts.shift() ?? 12 : 14,
    })),
  })),
}));
let starts: number[] = [];

test("records that are deleted meanwhile are passed over and told; a lost leader is looked up", async () => {
  starts = [0, 0];
  const asked: number[] = [];
  const codecs = createCodecs();
  const batch = buildBatch({
    records: ["a", "b"].map((one) => (
      { key: null, value: toUtf8(one), headers: [], timestampMs: 0 }
    )),
    codec: null,
    codecs,
  });
  assignOffsets(batch, 12, 0);
  const answers: ErrorName[] = ["OFFSET_OUT_OF_RANGE", "NOT_LEADER_OR_FOLLOWER", "NONE"];
  const fetches = script(fetchApi, ({ topics }) => {
    asked.push(topics[0]!.partitions[0]!.fetchOffset);
    const error = answers.shift()!;
    const row = {
      partitionIndex: 0,
      errorCode: errorCode(error),
      highWatermark: 14,
      abortedTransactions: null,
      records: error === "NONE" ? batch : null,
    };
    return { throttleTimeMs: 0, responses: [{ topic: "t", partitions: [row] }] };
  });
  const got = await against([fetches, bounds], "consume t --until-end");
  assert.equal(got.code, 0, got.err);
  assert.equal(got.out, "a\nb\n");
  assert.equal(got.err, "t-0: offsets 0 to 11 are deleted, passed over\n");
  assert.deepEqual(asked, [0, 12, 12]);
});
