/**
 * CreatePartitions (key 37), versions 0-3.
 * Behaviour: grows topics to the given number; each topic alone. A manual assignment names distinct live brokers
 * for each new partition, else INVALID_REPLICA_ASSIGNMENT. What is not done within the client's time is
 * REQUEST_TIMED_OUT, and may be done all the same.
 * Deviations: where the new partitions live is decided here. More than 10,000 topics are POLICY_VIOLATION
 * together.
 * Version notes: 2 flexible.
 */
import { errorCode } from "../../protocol/error_code.ts";
import {
  createPartitionsApi,
  type CreatePartitionsRequest,
  type CreatePartitionsResponse,
} from "../../protocol/message/37_create_partitions.ts";
import { refuse } from "../config_target.ts";
import { withDeadline } from "../deadline.ts";
import { faultToCode } from "../fault_to_code.ts";
import type { BrokerServices, Handler } from "../handler.ts";
import { inGroups, repeatedIn } from "../many.ts";
import { replicasProblem } from "../partition_state.ts";
import { tooManyTopics, type TopicOutcome } from "../topics.ts";

type Asked = CreatePartitionsRequest["topics"][number];

const TWICE = refuse("INVALID_REQUEST", "The topic is named twice");
const LATE = refuse("REQUEST_TIMED_OUT", "The partitions may be added later");

export function createPartitionsHandler(
  services: BrokerServices,
): Handler<CreatePartitionsRequest, CreatePartitionsResponse> {
  const { topics } = services;

  /** Null as well when there is nothing to add: that has an error of its own. */
  function assignmentProblem({ name, count, assignments }: Asked): string | null {
    const added = count - (topics.find(name)?.partitions ?? count);
    if (assignments === null || added <= 0) return null;
    if (assignments.length !== added) {
      return `${assignments.length} assignments for ${added} new partitions`;
    }
    for (const { brokerIds } of assignments) {
      const problem = replicasProblem(services, brokerIds);
      if (problem !== null) return problem;
    }
    return null;
  }

  async function grow(asked: Asked, validateOnly: boolean): Promise<TopicOutcome> {
    const { name, count } = asked;
    const problem = assignmentProblem(asked);
    if (problem !== null) return refuse("INVALID_REPLICA_ASSIGNMENT", problem);
    try {
      return await topics.grow(name, count, { validateOnly });
    } catch (error) {
      return refuse(faultToCode(error, "admin"), "The metadata log cannot be written now");
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
      const { clock } = services.env;
      const results = await withDeadline(
        clock,
        request.timeoutMs,
        (deadline) =>
          inGroups(clock, [...byName], async ([name, asked]) => {
            if (tooMany !== null) return answer(name, tooMany);
            return repeated.has(name)
              ? answer(name, TWICE)
              : answer(name, await deadline.run(() => grow(asked, request.validateOnly), LATE));
          }),
      );
      return { throttleTimeMs: 0, results };
    },
  };
}
