/** Topics that a group's members subscribe to. Only type `consumer` has a known layout. */
import { consumerProtocolSubscription } from "../../protocol/message/consumer_protocol.ts";
import { decodeGrowing } from "../../protocol/versioned.ts";
import { type Group, metadataOf } from "./group.ts";

/** Null when it cannot be known: another protocol type, or bytes that do not parse. */
export function subscribedTopics(group: Group): ReadonlySet<string> | null {
  if (group.protocolType !== "consumer") return null;
  const topics = new Set<string>();
  for (const member of group.members.values()) {
    try {
      const subscription = decodeGrowing(
        consumerProtocolSubscription,
        metadataOf(member, group.protocolName),
      );
      for (const topic of subscription.topics) topics.add(topic);
    } catch {
      return null;
    }
  }
  return topics;
}
