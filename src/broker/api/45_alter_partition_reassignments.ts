/**
 * AlterPartitionReassignments (key 45), versions 0-1.
 * Behaviour: a partition's only replica is its leader, so that asking for just that one is done at once, and
 * every other set is INVALID_REPLICA_ASSIGNMENT. Null replicas cancel what is under way, which is nothing:
 * NO_REASSIGNMENT_IN_PROGRESS.
 * Deviations: partitions do not move on request; they move when a node takes over from another.
 * Version notes: 1 whether the number of replicas may change (KIP-860); it never does.
 */
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import {
  alterPartitionReassignmentsApi,
  type AlterPartitionReassignmentsRequest,
  type AlterPartitionReassignmentsResponse,
} from "../../protocol/message/45_alter_partition_reassignments.ts";
import type { TopicRow } from "../../controller/image.ts";
import type { BrokerServices, Handler } from "../handler.ts";
import { partitionState } from "../partition_state.ts";

type Asked = AlterPartitionReassignmentsRequest["topics"][number]["partitions"][number];

interface Outcome {
  readonly error: ErrorName;
  readonly message: string | null;
}

function reassign(
  services: BrokerServices,
  topic: TopicRow | undefined,
  { partitionIndex, replicas }: Asked,
): Outcome {
  if (topic === undefined || partitionIndex < 0 || partitionIndex >= topic.partitions) {
    return {
      error: "UNKNOWN_TOPIC_OR_PARTITION",
      message: "This server does not host this topic-partition.",
    };
  }
  if (replicas === null) return { error: "NO_REASSIGNMENT_IN_PROGRESS", message: null };
  const present = partitionState(services, topic, partitionIndex).replicas;
  const isSame = replicas.length === present.length &&
    replicas.every((one, i) => one === present[i]);
  return isSame ? { error: "NONE", message: null } : {
    error: "INVALID_REPLICA_ASSIGNMENT",
    message: `Data is in the object store: the only replica can be the leader, [${present}]`,
  };
}

export function alterPartitionReassignmentsHandler(
  services: BrokerServices,
): Handler<AlterPartitionReassignmentsRequest, AlterPartitionReassignmentsResponse> {
  return {
    api: alterPartitionReassignmentsApi,
    min: 0,
    max: 1,
    handle({ topics, allowReplicationFactorChange }) {
      const responses = topics.map(({ name, partitions }) => ({
        name,
        partitions: partitions.map((asked) => {
          const { error, message } = reassign(services, services.topics.find(name), asked);
          return {
            partitionIndex: asked.partitionIndex,
            errorCode: errorCode(error),
            errorMessage: message,
          };
        }),
      }));
      return Promise.resolve({
        throttleTimeMs: 0,
        allowReplicationFactorChange,
        errorCode: errorCode("NONE"),
        errorMessage: null,
        responses,
      });
    },
  };
}
