/**
 * Records for an instance: of its partitions, from where it stands in each. It moves on with what it gives; when
 * its client has gone before the answer is made, it stays where it was.
 */
import type { Clock } from "../../../env/clock.ts";
import {
  HTTP_INSTANCE_JOIN_MS,
  HTTP_INSTANCE_SEEKS_MAX,
  HTTP_READ_RECORDS_MAX,
} from "../../../lib/limits.ts";
import type { Failure, RecordOutput } from "../../port.ts";
import {
  type ManyQuery,
  readMany,
  release,
  type Results,
  type Target,
  waitForMany,
} from "../../read/many.ts";
import type { Found } from "../../read/page.ts";
import type { ReadGateway } from "../../read_port.ts";
import { rawBytes } from "../../record_json.ts";
import type { GroupGateway, Place, TopicPartition } from "../group_port.ts";
import type { Instance } from "./instance.ts";
import type { Instances } from "./instances.ts";
import type { Seek } from "./record.ts";
import { place } from "./subscribe.ts";

export interface PollServices {
  readonly gateway: ReadGateway;
  readonly groups: GroupGateway;
  readonly instances: Instances;
  readonly clock: Clock;
}

export interface PollQuery {
  readonly waitMs: number;
  readonly bytesMax: number;
  readonly signal: AbortSignal;
  /** A record for which it is false ends what is given of its partition. */
  readonly canShow: (record: RecordOutput) => boolean;
}

export interface Polled {
  readonly ok: true;
  readonly records: readonly { readonly place: Place; readonly record: RecordOutput }[];
  readonly release: () => void;
}

/** A record that can never be given: it stands in the way until its client goes past it. */
export interface Stuck {
  readonly ok: false;
  readonly stuckAt: { readonly place: Place; readonly offset: number };
}

export type PollOutcome = Polled | Stuck | Failure;

const NOTHING: Polled = { ok: true, records: [], release: () => {} };

function isAt({ topic, partition }: Place) {
  return (one: TopicPartition): boolean => one.topic === topic && one.partition === partition;
}

/** By how the instance begins. */
async function beginning(
  gateway: ReadGateway,
  { topic, topicId, partition }: Place,
  instance: Instance,
): Promise<number | Failure> {
  const { reset } = instance.record;
  if (reset === "none") {
    const message = `Cannot begin in partition ${partition} of ${topic}: ` +
      "no offset is committed, and auto.offset.reset is none";
    return { ok: false, error: "OFFSET_OUT_OF_RANGE", message };
  }
  const bounds = await gateway.bounds(topicId, partition, isolationOf(instance));
  return bounds.ok ? bounds[reset] : bounds;
}

/** Where it began must hold after a restart too: what is written meanwhile would be lost with another end. */
async function keepBeginnings(
  instances: Instances,
  instance: Instance,
  begun: readonly Seek[],
): Promise<void> {
  const { record } = instance;
  if (begun.length === 0 || record.reset !== "latest") return;
  if (!record.autoCommit) {
    const seeks = [...record.seeks, ...begun].slice(0, HTTP_INSTANCE_SEEKS_MAX);
    return await instances.change(instance, { seeks });
  }
  await instance.commit(begun.map((seek) => ({ ...seek, metadata: "" })));
}

/** Positions by jumps, then by the group's word; those that are left begin. */
async function lookUp(
  { gateway, groups, instances }: PollServices,
  instance: Instance,
): Promise<Failure | null> {
  const places = instance.places.unknown();
  if (places.length === 0) return null;
  const { record: { seeks }, named: { group } } = instance;
  const committed = await groups.committed(group, places);
  if (!committed.ok) return committed;
  const begun: Seek[] = [];
  for (const at of places) {
    const known = seeks.find(isAt(at)) ?? committed.offsets.find(isAt(at));
    const next = known?.offset ?? await beginning(gateway, at, instance);
    if (typeof next !== "number") return next;
    instance.places.setNext(at, next);
    const { topic, partition } = at;
    if (known === undefined) begun.push({ topic, partition, offset: next });
  }
  await keepBeginnings(instances, instance, begun);
  return null;
}

/** A page of one partition, cut where a record cannot be shown. */
interface Cut {
  readonly place: Place;
  readonly records: readonly RecordOutput[];
  readonly next: number;
  readonly isStuck: boolean;
}

function queryOf(instance: Instance, { bytesMax, signal }: PollQuery): ManyQuery {
  return {
    recordsMax: HTTP_READ_RECORDS_MAX,
    bytesMax,
    isolation: isolationOf(instance),
    signal,
    // Base64 takes the most room of the formats but text that is full of control characters.
    shown: { encoding: "auto", isInLine: false },
    filter: null,
  };
}

export function isolationOf({ record }: Instance): "committed" | "uncommitted" {
  return record.committedOnly ? "committed" : "uncommitted";
}

function targetsOf(instance: Instance, bytesMax: number): Target[] {
  return instance.places.inTurn().flatMap((at) => {
    const offset = instance.places.nextOf(at);
    return offset === null ? [] : [{ ...at, offset, bytesMax }];
  });
}

function cut(at: Place, { records, next, oversized }: Found, { canShow }: PollQuery): Cut {
  const stuck = records.findIndex((record) => !canShow(record));
  if (stuck < 0) return { place: at, records, next, isStuck: oversized !== null };
  const shown = records.slice(0, stuck);
  return { place: at, records: shown, next: records[stuck]!.offset, isStuck: true };
}

/** Behind what is there already but not enough, so that the wait is for more. */
function movedOn(targets: readonly Target[], results: Results): Target[] {
  return targets.map((target, i) => {
    const result = results[i];
    return result?.ok === true ? { ...target, offset: result.next } : target;
  });
}

