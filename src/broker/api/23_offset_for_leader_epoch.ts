/**
 * OffsetForLeaderEpoch (key 23), versions 2-4.
 * Behaviour: the largest epoch of the partition that is at most the asked one, and where it ends; -1 and
 * -1 when there is none. Version notes: 3 replica id, ignored · 4 flexible (KIP-320).
 */
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import {
  offsetForLeaderEpochApi,
  type OffsetForLeaderEpochRequest,
  type OffsetForLeaderEpochResponse,
} from "../../protocol/message/23_offset_for_leader_epoch.ts";
import type { EpochEnd } from "../../log/partition_log.ts";
import { faultToCode } from "../fault_to_code.ts";
import type { BrokerServices, Handler } from "../handler.ts";
import { epochProblem } from "../partitions.ts";

type Asked = OffsetForLeaderEpochRequest["topics"][number]["partitions"][number];

export function offsetForLeaderEpochHandler(
  services: BrokerServices,
): Handler<OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse> {
  const { topics, partitions } = services;

  async function find(name: string, asked: Asked): Promise<EpochEnd | ErrorName> {
    await topics.look([name]);
    const topic = topics.find(name);
    if (topic === undefined) return "UNKNOWN_TOPIC_OR_PARTITION";
    try {
      const located = await partitions.open(topic.topicId, asked.partition);
      if (!located.ok) return located.error;
      const problem = epochProblem(located.log, asked.currentLeaderEpoch);
      return problem ?? located.log.endOfEpoch(asked.leaderEpoch);
    } catch (error) {
      return faultToCode(error, "fetch");
    }
  }

  async function answer(name: string, asked: Asked) {
    const { partition } = asked;
    const found = await find(name, asked);
    if (typeof found === "string") return { partition, errorCode: errorCode(found) };
    const { leaderEpoch, endOffset } = found;
    return { partition, errorCode: errorCode("NONE"), leaderEpoch, endOffset };
  }

  return {
    api: offsetForLeaderEpochApi,
    min: 2,
    max: 4,
    async handle(request) {
      const answers = request.topics.map(async ({ topic, partitions: asked }) => ({
        topic,
        partitions: await Promise.all(asked.map((one) => answer(topic, one))),
      }));
      return { throttleTimeMs: 0, topics: await Promise.all(answers) };
    },
  };
}
