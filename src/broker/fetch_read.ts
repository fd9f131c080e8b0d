/**
 * One pass over the partitions of a fetch: memory first, objects only if memory does not satisfy it,
 * so that a reader at the end of its logs never waits behind one that reads history.
 */
import { ReadLease } from "../lib/read_lease.ts";
import type { Semaphore } from "../lib/semaphore.ts";
import type { ErrorName } from "../protocol/error_code.ts";
import type { AbortedTransaction, LogRead, PartitionLog } from "../log/partition_log.ts";
import type { FetchNews, FetchTarget } from "./fetch_session.ts";

export interface Diverging {
  readonly epoch: number;
  readonly endOffset: number;
}

export interface FetchResult extends FetchNews {
  readonly lastStableOffset: number;
  readonly batches: readonly Uint8Array[];
  readonly aborted: readonly AbortedTransaction[];
  readonly divergingEpoch: Diverging | null;
}

/** A target with its log, or with the reason why there is none. */
export type OpenTarget =
  | { readonly target: FetchTarget; readonly log: PartitionLog }
  | { readonly target: FetchTarget; readonly log: null; readonly error: ErrorName };

export interface PassOptions {
  readonly bytesMin: number;
  readonly bytesMax: number;
  readonly isolation: "uncommitted" | "committed";
  readonly signal: AbortSignal;
  readonly hotPermits: Semaphore;
  readonly coldPermits: Semaphore;
  readonly onFault: (error: unknown) => ErrorName;
}

type LeasedOptions = PassOptions & { readonly lease: ReadLease };

export interface Pass {
  readonly results: readonly FetchResult[];
  readonly bytes: number;
  /** Gives the permits of the answer back. */
  release(): void;
  /** Nothing views the batches any more. */
  forget(): void;
}

const NOTHING = {
  bytes: 0,
  batches: [],
  aborted: [],
  diverging: false,
  divergingEpoch: null,
} as const;

function failedResult(target: FetchTarget, error: ErrorName): FetchResult {
  const unknown = { highWatermark: -1, logStartOffset: -1, lastStableOffset: -1 };
  return { target, error, ...unknown, ...NOTHING };
}

function emptyResult(target: FetchTarget, log: PartitionLog): FetchResult {
  const { highWatermark, logStartOffset, lastStableOffset } = log;
  return { target, error: "NONE", highWatermark, logStartOffset, lastStableOffset, ...NOTHING };
}

/** KIP-320: where our history parts from the client's, if it does. */
function divergence(target: FetchTarget, log: PartitionLog): Diverging | ErrorName | null {
  if (target.lastFetchedEpoch < 0) return null;
  const end = log.endOfEpoch(target.lastFetchedEpoch);
  if (end.endOffset < 0) return "OFFSET_OUT_OF_RANGE";
  return end.leaderEpoch < target.lastFetchedEpoch || end.endOffset < target.fetchOffset
    ? { epoch: end.leaderEpoch, endOffset: end.endOffset }
    : null;
}

/** What is known without reading; null when records are to be read. */
function withoutReading(
  target: FetchTarget,
  log: PartitionLog,
  isolation: PassOptions["isolation"],
): FetchResult | null {
  const { fetchOffset } = target;
  if (fetchOffset < log.logStartOffset) return failedResult(target, "OFFSET_OUT_OF_RANGE");
  // Before the end is looked at, as in Kafka: who has read past it hears where histories part.
  const diverging = divergence(target, log);
  if (typeof diverging === "string") return failedResult(target, diverging);
  if (diverging !== null) {
    return { ...emptyResult(target, log), diverging: true, divergingEpoch: diverging };
  }
  if (fetchOffset > log.logEndOffset) return failedResult(target, "OFFSET_OUT_OF_RANGE");
  const limit = isolation === "committed" ? log.lastStableOffset : log.highWatermark;
  return fetchOffset >= limit ? emptyResult(target, log) : null;
}

/** Whole batches up to the limit; the first result of an answer keeps its first batch whatever its size (KIP-74). */
function fitting(
  batches: readonly Uint8Array[],
  bytesMax: number,
  isFirst: boolean,
): { readonly batches: readonly Uint8Array[]; readonly bytes: number } {
  let bytes = 0;
  let count = 0;
  for (const batch of batches) {
    const isKept = bytes + batch.length <= bytesMax || (isFirst && count === 0);
    if (!isKept) break;
    bytes += batch.length;
    count += 1;
  }
  return { batches: count === batches.length ? batches : batches.slice(0, count), bytes };
}

/** A running answer: what it holds so far and how much more it may take. */
class Answer {
  readonly #results: (FetchResult | null)[];
  readonly #budget: number;
  bytes = 0;

  constructor(count: number, budget: number) {
    this.#results = Array.from({ length: count }, () => null);
    this.#budget = budget;
  }

