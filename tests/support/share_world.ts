/** A shard with a share group over a log in memory, which can be lost and loaded again. */
import type { ShareBeatRequest } from "../../src/broker/group/share/heartbeat.ts";
import { logConfigOf } from "../../src/broker/topic_config.ts";
import { brokerConfig } from "./broker_world.ts";
import { World } from "./consumer_world.ts";
import { createMemoryLog } from "./memory_log.ts";

export function shareBeatOf(
  memberId: string,
  epoch: number,
  topicNames: readonly string[] | null = null,
  over: Partial<ShareBeatRequest> = {},
): ShareBeatRequest {
  return { memberId, epoch, rackId: null, topicNames, clientId: "c", clientHost: "/h", ...over };
}

export class ShareWorld extends World {
  override readonly log;

  constructor(configs: Readonly<Record<string, string>>) {
    super();
    this.log = createMemoryLog(logConfigOf(configs, brokerConfig()));
  }

  get share() {
    return this.shard.find("g")?.share?.group;
  }

  /** Null when the group is not to be had. States are made when it returns, unless they wait at their gate. */
  async beat(request: ShareBeatRequest) {
    const live = this.shard.shares.of("g", request.epoch === 0);
    if (live === null) return null;
    const done = live.heartbeat(request);
    this.shard.reschedule(this.shard.find("g")!);
    const answer = await done;
    await this.clock.advance(0);
    return answer;
  }

  async joined(memberId: string, ...topicNames: readonly string[]) {
    await this.beat(shareBeatOf(memberId, 0, topicNames));
    return await this.beat(shareBeatOf(memberId, this.epochOf(memberId)));
  }

  epochOf(memberId: string): number {
    return this.share?.members.get(memberId)?.place.epoch ?? -5;
  }

  async leaveShare(memberId: string) {
    const live = this.shard.shares.of("g", false);
    if (live === null) return null;
    const done = live.leave(memberId);
    this.shard.reschedule(this.shard.find("g")!);
    return await done;
  }
}

export async function createShareWorld(
  configs: Readonly<Record<string, string>> = {},
): Promise<ShareWorld> {
  const made = new ShareWorld(configs);
  await made.load();
  return made;
}
