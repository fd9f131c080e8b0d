/**
 * DeleteTopics (key 20), versions 1-6.
 * Behaviour: by name, or from 6 on by id; the rows are gone at once, the bytes follow. While
 * delete.topic.enable is false every topic is refused, before anything is looked up. What is not done within the
 * client's time is REQUEST_TIMED_OUT, and may be done all the same.
 * Deviations: internal topics are refused: they hold the groups' offsets and the transactions.
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
import { withDeadline } from "../deadline.ts";
import { faultToCode } from "../fault_to_code.ts";
import type { BrokerServices, Handler } from "../handler.ts";
import { inGroups, repeatedIn } from "../many.ts";

type Asked = DeleteTopicsRequest["topics"][number];
type Answer = DeleteTopicsResponse["responses"][number];

const NOT_FOUND: Partial<Record<ErrorName, string>> = {
  INVALID_REQUEST: "Give a name or an id, and not both.",
  UNKNOWN_TOPIC_ID: "This server does not host this topic ID.",
  UNKNOWN_TOPIC_OR_PARTITION: "This server does not host this topic-partition.",
};

const STATES_SINCE = 6;
const DISABLED_SINCE = 3;

function answer(
  { name, topicId }: Asked,
  error: ErrorName,
  errorMessage: string | null = null,
): Answer {
  return { name, topicId, errorCode: errorCode(error), errorMessage };
}

function find({ topics }: BrokerServices, { name, topicId }: Asked): TopicRow | ErrorName {
  if ((name === null) === (topicId === ZERO_UUID)) return "INVALID_REQUEST";
  return name === null
    ? topics.findById(topicId) ?? "UNKNOWN_TOPIC_ID"
    : topics.find(name) ?? "UNKNOWN_TOPIC_OR_PARTITION";
}

export function deleteTopicsHandler(
  services: BrokerServices,
): Handler<DeleteTopicsRequest, DeleteTopicsResponse> {
  async function remove(asked: Asked): Promise<Answer> {
    const topic = find(services, asked);
    if (typeof topic === "string") return answer(asked, topic, NOT_FOUND[topic] ?? null);
    const both = { name: topic.name, topicId: topic.topicId };
    try {
      const outcome = await services.topics.delete(topic.topicId);
      if (outcome.ok) return answer(both, "NONE");
      return answer(both, outcome.error, outcome.message);
    } catch (error) {
      return answer(both, faultToCode(error, "admin"));
    }
  }

  /** A topic may be named by its name and by its id. */
  function keyOf(asked: Asked): string {
    const topic = find(services, asked);
    return typeof topic === "string" ? `${asked.name}/${asked.topicId}` : topic.topicId;
  }

  async function removeAll(all: readonly Asked[], timeoutMs: number): Promise<Answer[]> {
    const keys = all.map(keyOf);
    const repeated = repeatedIn(keys);
    const first = new Map<string, Asked>();
    for (const [at, one] of all.entries()) if (!first.has(keys[at]!)) first.set(keys[at]!, one);
    const { clock } = services.env;
    return await withDeadline(
      clock,
      timeoutMs,
      (deadline) =>
        inGroups(
          clock,
          [...first],
          async ([key, one]) =>
            repeated.has(key)
              ? answer(one, "INVALID_REQUEST", "The topic is named twice")
              : await deadline.run(() => remove(one), answer(one, "REQUEST_TIMED_OUT")),
        ),
    );
  }

  return {
    api: deleteTopicsApi,
    min: 1,
    max: 6,
    async handle(request, { version }) {
      const asked = version >= STATES_SINCE
        ? request.topics
        : request.topicNames.map((name) => ({ name, topicId: ZERO_UUID }));
      if (!services.config.flag("delete.topic.enable")) {
        const error = version >= DISABLED_SINCE ? "TOPIC_DELETION_DISABLED" : "INVALID_REQUEST";
        const responses = asked.map((one) => answer(one, error, "Topic deletion is disabled."));
        return { throttleTimeMs: 0, responses };
      }
      const { topics } = services;
      await topics.look(asked.flatMap(({ name }) => name === null ? [] : [name]));
      await topics.lookById(asked.map(({ topicId }) => topicId));
      return { throttleTimeMs: 0, responses: await removeAll(asked, request.timeoutMs) };
    },
  };
}
