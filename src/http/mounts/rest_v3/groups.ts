/** Consumer groups: who is in them, what they have read, and how far they are behind. */
import type { Bounds } from "../../read_port.ts";
import { ProblemError, problemOf } from "../../problem.ts";
import type { GroupMember, GroupShown, OffsetAt } from "../group_port.ts";
import type { MountServices } from "../mount_services.ts";
import { type Place, v3Fault, v3List } from "./shape.ts";

interface Lag extends OffsetAt {
  readonly end: number;
  readonly lag: number;
  readonly member: GroupMember | null;
}

/** Kafka's name of a state as it stands in Confluent's answers. */
function stateOf(state: string): string {
  return state.replaceAll(/(?<=[a-z])(?=[A-Z])/g, "_").toUpperCase();
}

async function groupOf({ groups }: MountServices, group: string): Promise<GroupShown> {
  const found = await groups.describeGroup(group);
  if (found.ok) return found;
  if (found.error === "GROUP_ID_NOT_FOUND") throw v3Fault(404, `Cannot find group ${group}`);
  throw new ProblemError(problemOf(found));
}

function shownGroup({ status }: MountServices, place: Place, found: GroupShown) {
  const at = ["consumer-groups", found.group];
  return {
    kind: "KafkaConsumerGroup",
    metadata: place.metadata(`/consumer-group=${found.group}`, ...at),
    cluster_id: place.clusterId,
    consumer_group_id: found.group,
    is_simple: found.type === "classic" && found.members.length === 0,
    partition_assignor: found.assignor,
    state: stateOf(found.state),
    type: found.type.toUpperCase(),
    is_mixed_consumer_group: false,
    coordinator: place.related("brokers", String(status.nodeId)),
    consumers: place.related(...at, "consumers"),
    lag_summary: place.related(...at, "lag-summary"),
  };
}

export async function listGroups(
  services: MountServices,
  request: Request,
  place: Place,
): Promise<Response> {
  const listed = await services.groups.groups();
  if (!listed.ok) throw new ProblemError(problemOf(listed));
  const shown = [];
  for (const group of listed.names) {
    const found = await services.groups.describeGroup(group);
    // One that has gone meanwhile is left out.
    if (found.ok) shown.push(shownGroup(services, place, found));
  }
  const { clock } = services.env;
  return v3List("KafkaConsumerGroupList", place.url("consumer-groups"), shown, { request, clock });
}

export async function getGroup(
  services: MountServices,
  place: Place,
  group: string,
): Promise<Response> {
  return Response.json(shownGroup(services, place, await groupOf(services, group)));
}

function shownConsumer(place: Place, group: string, member: GroupMember) {
  const at = ["consumer-groups", group, "consumers", member.memberId];
  return {
    kind: "KafkaConsumer",
    metadata: place.metadata(`/consumer-group=${group}/consumer=${member.memberId}`, ...at),
    cluster_id: place.clusterId,
    consumer_group_id: group,
    consumer_id: member.memberId,
    instance_id: member.instanceId,
    client_id: member.clientId,
    assignments: place.related(...at, "assignments"),
  };
}

function memberOf(found: GroupShown, consumer: string): GroupMember {
  const member = found.members.find(({ memberId }) => memberId === consumer);
  if (member !== undefined) return member;
  throw v3Fault(404, `Cannot find this consumer in group ${found.group}`);
}

export async function listConsumers(
  services: MountServices,
  request: Request,
  place: Place,
  group: string,
): Promise<Response> {
  const { members } = await groupOf(services, group);
  const shown = members.map((member) => shownConsumer(place, group, member));
  const self = place.url("consumer-groups", group, "consumers");
  const { clock } = services.env;
  return v3List("KafkaConsumerList", self, shown, { request, clock });
}

export async function getConsumer(
  services: MountServices,
  place: Place,
  group: string,
  consumer: string,
): Promise<Response> {
  const member = memberOf(await groupOf(services, group), consumer);
  return Response.json(shownConsumer(place, group, member));
}