  get left(): number {
    return Math.max(0, this.#budget - this.bytes);
  }
  get hasError(): boolean {
    return this.#results.some((one) => one !== null && (one.error !== "NONE" || one.diverging));
  }

  set(at: number, result: FetchResult): void {
    this.#results[at] = result;
  }

  setRead(at: number, target: FetchTarget, read: LogRead): void {
    const limit = Math.min(target.partitionMaxBytes, this.left);
    const { batches, bytes } = fitting(read.batches, limit, this.bytes === 0);
    this.bytes += bytes;
    const { highWatermark, lastStableOffset, logStartOffset } = read;
    // Of what does not fit some may be named too, which readers never get to.
    const aborted = batches.length === 0 ? [] : read.aborted;
    const rest = { aborted, diverging: false, divergingEpoch: null };
    const offsets = { highWatermark, lastStableOffset, logStartOffset };
    this.set(at, { target, error: "NONE", ...offsets, batches, bytes, ...rest });
  }

  finish(targets: readonly OpenTarget[]): FetchResult[] {
    return targets.map((open, at) => {
      const result = this.#results[at];
      if (result != null) return result;
      if (open.log === null) return failedResult(open.target, open.error);
      return emptyResult(open.target, open.log);
    });
  }
}

/** Takes what is free and wanted, or nothing: a fetch without permits still gets one batch. */
function takePermits(permits: Semaphore, bytes: number): number {
  return bytes > 0 && permits.tryAcquire(bytes) ? bytes : 0;
}

interface Cold {
  readonly at: number;
  readonly target: FetchTarget;
  readonly log: PartitionLog;
}

async function readHot(
  targets: readonly OpenTarget[],
  answer: Answer,
  options: LeasedOptions,
): Promise<Cold[]> {
  const cold: Cold[] = [];
  for (const [at, open] of targets.entries()) {
    const { target, log } = open;
    if (log === null) {
      answer.set(at, failedResult(target, open.error));
      continue;
    }
    const known = withoutReading(target, log, options.isolation);
    if (known !== null) answer.set(at, known);
    else if (answer.bytes === 0 || answer.left > 0) {
      await readOne(
        { at, target, log },
        answer,
        options,
        true,
        () => cold.push({ at, target, log }),
      );
    }
  }
  return cold;
}

async function readOne(
  { at, target, log }: Cold,
  answer: Answer,
  options: LeasedOptions,
  cacheOnly: boolean,
  onMiss: () => void,
): Promise<void> {
  const { isolation, signal, lease } = options;
  const room = Math.min(target.partitionMaxBytes, answer.left, options.bytesMax);
  const bytesMax = Math.max(1, room);
  try {
    const read = await log.read(target.fetchOffset, {
      bytesMax,
      isolation,
      cacheOnly,
      signal,
      lease,
    });
    if (read === null) onMiss();
    else if (read.ok) answer.setRead(at, target, read);
    else answer.set(at, failedResult(target, read.error));
  } catch (error) {
    if (!signal.aborted) answer.set(at, failedResult(target, options.onFault(error)));
  }
}

/** As many of the missing partitions as the answer has room for, side by side. */
async function readCold(
  cold: readonly Cold[],
  answer: Answer,
  options: LeasedOptions,
): Promise<void> {
  let room = Math.max(1, answer.left);
  const chosen: Cold[] = [];
  for (const one of cold) {
    if (room <= 0) break;
    chosen.push(one);
    room -= one.target.partitionMaxBytes;
  }
  const reads = chosen.map((one) => readOne(one, answer, options, false, () => {}));
  // All of them end before the lease of one that failed may.
  for (const read of await Promise.allSettled(reads)) {
    if (read.status === "rejected") throw read.reason;
  }
}

/** Reads in the background what this answer does without, so that the next fetch finds it in memory. */
async function readAhead({ log, target }: Cold, options: PassOptions): Promise<void> {
  const { isolation, coldPermits } = options;
  const bytesMax = target.partitionMaxBytes;
  if (!coldPermits.tryAcquire(bytesMax)) return;
  const lease = new ReadLease();
  try {
    await log.read(target.fetchOffset, { bytesMax, isolation, lease });
  } catch {
    // Whoever needs it reads it again and hears of the fault.
  } finally {
    lease.end();
    coldPermits.release(bytesMax);
  }
}

/** What one pass holds of the node's permits. */
class HeldPermits {
  readonly #options: PassOptions;
  hot = 0;
  cold = 0;

  constructor(options: PassOptions) {
    this.#options = options;
  }

  /** What was taken and not used goes back at once. */
  keepHot(bytes: number): void {
    const kept = Math.min(this.hot, bytes);
    this.#options.hotPermits.release(this.hot - kept);
    this.hot = kept;
  }

  release(): void {
    this.keepHot(0);
    this.#options.coldPermits.release(this.cold);
    this.cold = 0;
  }
}

async function readAll(
  targets: readonly OpenTarget[],
  options: LeasedOptions,
  held: HeldPermits,
): Promise<Answer> {
  const wanted = targets.reduce(
    (sum, { target }) => Math.min(options.bytesMax, sum + target.partitionMaxBytes),
    0,
  );
  held.hot = takePermits(options.hotPermits, wanted);
  const answer = new Answer(targets.length, held.hot > 0 ? wanted : 1);
  const cold = await readHot(targets, answer, options);
  // Before anything waits for objects: hot fetches of others must not go short meanwhile.
  held.keepHot(answer.bytes);
  const [first] = cold;
  if (first !== undefined) {
    const isSatisfied = answer.bytes >= Math.max(1, options.bytesMin) || answer.hasError;
    if (isSatisfied) void readAhead(first, options);
    else {
      held.cold = takePermits(options.coldPermits, answer.left);
      const room = held.cold > 0 ? options : { ...options, bytesMax: 1 };
      await readCold(held.cold > 0 ? cold : [first], answer, room);
    }
  }
  return answer;
}

export async function readPass(
  targets: readonly OpenTarget[],
  options: PassOptions,
): Promise<Pass> {
  const lease = new ReadLease();
  const held = new HeldPermits(options);
  try {
    const answer = await readAll(targets, { ...options, lease }, held);
    return {
      results: answer.finish(targets),
      bytes: answer.bytes,
      release: () => held.release(),
      forget: () => lease.end(),
    };
  } catch (error) {
    held.release();
    lease.end();
    throw error;
  }
}
