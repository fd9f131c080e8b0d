/**
 * Opens a partition: its meta stream names the other streams. A new partition gets a meta stream and a log
 * stream; the meta stream is told to the caller only once it names the log stream, durably.
 */
import { assert } from "../lib/assert.ts";
import type { StreamEpoch, StreamId } from "../lib/brand.ts";
import { FaultError, messageOf } from "../lib/errors.ts";
import type { Env } from "../env/env.ts";
import type { Stream, StreamClient } from "../stream/stream.ts";
import { CleanedPart } from "./clean/cleaned_streams.ts";
import { Checkpointer, LOG_STREAM, TIME_STREAM, TXN_STREAM } from "./checkpoint.ts";
import { decodeLogMeta, encodeLogMeta, type LogMeta } from "./log_meta.ts";
import { MetaStream } from "./meta_stream.ts";
import type { LogConfig, PartitionLog } from "./partition_log.ts";
import { PartitionLogImpl } from "./partition_log_impl.ts";
import { restore, type Restored } from "./restore.ts";
import { Segment } from "./segment.ts";

export interface OpenPartitionLogOptions {
  readonly streams: StreamClient;
  /** Null when the partition was never opened. */
  readonly metaStream: StreamId | null;
  /** Tags the streams that are made, so that they are deleted with their topic. */
  readonly streamTag?: string;
  /** Called with a new meta stream before the log is handed out; must make it findable. */
  readonly onMetaStreamCreated: (id: StreamId) => Promise<void>;
  readonly leaderEpoch: StreamEpoch;
  readonly config: LogConfig;
  readonly env: Env;
  readonly topic: string;
  readonly partition: number;
}

/** Streams opened so far; all are closed again when opening fails. */
class Opening {
  readonly #options: OpenPartitionLogOptions;
  readonly #streams: Stream[] = [];

  constructor(options: OpenPartitionLogOptions) {
    this.#options = options;
  }

  async stream(id: StreamId | null): Promise<Stream> {
    const { streams, leaderEpoch, streamTag } = this.#options;
    const opened = id === null
      ? streams.create(leaderEpoch, streamTag)
      : streams.open(id, leaderEpoch);
    this.#streams.push(await opened);
    return opened;
  }

  /** A stream that most logs do not have. */
  async named(name: string, { streams }: LogMeta): Promise<Stream | null> {
    const id = streams.get(name);
    return id === undefined ? null : await this.stream(id);
  }

  /** Streams of cleaned segments, by suffix; what no segment names is left over and stays closed. */
  async parts(logMeta: LogMeta): Promise<ReadonlyMap<string, CleanedPart>> {
    const parts = new Map<string, CleanedPart>();
    for (const { suffix } of logMeta.segments) {
      if (suffix === undefined || parts.has(suffix)) continue;
      const log = await this.named(LOG_STREAM + suffix, logMeta);
      if (log === null) throw unnamed(`cleaned segments name ${suffix}, which has no stream`);
      const time = await this.named(TIME_STREAM + suffix, logMeta);
      parts.set(suffix, new CleanedPart(suffix, log, time));
    }
    return parts;
  }

  async abandon(): Promise<void> {
    for (const outcome of await Promise.allSettled(this.#streams.map((s) => s.close()))) {
      if (outcome.status === "fulfilled") continue;
      const { env, topic, partition } = this.#options;
      const fields = { partition: `${topic}-${partition}`, reason: messageOf(outcome.reason) };
      env.log.log("warn", "stream-close-failed", fields);
    }
  }
}

/** Throws FaultError: `fenced`, `corrupt`, `data-loss`, or what the store says. */
export async function openPartitionLog(options: OpenPartitionLogOptions): Promise<PartitionLog> {
  assert(options.leaderEpoch < 2 ** 31, "a leader epoch has 31 bits on the wire");
  const opening = new Opening(options);
  try {
    return await open(options, opening);
  } catch (error) {
    await opening.abandon();
    throw error;
  }
}

async function open(options: OpenPartitionLogOptions, opening: Opening): Promise<PartitionLog> {
  const metaStream = await opening.stream(options.metaStream);
  const meta = new MetaStream(metaStream);
  await meta.load();
  const logMeta = options.metaStream === null
    ? await createLog(meta, opening, options.env.clock.nowMs())
    : storedLog(meta, metaStream);
  if (options.metaStream === null) await options.onMetaStreamCreated(metaStream.streamId);
  const log = logMeta.created ?? await opening.stream(logMeta.streams.get(LOG_STREAM)!);
  const time = await opening.named(TIME_STREAM, logMeta);
  const txn = await opening.named(TXN_STREAM, logMeta);
  const parts = await opening.parts(logMeta);
  const nowMs = options.env.clock.nowMs();
  const { config, env: { codecs } } = options;
  const input = { meta, logMeta, log, parts, time, txn, config, codecs, nowMs };
  const restored = await restore(input);
  return assemble(options, { meta, logMeta, log, parts, time, txn, restored });
}

interface OpenedLogMeta extends LogMeta {
  /** The log stream when it was made just now. */
  readonly created?: Stream;
}

async function createLog(
  meta: MetaStream,
  opening: Opening,
  nowMs: number,
): Promise<OpenedLogMeta> {
  const created = await opening.stream(null);
  const logMeta: LogMeta = {
    streams: new Map([[LOG_STREAM, created.streamId]]),
    segments: [new Segment(created.startOffset, nowMs).toMeta()],
    countedTo: 0,
  };
  await meta.put("LOG", encodeLogMeta(logMeta));
  return { ...logMeta, created };
}

/** A known meta stream always names a log stream: anything else is a loss, not a new partition. */
function storedLog(meta: MetaStream, stream: Stream): OpenedLogMeta {
  const value = meta.get("LOG");
  const logMeta = value === undefined ? null : decodeLogMeta(value);
  if (logMeta?.streams.has(LOG_STREAM) !== true) {
    throw unnamed(`meta stream ${stream.streamId} names no log stream`);
  }
  return logMeta;
}

function unnamed(what: string): FaultError {
  return new FaultError("data-loss", `Cannot open partition: ${what}`, { retriable: false });
}

interface Parts {
  readonly meta: MetaStream;
  readonly logMeta: LogMeta;
  readonly log: Stream;
  readonly parts: ReadonlyMap<string, CleanedPart>;
  readonly time: Stream | null;
  readonly txn: Stream | null;
  readonly restored: Restored;
}

function assemble(options: OpenPartitionLogOptions, parts: Parts): PartitionLog {
  const { streams, leaderEpoch, config, env } = options;
  const { meta, logMeta, log, time, txn, restored } = parts;
  const { state, snapshots, replayedBytes, checkpointedTo } = restored;
  state.epochs.assign(leaderEpoch, log.nextOffset);
  const name = `${options.topic}-${options.partition}`;
  const { oddities } = state.producers;
  if (replayedBytes > 0) {
    env.log.log("info", "partition-replayed", { partition: name, replayedBytes, oddities });
  }
  return new PartitionLogImpl({
    name,
    leaderEpoch,
    config,
    env,
    log,
    state,
    checkpointer: new Checkpointer({
      meta,
      createStream: () => streams.create(leaderEpoch, options.streamTag),
      deleteStream: (id) => streams.delete(id),
      logMeta,
      parts: parts.parts.values(),
      time,
      txn,
      snapshots,
    }),
    uncheckpointedBytes: replayedBytes,
    checkpointedTo,
  });
}
