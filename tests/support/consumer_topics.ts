/** Topics as consumer groups see them, changed by hand, and a host of such groups over them. */
import type { Clock } from "../../src/env/clock.ts";
import { toHex, toUtf8 } from "../../src/lib/bytes.ts";
import type { SubscribedTopic, TopicView } from "../../src/broker/group/consumer/group.ts";
import type { ConsumerHost, ConsumerSettings } from "../../src/broker/group/consumer/live.ts";
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
  settings: Partial<ConsumerSettings> = {},
): ConsumerHost {
  return {
    settings: {
      sessionTimeoutMs: 45_000,
      heartbeatIntervalMs: 5000,
      membersMax: 1000,
      assignors: ["uniform", "range"],
      canUpgrade: true,
      canDowngrade: true,
      ...settings,
    },
    topics,
    regexes: new RegexTopics(clock, topics),
  };
}
