/**
 * The consumer instances that this node serves. Each is a record in the bucket, so that it outlives the node and
 * goes on at another one; what a node has in memory of it begins with its first request there. One that nobody
 * asks for ends.
 */
import type { Cancel } from "../../../env/clock.ts";
import type { Env } from "../../../env/env.ts";
import { messageOf } from "../../../lib/errors.ts";
import {
  HTTP_INSTANCE_BEAT_MS,
  HTTP_INSTANCE_WAITERS_MAX,
  HTTP_INSTANCES_MAX,
} from "../../../lib/limits.ts";
import { busy } from "../../permit_wait.ts";
import { badRequest, ProblemError } from "../../problem.ts";
import type { GroupGateway, InstanceStore, TopicPartition } from "../group_port.ts";
import { Instance } from "./instance.ts";
import { type InstanceRecord, keyOf, namesOf, readRecord, writeRecord } from "./record.ts";

export interface InstancesOptions {
  readonly env: Env;
  readonly store: InstanceStore;
  readonly groups: GroupGateway;
}

/** An instance whose record is not what a request took it for. */
export class NoInstance extends Error {
  override readonly name = "NoInstance";
}

function tooMany(): ProblemError {
  return new ProblemError({
    status: 503,
    title: "Too many instances",
    detail: `Cannot make a consumer instance: there are ${HTTP_INSTANCES_MAX} already`,
  });
}

export class Instances {
  readonly #options: InstancesOptions;
  readonly #known = new Map<string, Instance>();
  readonly #startedMs: number;
  readonly #stop = new AbortController();
  readonly #hide: () => void;
  #cancelTimer: Cancel = () => {};
  /** Those that are not in the store yet count as well. */
  #adding = 0;

  constructor(options: InstancesOptions) {
    this.#options = options;
    const { clock, metrics } = options.env;
    this.#startedMs = clock.monotonicMs();
    this.#hide = metrics.onRender((gauge) => gauge("skerry_http_instances", this.#known.size));
    this.#schedule();
  }

  /** Aborted once the node ends: nobody waits here for records any more. */
  get stopping(): AbortSignal {
    return this.#stop.signal;
  }

  /** Null when there is one of this name already. Throws ProblemError. */
  async create(
    group: string,
    name: string,
    told: Omit<InstanceRecord, "node">,
  ): Promise<Instance | null> {
    const { store } = this.#options;
    const key = keyOf(group, name);
    if (key === null) throw badRequest("Cannot use the names of the group and the instance");
    const before = store.get(key);
    if (before !== null && readRecord(before) !== null) return null;
    if (before !== null) await store.put(key, null);
    if (store.keys().length + this.#adding >= HTTP_INSTANCES_MAX) throw tooMany();
    const record = { ...told, node: store.nodeId };
    this.#adding += 1;
    try {
      return await store.add(key, textOf(record)) ? this.#begin(key, record) : null;
    } finally {
      this.#adding -= 1;
    }
  }

  /** Throws NoInstance. */
  find(group: string, name: string): Instance {
    const key = keyOf(group, name);
    const text = key === null ? null : this.#options.store.get(key);
    const record = text === null ? null : readRecord(text);
    if (key === null || record === null) throw new NoInstance(`${group}/${name}`);
    const known = this.#known.get(key);
    const instance = known === undefined || known.isGone ? this.#begin(key, record) : known;
    instance.lastUsedMs = this.#options.env.clock.monotonicMs();
    return instance;
  }

  /** All of a group, or of all groups, that anybody serves. */
  namesIn(group?: string): readonly { readonly group: string; readonly name: string }[] {
    return this.#options.store.keys().map(namesOf)
      .filter((named) => group === undefined || named.group === group);
  }

  /** One request of an instance at a time; the others wait, not too many of them. Throws ProblemError, NoInstance. */
  async inTurn<T>(
    instance: Instance,
    signal: AbortSignal,
    work: () => Promise<T>,
  ): Promise<T> {
    if (instance.turn.waiting >= HTTP_INSTANCE_WAITERS_MAX) throw busy();
    await instance.turn.acquire(1, signal);
    try {
      if (instance.isGone) throw new NoInstance(instance.named.key);
      return await work();
    } finally {
      instance.lastUsedMs = this.#options.env.clock.monotonicMs();
      instance.turn.release();
    }
  }

  /** Throws ProblemError when it cannot be stored; then nothing has changed. */
  async change(instance: Instance, changes: Partial<InstanceRecord>): Promise<void> {
    const { store } = this.#options;
    const record = { ...instance.record, ...changes, node: store.nodeId };
    if (JSON.stringify(record) === JSON.stringify(instance.record)) return;
    await store.put(instance.named.key, textOf(record));
    instance.record = record;
  }

  async #forgetSeeks(instance: Instance, of: readonly TopicPartition[]): Promise<void> {
    const left = instance.record.seeks.filter((seek) =>
      !of.some(({ topic, partition }) => topic === seek.topic && partition === seek.partition)
    );
    if (left.length < instance.record.seeks.length) await this.change(instance, { seeks: left });
  }

