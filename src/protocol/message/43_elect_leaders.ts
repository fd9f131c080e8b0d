/**
 * ElectLeaders, key 43, versions 0-2, flexible from 2. 1 names the kind of election (KIP-460): 0 for the
 * preferred leader, 1 for an unclean one. A null list means all partitions.
 */
import { api } from "../api.ts";
import { int16, int32, int8, string } from "../primitive.ts";
import { array, type Infer, type InferInput, message, since, struct } from "../schema.ts";

const VERSIONS = { min: 0, max: 2, flexibleFrom: 2 };

const topicPartitions = struct({
  topic: string,
  partitions: array(int32),
});

export const electLeadersRequest = message("ElectLeadersRequest", VERSIONS, {
  electionType: since(1, int8),
  topicPartitions: since(0, array(topicPartitions), { nullableSince: 0 }),
  timeoutMs: since(0, int32, { default: 60000 }),
});

const partitionResult = struct({
  partitionId: int32,
  errorCode: int16,
  errorMessage: since(0, string, { nullableSince: 0 }),
});

const replicaElectionResult = struct({
  topic: string,
  partitionResult: array(partitionResult),
});

export const electLeadersResponse = message("ElectLeadersResponse", VERSIONS, {
  throttleTimeMs: int32,
  errorCode: since(1, int16),
  replicaElectionResults: array(replicaElectionResult),
});

export type ElectLeadersRequest = Infer<typeof electLeadersRequest>;
export type ElectLeadersResponse = InferInput<typeof electLeadersResponse>;
export const electLeadersApi = api(43, electLeadersRequest, electLeadersResponse);