export async function listAssignments(
  services: MountServices,
  request: Request,
  place: Place,
  group: string,
  consumer: string,
): Promise<Response> {
  const { assigned } = memberOf(await groupOf(services, group), consumer);
  const at = ["consumer-groups", group, "consumers", consumer, "assignments"];
  const shown = assigned.map(({ topic, partition }) => ({
    kind: "KafkaConsumerAssignment",
    metadata: place.metadata(
      `/consumer-group=${group}/consumer=${consumer}/assignment=${topic}/partition=${partition}`,
      ...at,
      topic,
      "partitions",
      String(partition),
    ),
    cluster_id: place.clusterId,
    consumer_group_id: group,
    consumer_id: consumer,
    topic_name: topic,
    partition_id: partition,
    partition: place.related("topics", topic, "partitions", String(partition)),
  }));
  const { clock } = services.env;
  return v3List("KafkaConsumerAssignmentList", place.url(...at), shown, { request, clock });
}

async function endOf({ gateway }: MountServices, at: OffsetAt): Promise<Bounds | null> {
  const topic = gateway.findTopic(at.topic);
  if (topic === null || at.partition >= topic.partitions) return null;
  const bounds = await gateway.bounds(topic.topicId, at.partition, "uncommitted");
  if (bounds.ok) return bounds;
  throw new ProblemError(problemOf(bounds));
}

/** Of each partition with a committed offset. */
async function lagsOf(services: MountServices, group: string): Promise<readonly Lag[]> {
  const { members } = await groupOf(services, group);
  const committed = await services.groups.committed(group, null);
  if (!committed.ok) throw new ProblemError(problemOf(committed));
  const lags: Lag[] = [];
  for (const at of committed.offsets) {
    const bounds = await endOf(services, at);
    if (bounds === null) continue;
    const member = members.find(({ assigned }) =>
      assigned.some((one) => one.topic === at.topic && one.partition === at.partition)
    );
    const end = bounds.latest;
    lags.push({ ...at, end, lag: Math.max(0, end - at.offset), member: member ?? null });
  }
  return lags;
}

function shownLag(place: Place, group: string, one: Lag) {
  const { topic, partition, offset, end, lag, member } = one;
  return {
    kind: "KafkaConsumerLag",
    metadata: place.metadata(
      `/consumer-group=${group}/lag=${topic}/partition=${partition}`,
      "consumer-groups",
      group,
      "lags",
      topic,
      "partitions",
      String(partition),
    ),
    cluster_id: place.clusterId,
    consumer_group_id: group,
    topic_name: topic,
    partition_id: partition,
    current_offset: offset,
    log_end_offset: end,
    lag,
    consumer_id: member?.memberId ?? "",
    instance_id: member?.instanceId ?? null,
    client_id: member?.clientId ?? "",
  };
}

export async function listLags(
  services: MountServices,
  request: Request,
  place: Place,
  group: string,
): Promise<Response> {
  const lags = await lagsOf(services, group);
  const self = place.url("consumer-groups", group, "lags");
  const shown = lags.map((one) => shownLag(place, group, one));
  const { clock } = services.env;
  return v3List("KafkaConsumerLagList", self, shown, { request, clock });
}

export async function getLag(
  services: MountServices,
  place: Place,
  group: string,
  topic: string,
  partition: number,
): Promise<Response> {
  const lag = (await lagsOf(services, group))
    .find((one) => one.topic === topic && one.partition === partition);
  if (lag === undefined) {
    throw v3Fault(404, `Cannot find an offset of ${group} in partition ${partition} of ${topic}`);
  }
  return Response.json(shownLag(place, group, lag));
}

export async function lagSummary(
  services: MountServices,
  place: Place,
  group: string,
): Promise<Response> {
  const lags = await lagsOf(services, group);
  const most = lags.toSorted((a, b) => b.lag - a.lag)[0];
  if (most === undefined) throw v3Fault(404, `Cannot find an offset of group ${group}`);
  const at = ["consumer-groups", group];
  return Response.json({
    kind: "KafkaConsumerGroupLagSummary",
    metadata: place.metadata(`/consumer-group=${group}/lag-summary`, ...at, "lag-summary"),
    cluster_id: place.clusterId,
    consumer_group_id: group,
    max_lag_consumer_id: most.member?.memberId ?? "",
    max_lag_instance_id: most.member?.instanceId ?? null,
    max_lag_client_id: most.member?.clientId ?? "",
    max_lag_topic_name: most.topic,
    max_lag_partition_id: most.partition,
    max_lag: most.lag,
    total_lag: lags.reduce((sum, { lag }) => sum + lag, 0),
    max_lag_partition: place.related("topics", most.topic, "partitions", String(most.partition)),
  });
}
