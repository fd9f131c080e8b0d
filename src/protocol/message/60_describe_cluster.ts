/**
 * DescribeCluster, key 60, versions 0-2, flexible (KIP-700).
 * 1 adds the endpoint type (KIP-919), 2 fenced brokers (KIP-1073).
 */
import { api } from "../api.ts";
import { bool, int16, int32, int8, string } from "../primitive.ts";
import { array, type Infer, type InferInput, message, since, struct } from "../schema.ts";

const VERSIONS = { min: 0, max: 2, flexibleFrom: 0 };

export const describeClusterRequest = message("DescribeClusterRequest", VERSIONS, {
  includeClusterAuthorizedOperations: bool,
  endpointType: since(1, int8, { default: 1 }),
  includeFencedBrokers: since(2, bool),
});

const describeClusterBroker = struct({
  brokerId: int32,
  host: string,
  port: int32,
  rack: since(0, string, { nullableSince: 0, default: null }),
  isFenced: since(2, bool),
});

export const describeClusterResponse = message("DescribeClusterResponse", VERSIONS, {
  throttleTimeMs: int32,
  errorCode: int16,
  errorMessage: since(0, string, { nullableSince: 0, default: null }),
  endpointType: since(1, int8, { default: 1 }),
  clusterId: string,
  controllerId: since(0, int32, { default: -1 }),
  brokers: array(describeClusterBroker),
  clusterAuthorizedOperations: since(0, int32, { default: -(2 ** 31) }),
});

export type DescribeClusterRequest = Infer<typeof describeClusterRequest>;
export type DescribeClusterResponse = InferInput<typeof describeClusterResponse>;
export const describeClusterApi = api(60, describeClusterRequest, describeClusterResponse);
