/**
 * Who waits for records of which topic: one listener on each log however many wait, and no timers. A log is
 * listened to as long as somebody waits when it moves.
 */
import type { Uuid } from "../lib/uuid.ts";
import type { Partitions } from "../broker/partitions.ts";
import type { Change, MetadataStore } from "../controller/metadata_store.ts";
import type { PartitionLog } from "../log/partition_log.ts";

type Wake = () => void;

class WatchedTopic {
  /** Those who wait for any partition. */
  readonly all = new Set<Wake>();
  readonly some = new Map<number, Set<Wake>>();
  readonly logs = new Map<number, Wake>();

  isWaitedFor(partition: number): boolean {
    return this.all.size > 0 || this.some.has(partition);
  }

  add(partitions: readonly number[] | null, wake: Wake): void {
    if (partitions === null) return void this.all.add(wake);
    for (const partition of partitions) {
      const waiting = this.some.get(partition);
      if (waiting === undefined) this.some.set(partition, new Set([wake]));
      else waiting.add(wake);
    }
  }

  remove(partitions: readonly number[] | null, wake: Wake): void {
    this.all.delete(wake);
    for (const partition of partitions ?? []) {
      const waiting = this.some.get(partition);
      if (waiting?.delete(wake) === true && waiting.size === 0) this.some.delete(partition);
    }
  }

  /** Copies: whoever wakes may wait again at once. */
  wake(partition: number): void {
    const some = this.some.get(partition) ?? [];
    for (const wake of Array.from(this.all).concat(Array.from(some))) wake();
  }

  wakeAll(): void {
    const waiting = new Set(this.all);
    for (const some of this.some.values()) for (const wake of some) waiting.add(wake);
    for (const wake of waiting) wake();
  }
}

export class TopicWatches {
  readonly #partitions: Pick<Partitions, "peek">;
  readonly #metadata: Pick<MetadataStore, "view" | "onChange">;
  readonly #topics = new Map<Uuid, WatchedTopic>();
  readonly #unfollow: () => void;

  constructor(
    { partitions, metadata }: {
      readonly partitions: Pick<Partitions, "peek">;
      readonly metadata: Pick<MetadataStore, "view" | "onChange">;
    },
  ) {
    this.#partitions = partitions;
    this.#metadata = metadata;
    this.#unfollow = metadata.onChange((change) => this.#changed(change));
  }

  /** Logs that are listened to. */
  get size(): number {
    let count = 0;
    for (const { logs } of this.#topics.values()) count += logs.size;
    return count;
  }

  watch(topicId: Uuid, partitions: readonly number[] | null, wake: Wake): () => void {
    let topic = this.#topics.get(topicId);
    if (topic === undefined) this.#topics.set(topicId, topic = new WatchedTopic());
    topic.add(partitions, wake);
    this.#listen(topicId, topic, partitions);
    return () => {
      topic.remove(partitions, wake);
      if (topic.logs.size === 0) this.#forget(topicId, topic);
    };
  }

  close(): void {
    this.#unfollow();
    for (const topic of this.#topics.values()) {
      for (const unsubscribe of topic.logs.values()) unsubscribe();
      topic.logs.clear();
      topic.wakeAll();
    }
    this.#topics.clear();
  }

  #listen(topicId: Uuid, topic: WatchedTopic, partitions: readonly number[] | null): void {
    if (partitions !== null) {
      for (const partition of partitions) this.#listenTo(topicId, topic, partition);
      return;
    }
    const count = this.#metadata.view().topics.get(topicId)?.partitions ?? 0;
    if (topic.logs.size >= count) return;
    for (let partition = 0; partition < count; partition++) {
      this.#listenTo(topicId, topic, partition);
    }
  }

  #listenTo(topicId: Uuid, topic: WatchedTopic, partition: number): void {
    if (topic.logs.has(partition)) return;
    const log = this.#partitions.peek(topicId, partition);
    if (log === undefined) return;
    const unsubscribe = log.onAdvance(() => this.#moved(topicId, topic, partition, log));
    topic.logs.set(partition, unsubscribe);
  }

  #moved(topicId: Uuid, topic: WatchedTopic, partition: number, log: PartitionLog): void {
    const isGone = this.#partitions.peek(topicId, partition) !== log;
    if (isGone || !topic.isWaitedFor(partition)) {
      topic.logs.get(partition)?.();
      topic.logs.delete(partition);
      if (topic.logs.size === 0) this.#forget(topicId, topic);
    }
    topic.wake(partition);
  }

  #forget(topicId: Uuid, topic: WatchedTopic): void {
    const isWaited = topic.all.size > 0 || topic.some.size > 0;
    if (!isWaited && this.#topics.get(topicId) === topic) this.#topics.delete(topicId);
  }

  /** Deleted, or more partitions, or another leader of one. */
  #changed({ topics }: Change): void {
    for (const topicId of topics) this.#topics.get(topicId)?.wakeAll();
  }
}
