/**
 * CreatePartitions (key 37), versions 0-3.
 * Behaviour: grows topics to the given number; each topic alone. Deviations: of a manual assignment only
 * the length counts. More than 10,000 topics are POLICY_VIOLATION together. Version notes: 2 flexible.
 */
import { errorCode } from "../../protocol/error_code.ts";
import {
  createPartitionsApi,
  type CreatePartitionsRequest,
  type CreatePartitionsResponse,
} from "../../protocol/message/37_create_partitions.ts";
import { faultToCode } from "../fault_to_code.ts";
import type { BrokerServices, Handler } from "../handler.ts";
import { inGroups, repeatedIn } from "../many.ts";
import { tooManyTopics, type TopicOutcome } from "../topics.ts";

type Asked = CreatePartitionsRequest["topics"][number];

export function createPartitionsHandler(
  services: BrokerServices,
): Handler<CreatePartitionsRequest, CreatePartitionsResponse> {
  const { topics } = services;

  async function grow(asked: Asked, validateOnly: boolean): Promise<TopicOutcome> {
    const { name, count, assignments } = asked;
    const added = count - (topics.find(name)?.partitions ?? 0);
    if (assignments !== null && added > 0 && assignments.length !== added) {
      const message = `${assignments.length} assignments for ${added} new partitions`;
      return { ok: false, error: "INVALID_REPLICA_ASSIGNMENT", message };
    }
    try {
      return await topics.grow(name, count, { validateOnly });
    } catch (error) {
      const message = "The metadata log cannot be written now";
      return { ok: false, error: faultToCode(error, "admin"), message };
    }
  }

  function answer(name: string, outcome: TopicOutcome) {
    return outcome.ok
      ? { name, errorCode: errorCode("NONE"), errorMessage: null }
      : { name, errorCode: errorCode(outcome.error), errorMessage: outcome.message };
  }

  return {
    api: createPartitionsApi,
    min: 0,
    max: 3,
    async handle(request) {
      const byName = new Map(request.topics.map((asked) => [asked.name, asked]));
      const repeated = repeatedIn(request.topics.map(({ name }) => name));
      const tooMany = tooManyTopics(request.topics.length);
      const results = await inGroups(services.env.clock, [...byName], async ([name, asked]) => {
        if (tooMany !== null) return answer(name, tooMany);
        return repeated.has(name)
          ? answer(name, {
            ok: false,
            error: "INVALID_REQUEST",
            message: "The topic is named twice",
          })
          : answer(name, await grow(asked, request.validateOnly));
      });
      return { throttleTimeMs: 0, results };
    },
  };
}
