/** The gateway's port on groups: their leases here, and what they look like. */
import { faultToCode } from "../broker/fault_to_code.ts";
import type { Coordinator, ShardFound } from "../broker/group/coordinator.ts";
import { stillOpen } from "../broker/group/coordinator.ts";
import { type GroupEntry, isEmptyGroup, stateNameOf, typeOf } from "../broker/group/group_entry.ts";
import { isStorable } from "../broker/group/group.ts";
import { GroupLeases } from "../broker/group/lease/group_leases.ts";
import type { LeasedPartition } from "../broker/group/lease/leases.ts";
import type { Shard } from "../broker/group/shard.ts";
import type { BrokerServices } from "../broker/handler.ts";
import type { GroupRow, GroupShown, LeaseGateway, MemberRow } from "../http/groups/lease_port.ts";
import { PollWaits } from "../http/groups/poll_waits.ts";
import type { Failure } from "../http/port.ts";
import { isFault } from "../lib/errors.ts";

export interface HttpGroupsServices
  extends Pick<BrokerServices, "config" | "topics" | "nodeId" | "env"> {
  readonly coordinator: Coordinator;
}

function invalidGroup(): Failure {
  return { ok: false, error: "INVALID_GROUP_ID", message: "Cannot use this name for a group" };
}

function unknownGroup(group: string): Failure {
  return { ok: false, error: "GROUP_ID_NOT_FOUND", message: `Cannot find group ${group}` };
}

function failure(error: unknown): Failure {
  if (!isFault(error)) throw error;
  return { ok: false, error: faultToCode(error, "coordinator"), message: error.message };
}

function rowOf(entry: GroupEntry): GroupRow {
  const { group } = entry;
  const type = typeOf(entry);
  const protocolType = type === "classic" ? group.protocolType ?? "" : type;
  return { group: group.groupId, type, state: stateNameOf(entry), protocolType };
}

function membersOf({ group, consumer, share }: GroupEntry): MemberRow[] {
  if (share !== null) {
    return [...share.group.members].map(([member, { profile }]) => ({
      member,
      instance: null,
      client: profile.clientId,
      host: profile.clientHost,
    }));
  }
  if (consumer === null) {
    return [...group.members].map(([member, { instanceId, clientId, clientHost }]) => ({
      member,
      instance: instanceId,
      client: clientId,
      host: clientHost,
    }));
  }
  return [...consumer.group.members].map(([member, { profile }]) => ({
    member,
    instance: profile.instanceId,
    client: profile.clientId,
    host: profile.clientHost,
  }));
}

export class HttpGroups implements LeaseGateway {
  readonly polls: PollWaits;
  readonly #services: HttpGroupsServices;

  constructor(services: HttpGroupsServices) {
    this.#services = services;
    this.polls = new PollWaits(services.env);
  }

  /** Polls that wait are answered. */
  close(): void {
    this.polls.close();
  }

  async open(group: string): ReturnType<LeaseGateway["open"]> {
    const found = await this.#shardOf(group);
    if (!found.ok) return found;
    const retentionMs = this.#services.config.integer("offsets.retention.minutes") * 60_000;
    return { ok: true, leases: new GroupLeases(found.shard, group, retentionMs) };
  }

  async #shardOf(group: string): Promise<{ readonly ok: true; readonly shard: Shard } | Failure> {
    if (group === "" || !isStorable(group)) return invalidGroup();
    const { coordinator, nodeId } = this.#services;
    try {
      const found: ShardFound = stillOpen(await coordinator.shardOf(group));
      if (found.ok || found.error !== "NOT_COORDINATOR") return found;
      const located = await coordinator.locate(group);
      const leader = "leader" in located ? located.leader : null;
      const where = leader === null || leader === nodeId ? "" : `: node ${leader} has it`;
      return { ...found, message: `Cannot use group ${group} here and now${where}` };
    } catch (error) {
      return failure(error);
    }
  }

  async list(): ReturnType<LeaseGateway["list"]> {
    try {
      const groups: GroupRow[] = [];
      for (const each of await this.#services.coordinator.allShards()) {
        const found = stillOpen(each);
        if (!found.ok) return found;
        groups.push(...[...found.shard.groups.values()].map(rowOf));
      }
      return { ok: true, groups: groups.toSorted((a, b) => a.group < b.group ? -1 : 1) };
    } catch (error) {
      return failure(error);
    }
  }

  async describe(group: string): Promise<GroupShown | Failure> {
    const found = await this.#shardOf(group);
    if (!found.ok) return found;
    const entry = found.shard.find(group);
    if (entry === undefined || entry.group.state === "Dead") return unknownGroup(group);
    const offsets = [...entry.offsets.entries()].flatMap((offset) => {
      const topicId = this.#topicIdOf(offset.topic);
      const known = topicId === null
        ? undefined
        : entry.offsets.get(offset.topic, offset.partition, topicId);
      return topicId === null || known === undefined ? [] : [{ ...known, topicId }];
    });
    const leased = found.shard.leases.partitionsOf(group).flatMap((at): LeasedPartition[] => {
      const topicId = this.#topicIdOf(at.topic);
      return topicId === null ? [] : [{ ...at, topicId }];
    });
    return { ok: true, ...rowOf(entry), members: membersOf(entry), offsets, leased };
  }

  #topicIdOf(name: string): string | null {
    return this.#services.topics.find(name)?.topicId ?? null;
  }

  async delete(group: string): Promise<{ readonly ok: true } | Failure> {
    const found = await this.#shardOf(group);
    if (!found.ok) return found;
    const entry = found.shard.find(group);
    if (entry === undefined || entry.group.state === "Dead") return unknownGroup(group);
    if (!isEmptyGroup(entry)) {
      const message = `Cannot delete group ${group}: members are in it`;
      return { ok: false, error: "NON_EMPTY_GROUP", message };
    }
    try {
      await found.shard.delete(entry);
      return { ok: true };
    } catch (error) {
      return failure(error);
    }
  }
}
