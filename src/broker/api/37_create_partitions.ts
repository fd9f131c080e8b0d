/**
 * CreatePartitions (key 37), versions 0-3.
 * Behaviour: grows topics to the given number; each topic alone. Deviations: of a manual assignment only
 * the length counts. Version notes: 2 flexible.
 */
import { errorCode } from "../../protocol/error_code.ts";
import {
  createPartitionsApi,
  type CreatePartitionsRequest,
  type CreatePartitionsResponse,
} from "../../protocol/message/37_create_partitions.ts";
import { faultToCode } from "../fault_to_code.ts";
import type { BrokerServices, Handler } from "../handler.ts";
import type { TopicOutcome } from "../topics.ts";

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

  return {
    api: createPartitionsApi,
    min: 0,
    max: 3,
    async handle(request) {
      const results: { name: string; errorCode: number; errorMessage: string | null }[] = [];
      const names = request.topics.map(({ name }) => name);
      for (const [at, asked] of request.topics.entries()) {
        const { name } = asked;
        if (names.indexOf(name) !== at) continue;
        const outcome: TopicOutcome = names.lastIndexOf(name) === at
          ? await grow(asked, request.validateOnly)
          : { ok: false, error: "INVALID_REQUEST", message: "The topic is named twice" };
        results.push(
          outcome.ok
            ? { name, errorCode: errorCode("NONE"), errorMessage: null }
            : { name, errorCode: errorCode(outcome.error), errorMessage: outcome.message },
        );
      }
      return { throttleTimeMs: 0, results };
    },
  };
}
