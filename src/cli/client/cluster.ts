/** A cluster as a client sees it: brokers by id, leaders by metadata, what fails for now tried again in time. */
import { sleep } from "../../env/clock.ts";
import type { Env } from "../../env/env.ts";
import { metadataApi } from "../../protocol/message/03_metadata.ts";
import { findCoordinatorApi } from "../../protocol/message/10_find_coordinator.ts";
import type { Infer } from "../../protocol/schema.ts";
import { type Address, addressText } from "./address.ts";
import { BrokerConnection } from "./connection.ts";
import { brokerFault, checkCode, ClientFault, unreachableFault } from "./fault.ts";

const CONNECT_MS_MAX = 10_000;
const PAUSE_MS_MIN = 50;
const PAUSE_MS_MAX = 1_000;
/** From here on one request asks for several coordinators. */
const COORDINATOR_VERSION_MIN = 4;
const GROUP_KEY = 0;

export interface PartitionView {
  readonly partition: number;
  /** -1 for none. */
  readonly leader: number;
  readonly leaderEpoch: number;
  readonly replicas: readonly number[];
  readonly isr: readonly number[];
}

export interface TopicView {
  readonly name: string;
  readonly topicId: string;
  readonly isInternal: boolean;
  /** By partition number. */
  readonly partitions: readonly PartitionView[];
}

export interface ClusterOptions {
  readonly bootstrap: readonly Address[];
  readonly env: Pick<Env, "clock">;
  /** For one operation with all its repetitions. */
  readonly timeoutMs: number;
}

type MetadataTopic = Infer<typeof metadataApi.response>["topics"][number];

function viewOfTopic({ name, topicId, isInternal, partitions }: MetadataTopic): TopicView {
  const rows = partitions.map((one) => ({
    partition: one.partitionIndex,
    leader: one.leaderId,
    leaderEpoch: one.leaderEpoch,
    replicas: one.replicaNodes,
    isr: one.isrNodes,
  }));
  return {
    name: name ?? "",
    topicId,
    isInternal,
    partitions: rows.toSorted((a, b) => a.partition - b.partition),
  };
}

export class Cluster {
  readonly timeoutMs: number;
  readonly #clock: Env["clock"];
  readonly #bootstrap: readonly Address[];
  readonly #connections = new Map<string, Promise<BrokerConnection>>();
  #nodes: ReadonlyMap<number, Address> = new Map();
  /** Until the first connection stands, a wrong address is likelier than a broker that comes back. */
  #wasConnected = false;

  constructor({ bootstrap, env, timeoutMs }: ClusterOptions) {
    this.#bootstrap = bootstrap;
    this.#clock = env.clock;
    this.timeoutMs = timeoutMs;
  }

