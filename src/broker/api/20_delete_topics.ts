/**
 * DeleteTopics (key 20), versions 1-6.
 * Behaviour: by name, or from 6 on by id; the rows are gone at once, the bytes follow. Unlike in Kafka
 * the internal topic is refused: it holds the groups' offsets.
 * Version notes: 3 TOPIC_DELETION_DISABLED · 4 flexible · 5 error texts · 6 topic ids (KIP-516).
 */
import { ZERO_UUID } from "../../lib/uuid.ts";
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import {
  deleteTopicsApi,
  type DeleteTopicsRequest,
  type DeleteTopicsResponse,
} from "../../protocol/message/20_delete_topics.ts";
import type { TopicRow } from "../../controller/image.ts";
import { faultToCode } from "../fault_to_code.ts";
import type { BrokerServices, Handler } from "../handler.ts";
import { inGroups, repeatedIn } from "../many.ts";

type Asked = DeleteTopicsRequest["topics"][number];
type Answer = DeleteTopicsResponse["responses"][number];

const STATES_SINCE = 6;
const DISABLED_SINCE = 3;

export function deleteTopicsHandler(
  services: BrokerServices,
): Handler<DeleteTopicsRequest, DeleteTopicsResponse> {
  const { topics } = services;

  function answer(
    { name, topicId }: Asked,
    error: ErrorName,
    errorMessage: string | null = null,
  ): Answer {
    return { name, topicId, errorCode: errorCode(error), errorMessage };
  }

  function find({ name, topicId }: Asked): TopicRow | ErrorName {
    if ((name === null) === (topicId === ZERO_UUID)) return "INVALID_REQUEST";
    return name === null
      ? topics.findById(topicId) ?? "UNKNOWN_TOPIC_ID"
      : topics.find(name) ?? "UNKNOWN_TOPIC_OR_PARTITION";
  }

  async function remove(asked: Asked, version: number): Promise<Answer> {
    const topic = find(asked);
    if (typeof topic === "string") return answer(asked, topic);
    const both = { name: topic.name, topicId: topic.topicId };
    try {
      const outcome = await topics.delete(topic.topicId);
      if (outcome.ok) return answer(both, "NONE");
      const isKnown = outcome.error !== "TOPIC_DELETION_DISABLED" || version >= DISABLED_SINCE;
      return answer(both, isKnown ? outcome.error : "INVALID_REQUEST", outcome.message);
    } catch (error) {
      return answer(both, faultToCode(error, "admin"));
    }
  }

  return {
    api: deleteTopicsApi,
    min: 1,
    max: 6,
    async handle(request, { version }) {
      const asked = version >= STATES_SINCE
        ? request.topics
        : request.topicNames.map((name) => ({ name, topicId: ZERO_UUID }));
      const keys = asked.map((one) => {
        const topic = find(one);
        return typeof topic === "string" ? `${one.name}/${one.topicId}` : topic.topicId;
      });
      const repeated = repeatedIn(keys);
      const first = new Map<string, Asked>();
      for (const [at, one] of asked.entries()) if (!first.has(keys[at]!)) first.set(keys[at]!, one);
      const responses = await inGroups(
        services.env.clock,
        [...first],
        ([key, one]) =>
          repeated.has(key)
            ? answer(one, "INVALID_REQUEST", "The topic is named twice")
            : remove(one, version),
      );
      return { throttleTimeMs: 0, responses };
    },
  };
}
