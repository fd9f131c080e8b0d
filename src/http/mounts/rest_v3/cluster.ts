/** The cluster and its brokers. */
import type { MountServices } from "../mount_services.ts";
import { type Place, v3Fault, v3List } from "./shape.ts";

export function clusterOf(place: Place) {
  return {
    kind: "KafkaCluster",
    metadata: place.metadata(""),
    cluster_id: place.clusterId,
    brokers: place.related("brokers"),
    topics: place.related("topics"),
    consumer_groups: place.related("consumer-groups"),
  };
}

function brokerOf(place: Place, node: { nodeId: number; host: string; port: number }) {
  const id = String(node.nodeId);
  return {
    kind: "KafkaBroker",
    metadata: place.metadata(`/broker=${id}`, "brokers", id),
    cluster_id: place.clusterId,
    broker_id: node.nodeId,
    host: node.host,
    port: node.port,
    rack: null,
  };
}

export function listClusters(
  { env: { clock } }: MountServices,
  request: Request,
  place: Place,
): Response {
  return v3List("KafkaClusterList", place.base, [clusterOf(place)], { request, clock });
}

export function listBrokers(
  { admin, env: { clock } }: MountServices,
  request: Request,
  place: Place,
): Response {
  const brokers = admin.nodes().map((node) => brokerOf(place, node));
  return v3List("KafkaBrokerList", place.url("brokers"), brokers, { request, clock });
}

export function getBroker({ admin }: MountServices, place: Place, id: string): Response {
  const node = admin.nodes().find(({ nodeId }) => String(nodeId) === id);
  if (node === undefined) throw v3Fault(404, `Cannot find broker ${id.slice(0, 100)}`);
  return Response.json(brokerOf(place, node));
}
