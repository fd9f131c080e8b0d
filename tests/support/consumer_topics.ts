/** Topics as consumer and share groups see them, changed by hand, and hosts of such groups over them. */
import type { Clock } from "../../src/env/clock.ts";
import type { Env } from "../../src/env/env.ts";
import { toHex, toUtf8 } from "../../src/lib/bytes.ts";
import type { SubscribedTopic, TopicView } from "../../src/broker/group/consumer/group.ts";
import type {
  ConsumerHost,
  ConsumerSettings,
  MemberTimes,
} from "../../src/broker/group/consumer/live.ts";
import type { ShareHost } from "../../src/broker/group/share/live.ts";
import type { ShareGroupSettings } from "../../src/broker/group/share/share_membership.ts";
import { MemoryShareGroups } from "./memory_share_groups.ts";
import { RegexTopics } from "../../src/broker/group/consumer/regex_topics.ts";

/** The id of a topic follows from its name. */
export function topicIdOf(name: string): string {
  return toHex(toUtf8(name)).padEnd(32, "0").slice(0, 32);
}

export class FakeTopics implements TopicView {
  version = 0;
  readonly #topics = new Map<string, SubscribedTopic>();

  constructor(topics: Record<string, number> = {}) {
    for (const [name, partitions] of Object.entries(topics)) this.set(name, partitions);
  }

  /** No partitions deletes the topic. */
  set(name: string, partitions: number): void {
    this.version += 1;
    if (partitions === 0) this.#topics.delete(name);
    else this.#topics.set(name, { topicId: topicIdOf(name), name, partitions });
  }

  find(name: string): SubscribedTopic | undefined {
    return this.#topics.get(name);
  }

  findById(topicId: string): SubscribedTopic | undefined {
    return [...this.#topics.values()].find((topic) => topic.topicId === topicId);
  }

  names(): Iterable<string> {
    return this.#topics.keys();
  }
}

export function consumerHost(
  clock: Clock,
  topics: TopicView = new FakeTopics(),
  { sessionTimeoutMs = 45_000, heartbeatIntervalMs = 5000, ...settings }: Partial<
    ConsumerSettings & MemberTimes
  > = {},
): ConsumerHost {
  return {
    settings: {
      membersMax: 1000,
      assignors: ["uniform", "range"],
      canUpgrade: true,
      canDowngrade: true,
      ...settings,
    },
    timesOf: () => ({ sessionTimeoutMs, heartbeatIntervalMs }),
    topics,
    regexes: new RegexTopics(clock, topics),
  };
}

export function shareHost(
  env: Env,
  topics: TopicView = new FakeTopics(),
  over: Partial<ShareHost> = {},
): ShareHost {
  const settings: ShareGroupSettings = {
    sessionTimeoutMs: 45_000,
    heartbeatIntervalMs: 5000,
    autoOffsetReset: { kind: "latest" },
    isolation: "read_uncommitted",
    recordLockDurationMs: 30_000,
    deliveryCountLimit: 5,
    recordLocksMax: 2000,
  };
  return {
    env,
    topics,
    membership: { settingsOf: () => settings },
    shareGroups: new MemoryShareGroups(),
    membersMax: 200,
    ...over,
  };
}