  /** Ids of the brokers that the last metadata named. */
  get nodeIds(): number[] {
    return [...this.#nodes.keys()];
  }

  /**
   * Does the work again while it fails for reasons that pass, with growing pauses, within the time-out.
   * The work gets the milliseconds that are left.
   */
  async retrying<T>(work: (leftMs: number) => Promise<T>): Promise<T> {
    const endMs = this.#clock.monotonicMs() + this.timeoutMs;
    for (let pauseMs = PAUSE_MS_MIN;; pauseMs = Math.min(2 * pauseMs, PAUSE_MS_MAX)) {
      const leftMs = Math.max(1, endMs - this.#clock.monotonicMs());
      try {
        return await work(leftMs);
      } catch (error) {
        const mayPass = error instanceof ClientFault && error.retriable && this.#wasConnected;
        if (!mayPass || this.#clock.monotonicMs() + pauseMs >= endMs) throw error;
      }
      await sleep(this.#clock, pauseMs);
    }
  }

  /** Any broker: an open connection if there is one. */
  async any(): Promise<BrokerConnection> {
    const known = [...this.#bootstrap, ...this.#nodes.values()];
    const isOpen = (address: Address) => this.#connections.has(addressText(address)) ? 0 : 1;
    let last: unknown = null;
    for (const address of known.toSorted((a, b) => isOpen(a) - isOpen(b))) {
      try {
        return await this.#connect(address);
      } catch (error) {
        last = error;
      }
    }
    throw last;
  }

  /** The broker of that id. */
  async node(id: number): Promise<BrokerConnection> {
    const address = this.#nodes.get(id);
    if (address === undefined) {
      throw unreachableFault(`Cannot find broker ${id}: it is not part of the cluster now`);
    }
    try {
      return await this.#connect(address);
    } catch (error) {
      if (!(error instanceof ClientFault)) throw error;
      throw unreachableFault(
        `${error.message}: the address that broker ${id} advertises, see --advertise of serve`,
      );
    }
  }

  /** The named topics, or all. Unknown ones fail at once: nothing is created unless asked. */
  async topics(
    names: readonly string[] | null,
    { leftMs = this.timeoutMs, create = false } = {},
  ): Promise<TopicView[]> {
    const connection = await this.any();
    const answer = await connection.call(metadataApi, {
      topics: names?.map((name) => ({ name })) ?? null,
      allowAutoTopicCreation: create,
    }, { timeoutMs: leftMs });
    this.#nodes = new Map(
      answer.brokers.map(({ nodeId, host, port }) => [nodeId, { host, port }]),
    );
    for (const { errorCode: code, name } of answer.topics) {
      checkCode(`find topic ${name}`, code);
    }
    return answer.topics.map(viewOfTopic);
  }

  async topic(name: string, options?: { leftMs?: number; create?: boolean }): Promise<TopicView> {
    const [found] = await this.topics([name], options);
    if (found !== undefined) return found;
    throw brokerFault(`find topic ${name}`, "UNKNOWN_TOPIC_OR_PARTITION");
  }

  /** Who keeps the group. */
  async coordinator(group: string, leftMs = this.timeoutMs): Promise<BrokerConnection> {
    const connection = await this.any();
    const { coordinators: [found] } = await connection.call(findCoordinatorApi, {
      keyType: GROUP_KEY,
      coordinatorKeys: [group],
    }, { timeoutMs: leftMs, versionMin: COORDINATOR_VERSION_MIN });
    const what = `find the coordinator of group ${group}`;
    if (found === undefined) throw brokerFault(what, "COORDINATOR_NOT_AVAILABLE");
    checkCode(what, found.errorCode, { message: found.errorMessage });
    return await this.#connect({ host: found.host, port: found.port });
  }

  async close(): Promise<void> {
    const all = await Promise.allSettled(this.#connections.values());
    for (const one of all) if (one.status === "fulfilled") one.value.close();
    this.#connections.clear();
  }

  async #connect(address: Address): Promise<BrokerConnection> {
    const key = addressText(address);
    const known = this.#connections.get(key);
    if (known !== undefined) {
      const connection = await known;
      if (!connection.isClosed) return connection;
      // Another caller may have replaced it meanwhile.
      if (this.#connections.get(key) !== known) return await this.#connect(address);
    }
    const timeoutMs = Math.min(this.timeoutMs, CONNECT_MS_MAX);
    const opening = BrokerConnection.open(address, this.#clock, timeoutMs);
    this.#connections.set(key, opening);
    try {
      const connection = await opening;
      this.#wasConnected = true;
      return connection;
    } catch (error) {
      this.#connections.delete(key);
      throw error;
    }
  }
}

/** Partitions by the broker that leads them. One without a leader is worth another look. */
export function byLeader<T extends { readonly partition: number }>(
  topic: TopicView,
  wanted: readonly T[],
): Map<number, T[]> {
  const groups = new Map<number, T[]>();
  for (const one of wanted) {
    const row = topic.partitions.find(({ partition }) => partition === one.partition);
    const what = `use partition ${one.partition} of topic ${topic.name}`;
    if (row === undefined) {
      const message = `it has ${topic.partitions.length} partitions`;
      throw brokerFault(what, "UNKNOWN_TOPIC_OR_PARTITION", { message });
    }
    if (row.leader < 0) throw brokerFault(what, "LEADER_NOT_AVAILABLE");
    const group = groups.get(row.leader);
    if (group === undefined) groups.set(row.leader, [one]);
    else group.push(one);
  }
  return groups;
}
