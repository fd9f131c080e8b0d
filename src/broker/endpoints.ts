/** Who leads and where: what error answers tell clients so that they need not ask again (KIP-951). */
import type { PartitionRow } from "../controller/image.ts";
import type { ErrorName } from "../protocol/error_code.ts";
import type { BrokerServices } from "./handler.ts";

export interface LeaderHint {
  readonly leaderId: number;
  readonly leaderEpoch: number;
}

export interface NodeEndpoint {
  readonly nodeId: number;
  readonly host: string;
  readonly port: number;
}

/** Errors after which a client looks for another leader. */
const MOVED: ReadonlySet<ErrorName> = new Set(["NOT_LEADER_OR_FOLLOWER", "FENCED_LEADER_EPOCH"]);

export function leaderHint(error: ErrorName, row: PartitionRow | undefined): LeaderHint | null {
  if (!MOVED.has(error) || row === undefined || row.leader === null) return null;
  return { leaderId: row.leader, leaderEpoch: row.leaderEpoch };
}

export function liveNodes({ metadata }: Pick<BrokerServices, "metadata">): NodeEndpoint[] {
  const nodes: NodeEndpoint[] = [];
  for (const { nodeId, host, port, state } of metadata.view().nodes.values()) {
    if (state === "live") nodes.push({ nodeId, host, port });
  }
  return nodes;
}

/** The addresses of the leaders that hints name. */
export function hintedNodes(
  services: Pick<BrokerServices, "metadata">,
  hints: readonly (LeaderHint | null | undefined)[],
): NodeEndpoint[] {
  const named = new Set(hints.map((hint) => hint?.leaderId));
  return liveNodes(services).filter(({ nodeId }) => named.has(nodeId));
}
