/** A member of a classic group as a raw client: one connection, its id and its generation. */
import { toUtf8 } from "../../src/lib/bytes.ts";
import { joinGroupApi } from "../../src/protocol/message/11_join_group.ts";
import { heartbeatApi } from "../../src/protocol/message/12_heartbeat.ts";
import { leaveGroupApi } from "../../src/protocol/message/13_leave_group.ts";
import { syncGroupApi } from "../../src/protocol/message/14_sync_group.ts";
import { errorName } from "../../src/protocol/error_code.ts";
import type { RawClient } from "./quirk_node.ts";
import { named, type Quirks } from "./quirks.ts";

export interface MemberOptions {
  readonly group?: string;
  readonly version?: number;
  readonly instanceId?: string | null;
  readonly clientId?: string;
  readonly sessionTimeoutMs?: number;
  readonly rebalanceTimeoutMs?: number;
  readonly protocolType?: string;
  /** Names with their metadata; a bare name has its own name as metadata. */
  readonly protocols?: readonly (string | readonly [name: string, metadata: string | Uint8Array])[];
}

export class GroupMember {
  readonly q: Quirks;
  readonly client: RawClient;
  options: MemberOptions;
  id = "";
  generation = -1;
  /** Of the last join; members of a group that was not joined say "range". */
  protocol = "range";

  constructor(q: Quirks, options: MemberOptions = {}) {
    this.q = q;
    this.client = q.node.connect();
    this.options = options;
  }

  get group(): string {
    return this.options.group ?? "g";
  }

  /** One JoinGroup, as the options and the id have it. */
  async join() {
    const { version = 9, instanceId = null, clientId = "quirk" } = this.options;
    const { sessionTimeoutMs = 10_000, rebalanceTimeoutMs = 20_000 } = this.options;
    const { protocolType = "consumer", protocols = ["range"] } = this.options;
    const answer = named(
      await this.client.call(joinGroupApi, version, {
        groupId: this.group,
        sessionTimeoutMs,
        rebalanceTimeoutMs,
        memberId: this.id,
        groupInstanceId: instanceId,
        protocolType,
        protocols: protocols.map((one) => {
          const [name, metadata] = typeof one === "string" ? [one, one] : one;
          return { name, metadata: typeof metadata === "string" ? toUtf8(metadata) : metadata };
        }),
      }, clientId),
    );
    if (answer.error === "NONE" || answer.error === "MEMBER_ID_REQUIRED") this.id = answer.memberId;
    if (answer.error === "NONE") {
      this.generation = answer.generationId;
      this.protocol = answer.protocolName ?? "range";
    }
    return answer;
  }

  /** JoinGroup as clients do it: again with the id that the broker asked for. */
  async enter() {
    const answer = await this.join();
    return answer.error === "MEMBER_ID_REQUIRED" ? await this.join() : answer;
  }

  async sync(assignments: Readonly<Record<string, string>> = {}, changes: {
    readonly generation?: number;
    readonly memberId?: string;
    readonly protocolType?: string | null;
    readonly protocolName?: string | null;
    readonly version?: number;
  } = {}) {
    const { generation = this.generation, memberId = this.id, version = 5 } = changes;
    const { protocolName = this.protocol } = changes;
    const { protocolType = this.options.protocolType ?? "consumer" } = changes;
    return named(
      await this.client.call(syncGroupApi, version, {
        groupId: this.group,
        generationId: generation,
        memberId,
        groupInstanceId: this.options.instanceId ?? null,
        protocolType,
        protocolName,
        assignments: Object.entries(assignments).map(([id, text]) => ({
          memberId: id,
          assignment: toUtf8(text),
        })),
      }),
    );
  }

  async beat(changes: { readonly generation?: number; readonly memberId?: string } = {}) {
    const { generation = this.generation, memberId = this.id } = changes;
    const { errorCode } = await this.client.call(heartbeatApi, 4, {
      groupId: this.group,
      generationId: generation,
      memberId,
      groupInstanceId: this.options.instanceId ?? null,
    });
    return errorName(errorCode);
  }

  async leave() {
    const { members, errorCode } = await this.client.call(leaveGroupApi, 4, {
      groupId: this.group,
      members: [{ memberId: this.id, groupInstanceId: this.options.instanceId ?? null }],
    });
    return errorCode === 0 ? errorName(members[0]!.errorCode) : errorName(errorCode);
  }
}

/** Runs what was begun to where it waits for time or for others; timers that are due fire. */
export async function settled<T>(q: Quirks, started: Promise<T>): Promise<T> {
  await q.node.clock.advance(0);
  return await started;
}

/** A stable group of these members; the first is the leader and assigns each its own client's name. */
export async function stableGroup(q: Quirks, members: readonly GroupMember[]): Promise<void> {
  const entering = members.map((member) => member.enter());
  for (let i = 0; i < members.length; i++) await q.node.clock.advance(0);
  const joins = await Promise.all(entering);
  const leader = members[joins.findIndex(({ leader: id, memberId }) => id === memberId)]!;
  const assignments = Object.fromEntries(
    members.map(({ id }, at) => [id, `partition ${at}`]),
  );
  await Promise.all(members.map((one) => one.sync(one === leader ? assignments : {})));
}
