/**
 * A group with live members from one protocol into the other (KIP-848's migration). Going to the consumer
 * protocol everybody keeps what it had, and the member that comes raises the epoch; going back all
 * gather again. Pure but for the classic group that is made.
 */
import { createGroup, type Group, type Member, metadataOf, NO_BYTES } from "../group.ts";
import { chooseProtocol } from "../protocols.ts";
import { decodeGrowing } from "../../../protocol/versioned.ts";
import { consumerProtocolAssignment } from "../../../protocol/message/consumer_protocol.ts";
import { DecodeError } from "../../../lib/bytes.ts";
import {
  type Assignment,
  assignmentOf,
  difference,
  intersection,
  NOTHING,
  sizeOf,
  union,
} from "./assignment.ts";
import {
  assignmentBytes,
  CONSUMER_TYPE,
  profileOfClassic,
  readSubscription,
} from "./classic_member.ts";
import {
  type ConsumerGroup,
  type ConsumerMember,
  emptyGroup,
  type Place,
  type Profile,
  type TopicView,
} from "./group.ts";

function assignedTo({ assignment }: Member, topics: TopicView): Assignment | null {
  if (assignment.length === 0) return NOTHING;
  try {
    const { assignedPartitions } = decodeGrowing(consumerProtocolAssignment, assignment);
    return assignmentOf(assignedPartitions.flatMap(({ topic, partitions }) => {
      const topicId = topics.find(topic)?.topicId;
      return topicId === undefined ? [] : [{ topicId, partitions }];
    }));
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    return null;
  }
}

interface Claims {
  readonly profile: Profile;
  /** All that it may own: what it was assigned last, and what it held when it joined last. */
  readonly claimed: Assignment;
}

function claimsOf(group: Group, member: Member, topics: TopicView): Claims | null {
  const protocolName = group.protocolName ?? member.protocols[0]?.name ?? null;
  const said = readSubscription(metadataOf(member, protocolName), topics);
  const assigned = assignedTo(member, topics);
  if (said === null || assigned === null) return null;
  return { profile: profileOfClassic(member, said), claimed: union(assigned, said.owned) };
}

/** What one alone may own is its own; what several may own they all have to let go of first. */
function placeOf({ claimed }: Claims, contested: Assignment, epoch: number): Place {
  const revoking = intersection(claimed, contested);
  return {
    epoch,
    previousEpoch: epoch,
    state: sizeOf(revoking) === 0 ? "stable" : "unrevoked",
    assigned: difference(claimed, contested),
    revoking,
  };
}

/** Null when it is no group of consumers, or cannot be read as one. */
export function toConsumerGroup(group: Group, topics: TopicView): ConsumerGroup | null {
  if (group.protocolType !== CONSUMER_TYPE) return null;
  const claims = new Map<string, Claims>();
  let claimed = NOTHING;
  let contested = NOTHING;
  for (const each of group.members.values()) {
    const claim = claimsOf(group, each, topics);
    if (claim === null) return null;
    claims.set(each.memberId, claim);
    contested = union(contested, intersection(claimed, claim.claimed));
    claimed = union(claimed, claim.claimed);
  }
  const members = new Map([...claims].map(([memberId, claim]): [string, ConsumerMember] => {
    const place = placeOf(claim, contested, group.generation);
    return [memberId, { memberId, profile: claim.profile, place }];
  }));
  return {
    ...emptyGroup(group.groupId),
    epoch: group.generation,
    targetEpoch: group.generation,
    members,
    target: new Map([...members].map(([memberId, { place }]) => [memberId, place.assigned])),
  };
}

/**
 * Stable with what members may own, which is not the target; none of them has the generation, so that all join
 * again, and every one has a whole session to be heard of.
 */
export function toClassicGroup(
  group: ConsumerGroup,
  topics: TopicView,
  nowMs: number,
  monotonicMs: number,
): Group {
  const made = createGroup(group.groupId, nowMs);
  made.generation = group.epoch;
  made.protocolType = CONSUMER_TYPE;
  for (const { memberId, profile, place } of group.members.values()) {
    const { instanceId, clientId, clientHost, rebalanceTimeoutMs, classic } = profile;
    if (classic === null) continue;
    const { sessionTimeoutMs, protocols } = classic;
    const metadata = protocols[0]?.metadata ?? NO_BYTES;
    made.members.set(memberId, {
      memberId,
      instanceId,
      clientId,
      clientHost: clientHost.replace(/^\//, ""),
      sessionTimeoutMs,
      rebalanceTimeoutMs,
      protocols,
      assignment: assignmentBytes(union(place.assigned, place.revoking), metadata, topics),
      joining: null,
      syncing: null,
      deadlineMs: monotonicMs + sessionTimeoutMs,
      isNew: false,
    });
  }
  made.protocolName = chooseProtocol(made.members.values());
  made.leader = made.members.keys().next().value ?? null;
  made.state = "Stable";
  return made;
}
