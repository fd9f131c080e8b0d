/** A member of a consumer group (KIP-848) as a raw client: its id, its epoch and what it holds. */
import {
  consumerGroupHeartbeatApi,
  type ConsumerGroupHeartbeatRequest,
} from "../../src/protocol/message/68_consumer_group_heartbeat.ts";
import { named, type Quirks } from "./quirks.ts";

type Beat = Partial<ConsumerGroupHeartbeatRequest>;

export class ConsumerMember {
  readonly q: Quirks;
  readonly id: string;
  readonly group: string;
  epoch = 0;
  /** Partitions of the topics that it was given last, by topic id. */
  held: { topicId: string; partitions: readonly number[] }[] = [];

  constructor(q: Quirks, id: string, group = "g") {
    this.q = q;
    this.id = id;
    this.group = group;
  }

  async say(request: Beat, version = 1) {
    const answer = named(
      await this.q.call(consumerGroupHeartbeatApi, version, {
        groupId: this.group,
        memberId: this.id,
        memberEpoch: this.epoch,
        ...request,
      }),
    );
    if (answer.error === "NONE") this.epoch = answer.memberEpoch;
    if (answer.assignment != null) {
      this.held = answer.assignment.topicPartitions.map((one) => ({ ...one }));
    }
    return answer;
  }

  join(names: readonly string[] = ["t"], more: Beat = {}) {
    this.held = [];
    const first = { memberEpoch: 0, rebalanceTimeoutMs: 60_000, topicPartitions: [] };
    return this.say({ ...first, subscribedTopicNames: names, ...more });
  }

  /** One heartbeat that says what it holds. */
  beat(more: Beat = {}) {
    return this.say({ topicPartitions: this.held, ...more });
  }

  leave(memberEpoch = -1, more: Beat = {}) {
    return this.say({ memberEpoch, ...more });
  }

  /** Of all topics together. */
  get partitions(): number[] {
    return this.held.flatMap(({ partitions }) => partitions).toSorted((a, b) => a - b);
  }
}
