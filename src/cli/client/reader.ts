/**
 * Reads partitions round by round: one fetch per leader, all at once, then their records in turn. The
 * next round waits until the sink has taken them, so memory holds one round.
 */
import type { Codecs } from "../../env/codecs.ts";
import { sleep } from "../../env/clock.ts";
import type { Env } from "../../env/env.ts";
import { DecodeError } from "../../lib/bytes.ts";
import { isFault, messageOf } from "../../lib/errors.ts";
import { errorName } from "../../protocol/error_code.ts";
import { fetchApi } from "../../protocol/message/01_fetch.ts";
import type { BatchRecord } from "../../protocol/record.ts";
import type { Infer } from "../../protocol/schema.ts";
import { byLeader, type Cluster, type TopicView } from "./cluster.ts";
import { brokerFault, ClientFault, dataFault } from "./fault.ts";
import { fetchedBatches } from "./fetched.ts";
import { boundsOf } from "./place.ts";

/** The last version that names topics by name. */
const FETCH_VERSION_MAX = 12;
const ROUND_BYTES_MAX = 8 * 1024 * 1024;
const PARTITION_BYTES_MAX = 1024 * 1024;
/** How long a broker holds back an answer without records. */
const WAIT_MS = 500;
/** The same while another leader has records. */
const BUSY_WAIT_MS = 20;
const PAUSE_MS = 200;

/** Where a partition is read; `offset` moves. */
export interface Position {
  readonly partition: number;
  offset: number;
  /** Reading is over here; null for never. */
  readonly end: number | null;
}

export interface RecordSink {
  take(partition: number, record: BatchRecord): void;
  /** Nothing more is taken. */
  readonly hasEnough: boolean;
  /** Whether it should be drained before more is taken. */
  readonly isFull: boolean;
  drain(): Promise<void>;
}

export interface ReaderOptions {
  readonly cluster: Cluster;
  readonly env: Pick<Env, "clock" | "codecs">;
  readonly topic: string;
  readonly committed: boolean;
  readonly positions: readonly Position[];
  readonly sink: RecordSink;
  /** Told of what is lost to deletion. */
  readonly warn: (line: string) => void;
  readonly stop: AbortSignal;
  /** Called when the sink has taken a round. */
  readonly afterRound?: () => Promise<void>;
}

export type ReadEnd = "stopped" | "ended" | "enough";

type Fetched = Infer<typeof fetchApi.response>["responses"][number]["partitions"][number];

function isOver({ end, offset }: Position): boolean {
  return end !== null && offset >= end;
}

export class Reader {
  readonly #options: ReaderOptions;
  #topic: TopicView | null = null;
  #round = 0;
  #isBusy = false;
  /** Since when every round failed; null after a good one. */
  #failingSinceMs: number | null = null;

  constructor(options: ReaderOptions) {
    this.#options = options;
  }

