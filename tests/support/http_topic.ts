/** A topic of the gateway's read side over arrays: appends wake, trims, fails and grows on demand. */
import { Semaphore } from "../../src/lib/semaphore.ts";
import { toUtf8 } from "../../src/lib/bytes.ts";
import { PRODUCE_PERMIT_BYTES } from "../../src/lib/limits.ts";
import type { Connection } from "../../src/env/listener.ts";
import type { ErrorName } from "../../src/protocol/error_code.ts";
import { createHttpApp } from "../../src/http/app.ts";
import { OpenSockets } from "../../src/http/sockets/open_sockets.ts";
import { LiveStreams } from "../../src/http/live/live_streams.ts";
import type { Gateway, ReadQuery, RecordOutput } from "../../src/http/port.ts";
import { createBodyRooms } from "../../src/http/read_body.ts";
import { createFakeClock } from "./fake_clock.ts";
import { NO_ADMIN } from "./no_admin.ts";
import { NO_GROUPS } from "./no_groups.ts";
import { noPush } from "./no_push.ts";
import { testEnv } from "./test_env.ts";

export const TOPIC_ID = "00112233445566778899aabbccddeeff";

interface Partition {
  readonly records: RecordOutput[];
  logStart: number;
  end: number;
}

export interface Appended {
  readonly key?: string | null;
  readonly value?: string | Uint8Array | null;
  readonly headers?: readonly (readonly [string, string])[];
}

function bytesOf(value: string | Uint8Array | null): Uint8Array | null {
  return typeof value === "string" ? toUtf8(value) : value;
}

export interface HttpTopicOptions {
  /** Nothing is written without. */
  readonly produce?: Gateway["produce"];
  readonly serveKafka?: (connection: Connection) => void;
  readonly corsOrigins?: readonly string[];
}

