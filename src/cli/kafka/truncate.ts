/** `skerry topic truncate`: deletes the oldest records of a topic, up to a place. */
import { deleteRecordsApi } from "../../protocol/message/21_delete_records.ts";
import { byLeader, type Cluster } from "../client/cluster.ts";
import { checkCode } from "../client/fault.ts";
import { partitionsOf, PLACE_FORMS, placeIn } from "../client/place.ts";
import { answerOutcomes, type Outcome, outcomeOf } from "./answer.ts";
import type { Call, Command } from "./command.ts";

/** The new first offset, which is not below what was asked for. */
function deleteBefore(
  cluster: Cluster,
  topic: string,
  partition: number,
  offset: number,
): Promise<number> {
  return cluster.retrying(async (leftMs) => {
    const view = await cluster.topic(topic, { leftMs });
    const [leader] = byLeader(view, [{ partition }]).keys();
    const connection = await cluster.node(leader!);
    const { topics } = await connection.call(deleteRecordsApi, {
      topics: [{ name: topic, partitions: [{ partitionIndex: partition, offset }] }],
      timeoutMs: Math.ceil(leftMs),
    }, { timeoutMs: leftMs });
    const answer = topics[0]?.partitions[0];
    checkCode(`truncate ${topic}-${partition}`, answer?.errorCode ?? 0, { atLeader: true });
    return answer?.lowWatermark ?? offset;
  });
}

async function truncate({ words, cluster, io }: Call): Promise<number> {
  const topic = words.operands[0]!;
  const place = words.place("to");
  const given = words.partitions("partition");
  const view = await cluster.retrying((leftMs) => cluster.topic(topic, { leftMs }));
  const offsets = await placeIn(cluster, topic, partitionsOf(view, given), place);
  const outcomes: Outcome[] = [];
  for (const [partition, offset] of offsets) {
    const name = `${topic}-${partition}`;
    outcomes.push(
      await outcomeOf(name, async () => {
        if (words.isOn("dry-run")) {
          return { said: `${name} would start at ${offset}`, detail: { partition, start: offset } };
        }
        const start = await deleteBefore(cluster, topic, partition, offset);
        return { said: `${name} starts at ${start}`, detail: { partition, start } };
      }),
    );
  }
  return await answerOutcomes(io, words.json, outcomes);
}

export const TRUNCATE: Command = {
  name: "topic truncate",
  operands: "TOPIC",
  operandsMin: 1,
  operandsMax: 1,
  help: "Deletes the records before a place, for good.",
  options: {
    "to": { value: "PLACE", help: PLACE_FORMS },
    "partition": { value: "N,...", repeats: true, help: "only these; default: all" },
    "dry-run": { value: null, help: "says where it would start and deletes nothing" },
  },
  run: truncate,
};