  /** Tells the others of its group that are here, so that what it gets or gives back moves at once. */
  async settle(group: string): Promise<void> {
    for (let round = 0; round < 2; round++) {
      const members = [...this.#known.values()]
        .filter((one) => one.named.group === group && one.isMember && !one.isGone);
      await Promise.all(members.map((one) => one.beat()));
      if (members.length < 2) return;
    }
  }

  /** What its client has been given counts as done, if it said so. Throws ProblemError. */
  async end(instance: Instance): Promise<void> {
    if (instance.record.autoCommit) await instance.commitGiven();
    await this.#options.store.put(instance.named.key, null);
    instance.isGone = true;
    this.#known.delete(instance.named.key);
    if (instance.subscription === null) return;
    await instance.leave();
    await this.settle(instance.named.group);
  }

  /** They go on at the next node. May be called again. */
  close(): void {
    this.#stop.abort();
    this.#cancelTimer();
    this.#hide();
  }

  #begin(key: string, record: InstanceRecord): Instance {
    const { env, groups } = this.#options;
    const instance = new Instance({
      named: { key, ...namesOf(key) },
      record,
      groups,
      nowMs: env.clock.monotonicMs(),
      forgetSeeks: (of) => this.#forgetSeeks(instance, of),
    });
    this.#known.set(key, instance);
    return instance;
  }

  #schedule(): void {
    if (this.stopping.aborted) return;
    const { clock } = this.#options.env;
    this.#cancelTimer = clock.after(HTTP_INSTANCE_BEAT_MS, () => {
      this.#look().catch((error: unknown) => {
        const { log } = this.#options.env;
        log.log("warn", "http-instances-failed", { reason: messageOf(error) });
      }).finally(() => this.#schedule());
    });
  }

  /** Those that were asked for lately stay members; those that were not end. */
  async #look(): Promise<void> {
    for (const key of this.#options.store.keys()) {
      if (this.stopping.aborted) return;
      const known = this.#known.get(key);
      if (known === undefined) await this.#lookAtUnknown(key);
      else if (this.#isIdle(known.record, known.lastUsedMs)) await this.#endIdle(known);
      else if (known.isMember) await known.beat();
    }
  }

  #isIdle({ idleMs }: InstanceRecord, sinceMs: number): boolean {
    return this.#options.env.clock.monotonicMs() - sinceMs >= idleMs;
  }

  /** Nobody has asked this node for it: it is another node's, or nobody's. */
  async #lookAtUnknown(key: string): Promise<void> {
    const { store } = this.#options;
    const text = store.get(key);
    const record = text === null ? null : readRecord(text);
    if (record === null) return;
    const isOthers = record.node !== store.nodeId && store.isAlive(record.node);
    if (isOthers || !this.#isIdle(record, this.#startedMs)) return;
    await this.#endIdle(this.#begin(key, record));
  }

  async #endIdle(instance: Instance): Promise<void> {
    // One whose request is under way is not idle.
    if (!instance.turn.tryAcquire()) return;
    try {
      await this.end(instance);
    } finally {
      instance.turn.release();
    }
  }
}

/** Throws ProblemError. */
function textOf(record: InstanceRecord): string {
  const text = writeRecord(record);
  if (text === null) throw badRequest("Cannot keep so much about a consumer instance");
  return text;
}