export function createHttpTopic(
  count = 1,
  streamsMax?: number,
  { produce, serveKafka = () => {}, corsOrigins = [] }: HttpTopicOptions = {},
) {
  const clock = createFakeClock();
  const env = testEnv({ clock });
  const partitions: Partition[] = [];
  const wakers = new Set<() => void>();
  const reads: { partition: number; query: ReadQuery }[] = [];
  let topicId: string | null = TOPIC_ID;
  let held = 0;
  let failing: { partition: number; error: ErrorName } | null = null;
  const grow = (to: number) => {
    while (partitions.length < to) partitions.push({ records: [], logStart: 0, end: 0 });
  };
  grow(count);
  const wake = () => {
    for (const one of Array.from(wakers)) one();
  };
  const read: Gateway["read"] = async (_topic, partition, query) => {
    reads.push({ partition, query });
    await Promise.resolve();
    const log = partitions[partition];
    if (topicId === null || log === undefined) {
      return { ok: false, error: "UNKNOWN_TOPIC_OR_PARTITION" };
    }
    if (failing?.partition === partition) return { ok: false, error: failing.error };
    const start = query.offset === "earliest"
      ? log.logStart
      : query.offset === "latest"
      ? log.end
      : Number(query.offset);
    const { logStart, end: highWatermark } = log;
    if (start < logStart || start > highWatermark) {
      return { ok: false, error: "OFFSET_OUT_OF_RANGE", logStart, highWatermark };
    }
    const found = log.records.filter(({ offset }) => offset >= start).slice(0, query.recordsMax);
    const large = found.findIndex(({ value }) => (value?.length ?? 0) > query.recordBytesMax);
    const whole = large < 0 ? found : found.slice(0, large);
    const next = large < 0
      ? found.length < query.recordsMax ? highWatermark : found.at(-1)!.offset + 1
      : found[large]!.offset;
    held += 1;
    return {
      ok: true,
      records: whole.filter((record) => query.filter?.(record) !== false),
      next,
      oversized: large < 0 ? null : { offset: next, bytes: found[large]!.value!.length },
      highWatermark,
      logStart,
      topicId,
      fixedBelow: highWatermark,
      release: () => void (held -= 1),
    };
  };
  const unused = () => Promise.reject(new Error("unexpected"));
  const gateway = {
    read,
    readBatches: unused,
    findTopic: (name: string) =>
      topicId === null || name !== "t" ? null : { name, topicId, partitions: partitions.length },
    bounds: (_id: string, partition: number) => {
      const { logStart: earliest, end: latest } = partitions[partition]!;
      return Promise.resolve({ ok: true as const, earliest, latest, highWatermark: latest });
    },
    peekEnd: (_id: string, partition: number) => partitions[partition]?.end ?? null,
    watch: (_id: string, _partitions: readonly number[] | null, one: () => void) => {
      wakers.add(one);
      return () => void wakers.delete(one);
    },
    listTopics: () => [],
    describeTopic: () => null,
    produce: produce ?? unused,
    // What else writes is not under test.
  } as unknown as Gateway;
  const streams = new LiveStreams(env, streamsMax);
  const producePermits = new Semaphore(PRODUCE_PERMIT_BYTES);
  const app = createHttpApp({
    gateway,
    admin: NO_ADMIN,
    groups: NO_GROUPS,
    ...noPush(gateway),
    env,
    sockets: new OpenSockets(env),
    serveKafka,
    streams,
    producePermits,
    rooms: createBodyRooms(clock),
    corsOrigins,
    status: {
      notReady: () => null,
      renderMetrics: () => env.metrics.render(),
      version: "0",
      clusterId: "c",
      nodeId: 1,
    },
  });
  return {
    app,
    gateway,
    clock,
    env,
    streams,
    producePermits,
    reads,
    get held() {
      return held;
    },
    get waiting() {
      return wakers.size;
    },
    append(partition: number, ...records: readonly Appended[]) {
      const log = partitions[partition]!;
      for (const { key = null, value = null, headers = [] } of records) {
        log.records.push({
          offset: log.end,
          timestampMs: 1_700_000_000_000,
          key: bytesOf(key),
          value: bytesOf(value),
          headers: headers.map(([name, text]) => ({ name, value: toUtf8(text) })),
        });
        log.end += 1;
      }
      wake();
    },
    trim(partition: number, logStart: number) {
      const log = partitions[partition]!;
      log.logStart = logStart;
      log.records.splice(0, log.records.length, ...log.records.filter((r) => r.offset >= logStart));
      wake();
    },
    fail(partition: number, error: ErrorName | null) {
      failing = error === null ? null : { partition, error };
    },
    setTopic(id: string | null) {
      topicId = id;
      wake();
    },
    grow(to: number) {
      grow(to);
      wake();
    },
    /** Opens a stream and collects its text as long as it is read. */
    async open(query = "", headers: Record<string, string> = {}) {
      const gone = new AbortController();
      const request = new Request(`http://node/v1/topics/t/stream${query}`, {
        headers,
        signal: gone.signal,
      });
      const response = await app.fetch(request);
      return openText(response, clock, () => gone.abort());
    },
  };
}

export type HttpTopic = ReturnType<typeof createHttpTopic>;

function openText(
  response: Response,
  clock: { settle(): Promise<void> },
  leave: () => void,
) {
  let opened: ReadableStreamDefaultReader<Uint8Array> | null = null;
  const reader = () => opened ??= response.body!.getReader();
  const decoder = new TextDecoder();
  let text = "";
  let isReading = false;
  let isOver = false;
  let error: unknown = null;
  const pump = async () => {
    try {
      while (isReading && !isOver) {
        const part = await reader().read();
        if (part.done) isOver = true;
        else text += decoder.decode(part.value, { stream: true });
      }
    } catch (cause) {
      error = cause;
      isOver = true;
    }
  };
  return {
    response,
    leave,
    get text() {
      return text;
    },
    get isOver() {
      return isOver;
    },
    get error() {
      return error;
    },
    /** Reads whatever comes from now on. */
    async read(): Promise<string> {
      if (!isReading) {
        isReading = true;
        void pump();
      }
      await clock.settle();
      return text;
    },
    /** Reads one chunk and stops. */
    async readOnce(): Promise<string> {
      const part = await reader().read();
      if (part.done) isOver = true;
      else text += decoder.decode(part.value, { stream: true });
      return text;
    },
    cancel: () => reader().cancel(),
  };
}
