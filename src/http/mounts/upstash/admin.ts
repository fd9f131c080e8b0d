/** What there is: topics, groups with those who are in them; and the end of an instance. */
import type { MountServices } from "../mount_services.ts";
import type { GroupMember, GroupShown, TopicPartition } from "../group_port.ts";
import { ProblemError, problemOf } from "../../problem.ts";
import type { InstanceName } from "./consume.ts";
import { success } from "./shape.ts";

export function topics({ gateway }: MountServices): Response {
  // No object: a topic may be called __proto__.
  const fields = gateway.listTopics().map(({ name, partitions }) =>
    `${JSON.stringify(name)}:${partitions}`
  );
  return new Response(`{${fields.join(",")}}`, { headers: { "content-type": "application/json" } });
}

function byTopic(assigned: readonly TopicPartition[]) {
  const found = Map.groupBy(assigned, ({ topic }) => topic);
  return [...found].map(([topic, of]) => ({
    topic,
    partitions: of.map(({ partition }) => partition).toSorted((a, b) => a - b),
  }));
}

function instanceOf({ memberId, assigned }: GroupMember) {
  return { name: memberId, topics: byTopic(assigned) };
}

/** Groups without members are left out, as far as nobody stands behind an instance of theirs. */
export async function consumers({ groups, instances }: MountServices): Promise<Response> {
  const listed = await groups.groups();
  if (!listed.ok) throw new ProblemError(problemOf(listed));
  const named = Map.groupBy(instances.namesIn(), ({ group }) => group);
  const shown = [];
  for (const group of new Set([...listed.names, ...named.keys()])) {
    const found = await groups.describeGroup(group);
    const members: GroupShown["members"] = found.ok ? found.members : [];
    const known = members.map(instanceOf);
    const others = (named.get(group) ?? [])
      .filter(({ name }) => !known.some((one) => one.name === name))
      .map(({ name }) => ({ name, topics: [] }));
    const all = [...known, ...others];
    if (all.length > 0) shown.push({ name: group, instances: all });
  }
  return Response.json(shown);
}

export async function deleteConsumer(
  { instances }: MountServices,
  request: Request,
  { group, instance: name }: InstanceName,
): Promise<Response> {
  const instance = instances.find(group, name);
  return await instances.inTurn(instance, request.signal, async () => {
    await instances.end(instance);
    return success();
  });
}
