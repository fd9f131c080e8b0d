/** A shard of groups over a log, loaded, with room for all and rules that no test need name. */
import type { Env } from "../../src/env/env.ts";
import { Shard, type ShardOptions } from "../../src/broker/group/shard.ts";
import { ShardMemory } from "../../src/broker/shard/shard_memory.ts";
import { GROUP_COMPACT_BYTES_MIN } from "../../src/lib/limits.ts";
import { consumerHost, shareHost } from "./consumer_topics.ts";

export async function loadedShard(
  env: Env,
  log: Shard["log"],
  over: Partial<ShardOptions> & Pick<ShardOptions, "retentionMs">,
): Promise<Shard> {
  const shard = new Shard({
    env,
    log,
    settings: {
      sessionTimeoutMsMin: 6000,
      sessionTimeoutMsMax: 60_000,
      initialRebalanceDelayMs: 0,
      membersMax: 10,
    },
    newMemberId: (prefix) => prefix,
    topicExists: () => true,
    consumers: consumerHost(env.clock),
    shares: shareHost(env),
    memory: new ShardMemory(2 ** 40),
    compactBytesMin: GROUP_COMPACT_BYTES_MIN,
    ...over,
  });
  await shard.load();
  return shard;
}