  /** Until the signal, the ends of all partitions, or the sink has enough. */
  async run(): Promise<ReadEnd> {
    const { positions, stop, afterRound } = this.#options;
    for (;;) {
      const open = positions.filter((one) => !isOver(one));
      if (open.length === 0) return "ended";
      if (stop.aborted) return "stopped";
      if (this.#options.sink.hasEnough) return "enough";
      const wantsMore = await this.#oneRound(open);
      await this.#options.sink.drain();
      await afterRound?.();
      if (!wantsMore) return "enough";
    }
  }

  async #oneRound(open: readonly Position[]): Promise<boolean> {
    try {
      const wantsMore = await this.#tryRound(open);
      this.#failingSinceMs = null;
      return wantsMore;
    } catch (error) {
      const { clock } = this.#options.env;
      const nowMs = clock.monotonicMs();
      this.#failingSinceMs ??= nowMs;
      const isLate = nowMs - this.#failingSinceMs >= this.#options.cluster.timeoutMs;
      if (!(error instanceof ClientFault) || !error.retriable || isLate) throw error;
      this.#topic = null;
      await sleep(clock, PAUSE_MS, this.#options.stop);
      return true;
    }
  }

  async #tryRound(open: readonly Position[]): Promise<boolean> {
    const { cluster, topic } = this.#options;
    this.#topic ??= await cluster.topic(topic);
    // The broker fills an answer in the order of the request: each partition comes first in its turn.
    const first = this.#round++ % open.length;
    const turn = [...open.slice(first), ...open.slice(0, first)];
    const groups = [...byLeader(this.#topic, turn)];
    const waitMs = groups.length > 1 && this.#isBusy ? BUSY_WAIT_MS : WAIT_MS;
    const answers = await Promise.all(
      groups.map(([leader, group]) => this.#fetch(leader, group, waitMs)),
    );
    this.#isBusy = answers.flat().some(({ records }) => (records?.length ?? 0) > 0);
    let failure: unknown = null;
    for (const fetched of answers.flat()) {
      const position = open.find(({ partition }) => partition === fetched.partitionIndex);
      if (position === undefined) continue;
      try {
        if (!await this.#takeFetched(position, fetched)) return false;
      } catch (error) {
        // The records of the others are here already.
        failure ??= error;
      }
    }
    if (failure !== null) throw failure;
    return true;
  }

  async #fetch(leader: number, group: readonly Position[], waitMs: number): Promise<Fetched[]> {
    const { cluster, topic, committed } = this.#options;
    const connection = await cluster.node(leader);
    const { responses, errorCode: code } = await connection.call(fetchApi, {
      maxWaitMs: waitMs,
      minBytes: 1,
      maxBytes: ROUND_BYTES_MAX,
      isolationLevel: committed ? 1 : 0,
      topics: [{
        topic,
        partitions: group.map(({ partition, offset }) => ({
          partition,
          fetchOffset: offset,
          partitionMaxBytes: PARTITION_BYTES_MAX,
        })),
      }],
    }, { timeoutMs: cluster.timeoutMs, versionMax: FETCH_VERSION_MAX });
    if (code !== 0) throw brokerFault(`read topic ${topic}`, errorName(code));
    return responses.flatMap(({ partitions }) => partitions);
  }

  async #takeFetched(position: Position, fetched: Fetched): Promise<boolean> {
    const error = errorName(fetched.errorCode);
    if (error === "OFFSET_OUT_OF_RANGE") return await this.#moveIntoRange(position);
    if (error !== "NONE") {
      throw brokerFault(`read ${this.#options.topic}-${position.partition}`, error, {
        atLeader: true,
      });
    }
    if (fetched.records === null || fetched.records.length === 0) return true;
    try {
      return await this.#takeBatches(position, fetched.records, fetched);
    } catch (cause) {
      if (!(cause instanceof DecodeError) && !isFault(cause, "corrupt")) throw cause;
      const where = `${this.#options.topic}-${position.partition} at offset ${position.offset}`;
      throw dataFault(`Cannot read ${where}: ${messageOf(cause)}`);
    }
  }

  async #takeBatches(
    position: Position,
    bytes: Uint8Array,
    { abortedTransactions }: Fetched,
  ): Promise<boolean> {
    const codecs: Codecs = this.#options.env.codecs;
    const { sink, committed } = this.#options;
    const aborted = committed ? abortedTransactions ?? [] : [];
    for (const { records, nextOffset } of fetchedBatches(bytes, aborted, codecs)) {
      for (const record of records) {
        // A batch is answered whole, also when only its later records are wanted.
        if (record.offset < position.offset) continue;
        if (isOver(position)) return true;
        sink.take(position.partition, record);
        position.offset = record.offset + 1;
        if (sink.hasEnough) return false;
        if (sink.isFull) await sink.drain();
      }
      position.offset = Math.max(position.offset, nextOffset);
      if (isOver(position)) return true;
    }
    return true;
  }

  /** Records that are gone are passed over and told; an offset behind the end is a mistake. */
  async #moveIntoRange(position: Position): Promise<boolean> {
    const { cluster, topic, warn } = this.#options;
    const { partition, offset } = position;
    const bounds = (await boundsOf(cluster, topic, [partition])).get(partition)!;
    if (offset > bounds.end) {
      throw dataFault(
        `Cannot read ${topic}-${partition} at offset ${offset}: it ends at ${bounds.end}`,
      );
    }
    if (offset < bounds.start) {
      warn(
        `${topic}-${partition}: offsets ${offset} to ${bounds.start - 1} are deleted, passed over`,
      );
      position.offset = bounds.start;
    }
    return true;
  }
}
