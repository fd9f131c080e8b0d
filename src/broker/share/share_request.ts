/** What ShareFetch and ShareAcknowledge have in common: who asks, and how answers name leaders. */
import { SHARE_MEMBER_ID_CHARS_MAX } from "../../lib/limits.ts";
import type { ErrorName } from "../../protocol/error_code.ts";
import { hintedNodes, type LeaderHint, leaderHint, type NodeEndpoint } from "../endpoints.ts";
import { isStorable } from "../group/group.ts";
import type { GroupServices } from "../group/services.ts";
import type { ShareGroups } from "./share_groups.ts";
import type { ShareMember, SharePlace } from "./share_sessions.ts";

export interface ShareServices extends GroupServices {
  readonly shareGroups: ShareGroups;
}

/** In Kafka's order. */
export function askerOf(
  services: ShareServices,
  { groupId, memberId }: { readonly groupId: string | null; readonly memberId: string | null },
): ShareMember | ErrorName {
  if (services.features.levelOf("share.version") < 1) return "UNSUPPORTED_VERSION";
  const isMember = memberId !== null && memberId !== "" &&
    memberId.length <= SHARE_MEMBER_ID_CHARS_MAX;
  if (!isMember || groupId === null || !isStorable(groupId)) return "INVALID_REQUEST";
  return { groupId, memberId };
}

const UNKNOWN_LEADER: LeaderHint = { leaderId: 0, leaderEpoch: 0 };

/** The leader that an error is about; zeros where there is nothing to say, as from Kafka. */
export function currentLeader(
  services: ShareServices,
  { topicId, partition }: SharePlace,
  error: ErrorName,
): LeaderHint {
  return leaderHint(error, services.partitions.leaderOf(topicId, partition)) ?? UNKNOWN_LEADER;
}

export function leadersOf(
  services: ShareServices,
  failed: readonly { readonly place: SharePlace; readonly error: ErrorName }[],
): NodeEndpoint[] {
  const hints = failed.map(({ place, error }) =>
    leaderHint(error, services.partitions.leaderOf(place.topicId, place.partition))
  );
  return hintedNodes(services, hints);
}

/** One entry for each topic, in the order in which they come first. */
export function byTopic<T extends { readonly place: SharePlace }, P>(
  items: readonly T[],
  partitionOf: (item: T) => P,
): { topicId: string; partitions: P[] }[] {
  const topics = new Map<string, P[]>();
  for (const item of items) {
    const known = topics.get(item.place.topicId);
    if (known === undefined) topics.set(item.place.topicId, [partitionOf(item)]);
    else known.push(partitionOf(item));
  }
  return [...topics].map(([topicId, partitions]) => ({ topicId, partitions }));
}
