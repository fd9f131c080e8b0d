/**
 * Ends of durable streams. Each is over at its date, or when it was not used for its time to live; then nobody finds
 * it, and a sweep deletes its topic. When it was used is known to the node that leads it, in memory alone: whoever
 * begins to lead gives a stream its whole time, so that none ends too early.
 */
import type { Cancel } from "../env/clock.ts";
import { isFault, messageOf } from "../lib/errors.ts";
import { STREAM_SWEEP_MS, STREAMS_SWEPT_AT_ONCE } from "../lib/limits.ts";
import type { Uuid } from "../lib/uuid.ts";
import type { TopicRow } from "../controller/image.ts";
import type { BrokerServices } from "../broker/handler.ts";
import { isDeleted, type StreamLineage } from "./stream_lineage.ts";
import type { StreamTopic } from "../http/mounts/durable_streams/port.ts";

type Terms = Pick<StreamTopic, "ttlSeconds" | "expiresMs">;
type Services = Pick<BrokerServices, "env" | "metadata" | "topics" | "partitions" | "nodeId">;

const TTL = "skerry.stream.ttl.seconds";
const EXPIRES = "skerry.stream.expires.ms";

function countIn({ configs }: TopicRow, name: string): number | null {
  const value = Number(configs[name] ?? -1);
  return value >= 0 ? value : null;
}

export class StreamExpiry {
  readonly #services: Services;
  readonly #lineage: StreamLineage;
  readonly #remove: (row: TopicRow) => Promise<{ readonly ok: boolean }>;
  readonly #unfollow: () => void;
  /** Topics that end some time. */
  readonly #ending = new Set<Uuid>();
  /** When those with a time to live were used last; monotonic. */
  readonly #usedMs = new Map<Uuid, number>();
  #timer: Cancel | null = null;
  #isClosed = false;

  constructor(
    services: Services,
    lineage: StreamLineage,
    remove: (row: TopicRow) => Promise<{ readonly ok: boolean }>,
  ) {
    this.#services = services;
    this.#lineage = lineage;
    this.#remove = remove;
    this.#unfollow = services.metadata.onChange(({ topics }) => this.#follow(topics));
    this.#follow(Array.from(services.metadata.view().topics.values(), ({ topicId }) => topicId));
  }

  close(): void {
    this.#isClosed = true;
    this.#unfollow();
    this.#timer?.();
  }

  termsOf(row: TopicRow): Terms {
    return { ttlSeconds: countIn(row, TTL), expiresMs: countIn(row, EXPIRES) };
  }

  /** Not for streams that another node leads: only it knows. */
  isOver(row: TopicRow): boolean {
    const { ttlSeconds, expiresMs } = this.termsOf(row);
    if (ttlSeconds === null && expiresMs === null) return false;
    if (!this.#isOurs(row)) {
      this.#usedMs.delete(row.topicId);
      return false;
    }
    const { clock } = this.#services.env;
    if (expiresMs !== null && clock.nowMs() >= expiresMs) return true;
    if (ttlSeconds === null) return false;
    return clock.monotonicMs() - this.#lastUse(row.topicId) >= ttlSeconds * 1_000;
  }

  touch(row: TopicRow): void {
    if (countIn(row, TTL) === null || this.isOver(row)) return;
    this.#usedMs.set(row.topicId, this.#services.env.clock.monotonicMs());
  }

  #lastUse(topicId: Uuid): number {
    const known = this.#usedMs.get(topicId);
    if (known !== undefined) return known;
    const nowMs = this.#services.env.clock.monotonicMs();
    this.#usedMs.set(topicId, nowMs);
    return nowMs;
  }

  /** One that nobody leads is whose it is asked of. */
  #isOurs({ topicId }: TopicRow): boolean {
    const leader = this.#services.partitions.leaderOf(topicId, 0)?.leader ?? null;
    return leader === null || leader === this.#services.nodeId;
  }

  #follow(topicIds: Iterable<Uuid>): void {
    const { topics } = this.#services.metadata.view();
    for (const topicId of topicIds) {
      const row = topics.get(topicId);
      const ends = row !== undefined &&
        (isDeleted(row) || (countIn(row, TTL) ?? countIn(row, EXPIRES)) !== null);
      if (!ends) this.#forget(topicId);
      else if (!this.#ending.has(topicId)) {
        this.#ending.add(topicId);
        this.isOver(row);
      }
    }
    if (this.#ending.size > 0) this.#arm();
  }

  #forget(topicId: Uuid): void {
    this.#ending.delete(topicId);
    this.#usedMs.delete(topicId);
  }

  #arm(): void {
    if (this.#isClosed || this.#timer !== null) return;
    this.#timer = this.#services.env.clock.after(STREAM_SWEEP_MS, () => {
      this.#sweep()
        .catch((error: unknown) => {
          this.#services.env.log.log("error", "stream-sweep-failed", { error: messageOf(error) });
        })
        .finally(() => {
          this.#timer = null;
          if (this.#ending.size > 0) this.#arm();
        });
    });
  }

  /** A hidden one is deleted with its last fork, but a crash may have come in between. */
  #isDue(row: TopicRow): boolean {
    return isDeleted(row)
      ? this.#isOurs(row) && !this.#lineage.hasForks(row.topicId)
      : this.isOver(row);
  }

  async #sweep(): Promise<void> {
    const { metadata, env } = this.#services;
    let swept = 0;
    for (const topicId of Array.from(this.#ending)) {
      const row = metadata.view().topics.get(topicId);
      if (this.#isClosed || swept >= STREAMS_SWEPT_AT_ONCE) return;
      if (row === undefined || !this.#isDue(row)) continue;
      swept += 1;
      try {
        const deleted = await this.#remove(row);
        if (deleted.ok) env.log.log("info", "stream-expired", { name: row.name, topicId });
      } catch (error) {
        if (!isFault(error)) throw error;
        env.log.log("warn", "stream-not-expired", { name: row.name, reason: error.message });
      }
    }
  }
}
