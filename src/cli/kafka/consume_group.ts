/** `skerry consume --group`: generation after generation, what is printed is committed. */
import { ClientFault } from "../client/fault.ts";
import { commitOffsets, committedOffsets } from "../client/group_offsets.ts";
import { Membership } from "../client/membership.ts";
import { boundsOf, placeIn } from "../client/place.ts";
import { type Position, type ReadEnd, Reader, type RecordSink } from "../client/reader.ts";
import type { Call } from "./command.ts";
import type { ConsumeOptions } from "./consume.ts";

/** What a crash may print again. */
const COMMIT_EVERY_MS = 5_000;

interface GroupOptions extends ConsumeOptions {
  readonly group: string;
}

/** Commits where partitions stand: what has moved, and once where a new group began. */
class Commits {
  readonly #call: Call;
  readonly #options: GroupOptions;
  readonly #membership: Membership;
  readonly #positions: readonly Position[];
  readonly #committed: Map<number, number>;
  #lastMs: number;

  constructor(
    call: Call,
    options: GroupOptions,
    membership: Membership,
    positions: readonly Position[],
    known: ReadonlyMap<number, number>,
  ) {
    this.#call = call;
    this.#options = options;
    this.#membership = membership;
    this.#positions = positions;
    this.#committed = new Map(known);
    this.#lastMs = call.io.env.clock.monotonicMs();
  }

  async commitSometimes(): Promise<void> {
    const { clock } = this.#call.io.env;
    if (clock.monotonicMs() - this.#lastMs < COMMIT_EVERY_MS) return;
    await this.commit();
    this.#lastMs = clock.monotonicMs();
  }

  async commit(): Promise<void> {
    const { group, topic } = this.#options;
    const moved = this.#positions
      .filter(({ partition, offset }) => this.#committed.get(partition) !== offset)
      .map(({ partition, offset }) => ({ topic, partition, offset }));
    if (moved.length === 0) return;
    await commitOffsets(this.#call.cluster, group, moved, this.#membership.identity);
    for (const { partition, offset } of moved) this.#committed.set(partition, offset);
  }
}

async function knownOffsets(
  { cluster }: Call,
  { topic, group }: GroupOptions,
): Promise<Map<number, number>> {
  const all = await committedOffsets(cluster, group);
  return new Map(
    all.filter((one) => one.topic === topic).map(({ partition, offset }) => [partition, offset]),
  );
}

async function positionsOf(
  { cluster }: Call,
  { topic, from, committed, untilEnd }: GroupOptions,
  partitions: readonly number[],
  known: ReadonlyMap<number, number>,
): Promise<Position[]> {
  const fresh = partitions.filter((partition) => !known.has(partition));
  const starts = await placeIn(cluster, topic, fresh, from, { committed });
  const bounds = untilEnd ? await boundsOf(cluster, topic, partitions, { committed }) : null;
  return partitions.map((partition) => ({
    partition,
    offset: known.get(partition) ?? starts.get(partition)!,
    end: bounds?.get(partition)?.end ?? null,
  }));
}

/** Reads the partitions of one generation. Null when the group wants a new join. */
async function oneGeneration(
  call: Call,
  options: GroupOptions,
  membership: Membership,
  sink: RecordSink,
  stop: AbortSignal,
): Promise<ReadEnd | null> {
  const { cluster, io } = call;
  const { topic, committed } = options;
  const partitions = await membership.join(stop);
  if (stop.aborted) return "stopped";
  const over = new AbortController();
  const until = AbortSignal.any([stop, over.signal]);
  let failure: unknown = null;
  // Beside the reading, which a slow standard output may hold up.
  const alive = membership.keepAlive(until).catch((error: unknown) => void (failure = error))
    .finally(() => over.abort());
  try {
    const known = await knownOffsets(call, options);
    const positions = await positionsOf(call, options, partitions, known);
    const commits = new Commits(call, options, membership, positions, known);
    const afterRound = () => commits.commitSometimes();
    const { env, note: warn } = io;
    const reader = new Reader(
      { cluster, env, topic, committed, positions, sink, warn, stop: until, afterRound },
    );
    const end = await reader.run();
    await commits.commit();
    // A member without partitions waits for some, unless it is to end where nothing is left.
    if (end === "ended" && partitions.length === 0 && !options.untilEnd) {
      await alive;
    }
    if (failure !== null) throw failure;
    if (end === "enough" || (end === "ended" && options.untilEnd)) return end;
    return stop.aborted ? "stopped" : null;
  } finally {
    over.abort();
    await alive;
  }
}

export async function consumeInGroup(
  call: Call,
  options: GroupOptions,
  sink: RecordSink,
  stop: AbortSignal,
): Promise<void> {
  const { cluster, io } = call;
  const { group, topic } = options;
  // A topic that is not there is a mistake of the line, not something to wait for.
  await cluster.retrying((leftMs) => cluster.topic(topic, { leftMs }));
  const membership = new Membership({ cluster, clock: io.env.clock, group, topic });
  try {
    for (;;) {
      try {
        if (await oneGeneration(call, options, membership, sink, stop) !== null) return;
      } catch (error) {
        if (!(error instanceof ClientFault) || !membership.isBehind(error)) throw error;
        io.note(`${error.message}: joins again, the last records may come once more`);
      }
    }
  } finally {
    await membership.leave();
  }
}
