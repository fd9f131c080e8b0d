/** What an instance reads: topics that its group shares out, or partitions of its own choice. */
import type { MountServices } from "../mount_services.ts";
import type { Failure } from "../../port.ts";
import type { ReadGateway } from "../../read_port.ts";
import { ProblemError, problemOf } from "../../problem.ts";
import type { TopicPartition } from "../group_port.ts";
import type { Instance } from "./instance.ts";
import type { InstanceRecord } from "./record.ts";

type Services = Pick<MountServices, "instances" | "gateway">;
type Wanted = InstanceRecord["subscription"];

function isSame(a: Wanted, b: Wanted): boolean {
  return JSON.stringify(a) === JSON.stringify(b);
}

/** Throws ProblemError: when it is not stored, or the group does not take it; then it stays as it was. */
export async function subscribe(
  { instances }: Services,
  instance: Instance,
  wanted: { readonly topics: string[] } | { readonly pattern: string },
): Promise<void> {
  const { subscription: before, seeks } = instance.record;
  if (isSame(before, wanted)) return;
  await instances.change(instance, { subscription: wanted, seeks: [] });
  if (before !== null && "partitions" in before) instance.setPlaces([]);
  const refused = await instance.beat();
  if (refused !== null) {
    await instances.change(instance, { subscription: before, seeks });
    throw new ProblemError(problemOf(refused));
  }
  await instances.settle(instance.named.group);
}

export async function unsubscribe({ instances }: Services, instance: Instance): Promise<void> {
  const { subscription } = instance.record;
  if (subscription === null) return;
  await instances.change(instance, { subscription: null, seeks: [] });
  if ("partitions" in subscription) instance.setPlaces([]);
  else await instance.leave();
  await instances.settle(instance.named.group);
}

/** Null when each of them is there. */
export function place(
  { gateway }: { readonly gateway: Pick<ReadGateway, "findTopic"> },
  instance: Instance,
  partitions: readonly TopicPartition[],
): Failure | null {
  const places = [];
  for (const { topic, partition } of partitions) {
    const found = gateway.findTopic(topic);
    if (found === null || partition >= found.partitions) {
      const message = `Cannot find partition ${partition} of ${topic}`;
      return { ok: false, error: "UNKNOWN_TOPIC_OR_PARTITION", message };
    }
    places.push({ topic, partition, topicId: found.topicId });
  }
  instance.setPlaces(places);
  return null;
}

export async function assign(
  services: Services,
  instance: Instance,
  partitions: TopicPartition[],
): Promise<void> {
  const refused = place(services, instance, partitions);
  if (refused !== null) throw new ProblemError(problemOf(refused));
  await services.instances.change(instance, { subscription: { partitions }, seeks: [] });
}
