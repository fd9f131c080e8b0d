/**
 * DescribeCluster (key 60), versions 0-2.
 * Behaviour: all live brokers; any of them takes admin requests, so the controller is this one. There are
 * no controller endpoints. Version notes: 1 endpoint type (KIP-919) · 2 fenced brokers (KIP-1073): none is
 * listed, a node that is gone has no address.
 */
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import {
  describeClusterApi,
  type DescribeClusterRequest,
  type DescribeClusterResponse,
} from "../../protocol/message/60_describe_cluster.ts";
import { CLUSTER_OPERATIONS, OPERATIONS_OMITTED } from "../authorized_operations.ts";
import { liveNodes } from "../endpoints.ts";
import type { BrokerServices, Handler } from "../handler.ts";

const BROKERS = 1;
const CONTROLLERS = 2;

function problem(endpointType: number): ErrorName | null {
  if (endpointType === BROKERS) return null;
  return endpointType === CONTROLLERS ? "MISMATCHED_ENDPOINT_TYPE" : "UNSUPPORTED_ENDPOINT_TYPE";
}

export function describeClusterHandler(
  services: BrokerServices,
): Handler<DescribeClusterRequest, DescribeClusterResponse> {
  return {
    api: describeClusterApi,
    min: 0,
    max: 2,
    handle({ endpointType, includeClusterAuthorizedOperations }) {
      const error = problem(endpointType);
      const brokers = error === null ? liveNodes(services) : [];
      return Promise.resolve({
        throttleTimeMs: 0,
        errorCode: errorCode(error ?? "NONE"),
        errorMessage: error === null ? null : `Endpoint type ${endpointType} is not served here`,
        endpointType: BROKERS,
        clusterId: error === null ? services.clusterId : "",
        controllerId: error === null ? services.nodeId : -1,
        clusterAuthorizedOperations: error === null && includeClusterAuthorizedOperations
          ? CLUSTER_OPERATIONS
          : OPERATIONS_OMITTED,
        brokers: brokers.map(({ nodeId: brokerId, host, port }) => ({ brokerId, host, port })),
      });
    },
  };
}