class Poll {
  readonly #services: PollServices;
  readonly #instance: Instance;
  readonly #query: PollQuery;
  readonly #endMs: number;
  /** Places whose offset is not there any more: they begin anew, as the instance begins. */
  readonly #lost: Place[] = [];

  constructor(services: PollServices, instance: Instance, query: PollQuery) {
    this.#services = services;
    this.#instance = instance;
    this.#query = query;
    this.#endMs = services.clock.monotonicMs() + query.waitMs;
  }

  get #leftMs(): number {
    return this.#endMs - this.#services.clock.monotonicMs();
  }

  async run(): Promise<PollOutcome> {
    const instance = this.#instance;
    for (;;) {
      const failure = await this.#prepare();
      if (failure !== null) return failure;
      const targets = targetsOf(instance, this.#query.bytesMax);
      const { gateway, clock } = this.#services;
      const results = await readMany(gateway, clock, targets, queryOf(instance, this.#query));
      const outcome = this.#outcome(targets, results);
      if (outcome !== null) return outcome;
      release(results);
      if (this.#leftMs <= 0 || this.#query.signal.aborted) return NOTHING;
      if (this.#lost.length === 0) await this.#wait(movedOn(targets, results));
    }
  }

  /** It has partitions, as far as it is given some, and knows where it is in them. */
  async #prepare(): Promise<Failure | null> {
    const { instances } = this.#services;
    const instance = this.#instance;
    const { subscription } = instance.record;
    if (subscription !== null && "partitions" in subscription && instance.places.size === 0) {
      const refused = place(this.#services, instance, subscription.partitions);
      if (refused !== null) return refused;
    }
    if (instance.subscription !== null && (!instance.isMember || instance.places.size === 0)) {
      const refused = await instance.beat();
      if (refused !== null) return refused;
      if (instance.places.size === 0) await instances.settle(instance.named.group);
    }
    for (const at of this.#lost.splice(0)) {
      const next = await beginning(this.#services.gateway, at, instance);
      if (typeof next !== "number") return next;
      instance.places.setNext(at, next);
    }
    return await lookUp(this.#services, instance);
  }

  /** Null: nothing yet. */
  #outcome(targets: readonly Target[], results: Results): PollOutcome | null {
    const found: Cut[] = [];
    let failure: Failure | null = null;
    for (const [i, result] of results.entries()) {
      const { topic, partition, topicId } = targets[i]!;
      const at = { topic, partition, topicId: topicId! };
      // What it was told to give up meanwhile is somebody else's.
      if (result === null || !this.#instance.places.has(at)) continue;
      if (result.ok) found.push(cut(at, result, this.#query));
      else if (result.error === "OFFSET_OUT_OF_RANGE") this.#lost.push(at);
      else failure ??= result;
    }
    const hasRecords = found.some(({ records }) => records.length > 0);
    if (hasRecords) return this.#isEnough(found) ? this.#give(found, results) : null;
    for (const { place: at, next, isStuck } of found) {
      if (isStuck) {
        release(results);
        return { ok: false, stuckAt: { place: at, offset: next } };
      }
      this.#instance.places.setNext(at, next);
    }
    if (failure === null) return null;
    release(results);
    // Its topic was deleted: one of the same name is looked for the next time.
    if (failure.error === "UNKNOWN_TOPIC_ID" && !this.#instance.isMember) {
      this.#instance.setPlaces([]);
    }
    return failure;
  }

  #isEnough(found: readonly Cut[]): boolean {
    const { minBytes } = this.#instance.record;
    if (minBytes <= 1 || this.#leftMs <= 0) return true;
    let bytes = 0;
    for (const { records } of found) for (const record of records) bytes += rawBytes(record);
    return bytes >= minBytes;
  }

  #give(found: readonly Cut[], results: Results): PollOutcome {
    const done = () => release(results);
    if (this.#query.signal.aborted) {
      done();
      return NOTHING;
    }
    for (const { place: at, next } of found) this.#instance.places.give(at, next);
    const records = found.flatMap(({ place: at, records: of }) =>
      of.map((record) => ({ place: at, record }))
    );
    return { ok: true, records, release: done };
  }

  async #wait(targets: readonly Target[]): Promise<void> {
    const { gateway, clock } = this.#services;
    const instance = this.#instance;
    const isWithout = targets.length === 0 && instance.subscription !== null;
    const waitMs = isWithout ? Math.min(this.#leftMs, HTTP_INSTANCE_JOIN_MS) : this.#leftMs;
    const signal = AbortSignal.any([this.#query.signal, instance.changed]);
    const isolation = isolationOf(instance);
    await waitForMany(gateway, clock, targets, { isolation, signal }, waitMs);
  }
}

/** Commits what earlier answers gave, if it is time. */
async function commitDue({ clock }: PollServices, instance: Instance): Promise<void> {
  const { autoCommit, commitIntervalMs } = instance.record;
  const nowMs = clock.monotonicMs();
  if (!autoCommit || nowMs - instance.lastCommitMs < commitIntervalMs) return;
  instance.lastCommitMs = nowMs;
  await instance.commitGiven();
}

/** The instance's turn must be the caller's. Throws ProblemError. */
export async function poll(
  services: PollServices,
  instance: Instance,
  query: PollQuery,
): Promise<PollOutcome> {
  await commitDue(services, instance);
  const signal = AbortSignal.any([query.signal, services.instances.stopping]);
  return await new Poll(services, instance, { ...query, signal }).run();
}
