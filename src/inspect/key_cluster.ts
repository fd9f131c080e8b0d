/** The cluster that a key names, when the cluster object cannot be asked. */
import { clusterSegment } from "../lib/cluster_id.ts";

const NAMESPACE = /^_kafka_(.+)$/;

/** `segment` is the part of a key that holds the cluster id, percent-encoded; null for any other. */
export function clusterOfSegment(segment: string | undefined): string | null {
  const encoded = NAMESPACE.exec(segment ?? "")?.[1];
  if (encoded === undefined) return null;
  try {
    const clusterId = decodeURIComponent(encoded);
    return clusterSegment(clusterId) === encoded ? clusterId : null;
  } catch (error) {
    if (error instanceof URIError) return null;
    throw error;
  }
}
