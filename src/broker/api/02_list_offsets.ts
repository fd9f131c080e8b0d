/**
 * ListOffsets (key 2), versions 1-11.
 * Behaviour: latest is the high watermark, or the last stable offset for read_committed. Times are those
 * of records; an answer never lies past that limit. -4 is the log start: nothing is local. -5 is the
 * last offset that is durable, which is the last one before the high watermark; -6 is the watermark, both
 * whatever the isolation.
 * What is not found within timeoutMs is REQUEST_TIMED_OUT for its partition, others are answered; without
 * one, 30 seconds.
 * Version notes: 2 isolation · 4 leader epochs (KIP-320) · 6 flexible · 7 max timestamp (KIP-734) · 8 -4
 * (KIP-405) · 9 -5 (KIP-1005) · 10 timeoutMs (KIP-1075) · 11 -6 (KIP-1023).
 */
import { LIST_OFFSETS_TIMEOUT_MS } from "../../lib/limits.ts";
import type { Cancel, Clock } from "../../env/clock.ts";
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import {
  listOffsetsApi,
  type ListOffsetsRequest,
  type ListOffsetsResponse,
} from "../../protocol/message/02_list_offsets.ts";
import type { PartitionLog, TimestampedOffset } from "../../log/partition_log.ts";
import { faultToCode } from "../fault_to_code.ts";
import type { BrokerServices, Handler } from "../handler.ts";
import { repeatedIn } from "../many.ts";
import { epochProblem } from "../partitions.ts";

type TopicAsked = ListOffsetsRequest["topics"][number];
type PartitionAsked = TopicAsked["partitions"][number];
type PartitionAnswer = ListOffsetsResponse["topics"][number]["partitions"][number];

const LATEST = -1;
const EARLIEST = -2;
const MAX_TIMESTAMP = -3;
const EARLIEST_LOCAL = -4;
const LATEST_TIERED = -5;
const EARLIEST_PENDING = -6;
/** First version that knows a negative target. */
const SINCE: Readonly<Record<number, number>> = {
  [LATEST]: 1,
  [EARLIEST]: 1,
  [MAX_TIMESTAMP]: 7,
  [EARLIEST_LOCAL]: 8,
  [LATEST_TIERED]: 9,
  [EARLIEST_PENDING]: 11,
};
const STORAGE_ERROR_SINCE = 5;
const READ_COMMITTED = 1;

type Found = Pick<TimestampedOffset, "timestampMs" | "offset" | "leaderEpoch">;

const NOT_FOUND: Found = { timestampMs: -1, offset: -1, leaderEpoch: -1 };

function at(log: PartitionLog, offset: number): Found {
  const leaderEpoch = offset >= log.logEndOffset ? log.leaderEpoch : log.epochAt(offset);
  return { timestampMs: -1, offset, leaderEpoch };
}

async function find(
  log: PartitionLog,
  target: number,
  { committed, signal }: Search,
): Promise<Found> {
  const { highWatermark, lastStableOffset, logStartOffset } = log;
  const limit = committed ? lastStableOffset : highWatermark;
  switch (target) {
    case LATEST:
      return at(log, limit);
    case EARLIEST:
    case EARLIEST_LOCAL:
      return at(log, logStartOffset);
    case LATEST_TIERED:
      return highWatermark > logStartOffset ? at(log, highWatermark - 1) : NOT_FOUND;
    case EARLIEST_PENDING:
      return at(log, highWatermark);
    default: {
      const found = target === MAX_TIMESTAMP
        ? await log.maxTimestamp(signal)
        : await log.offsetForTimestamp(target, signal);
      return found !== null && found.offset < limit ? found : NOT_FOUND;
    }
  }
}

/** What all partitions of a request are looked up with. */
interface Search {
  readonly version: number;
  readonly committed: boolean;
  /** Ends the lookups that still run. */
  readonly signal: AbortSignal;
  /** The answer of those that ran too long. */
  readonly expired: Promise<ErrorName>;
}

/** Runs the search within its time, and for as long as the client listens. */
async function withDeadline<T>(
  clock: Clock,
  timeoutMs: number,
  gone: AbortSignal,
  search: (limits: Pick<Search, "signal" | "expired">) => Promise<T>,
): Promise<T> {
  const stop = new AbortController();
  const end = (): void => stop.abort();
  let cancel: Cancel = () => {};
  const expired = new Promise<ErrorName>((resolve) => {
    cancel = clock.after(timeoutMs > 0 ? timeoutMs : LIST_OFFSETS_TIMEOUT_MS, () => {
      resolve("REQUEST_TIMED_OUT");
      end();
    });
  });
  gone.addEventListener("abort", end, { once: true });
  if (gone.aborted) end();
  try {
    return await search({ signal: stop.signal, expired });
  } finally {
    cancel();
    gone.removeEventListener("abort", end);
  }
}

function codeOf(error: unknown, version: number): ErrorName {
  const name = faultToCode(error, "fetch");
  const isKnown = name !== "KAFKA_STORAGE_ERROR" || version >= STORAGE_ERROR_SINCE;
  return isKnown ? name : "LEADER_NOT_AVAILABLE";
}

function placeOf(name: string, { partitionIndex }: PartitionAsked): string {
  return `${name}/${partitionIndex}`;
}

/** A topic may stand in several places of a request. */
function repeatedPlaces(asked: readonly TopicAsked[]): ReadonlySet<string> {
  return repeatedIn(
    asked.flatMap(({ name, partitions }) => partitions.map((one) => placeOf(name, one))),
  );
}

export function listOffsetsHandler(
  services: BrokerServices,
): Handler<ListOffsetsRequest, ListOffsetsResponse> {
  const { topics, partitions } = services;

  async function lookUp(
    name: string,
    asked: PartitionAsked,
    search: Search,
  ): Promise<Found | ErrorName> {
    const { version } = search;
    const since = asked.timestamp < 0 ? SINCE[asked.timestamp] ?? Infinity : 0;
    if (version < since) return "UNSUPPORTED_VERSION";
    await topics.look([name]);
    const topic = topics.find(name);
    if (topic === undefined) return "UNKNOWN_TOPIC_OR_PARTITION";
    try {
      const located = await partitions.open(topic.topicId, asked.partitionIndex);
      if (!located.ok) return located.error;
      const problem = epochProblem(located.log, asked.currentLeaderEpoch);
      return problem ?? await find(located.log, asked.timestamp, search);
    } catch (error) {
      return codeOf(error, version);
    }
  }

  async function answer(
    name: string,
    asked: PartitionAsked,
    isRepeated: boolean,
    search: Search,
  ): Promise<PartitionAnswer> {
    const { partitionIndex } = asked;
    const found = isRepeated
      ? "INVALID_REQUEST"
      : await Promise.race([lookUp(name, asked, search), search.expired]);
    if (typeof found === "string") return { partitionIndex, errorCode: errorCode(found) };
    const { timestampMs: timestamp, offset, leaderEpoch } = found;
    return { partitionIndex, errorCode: errorCode("NONE"), timestamp, offset, leaderEpoch };
  }

  return {
    api: listOffsetsApi,
    min: 1,
    max: 11,
    async handle(request, { version, signal: gone }) {
      const committed = request.isolationLevel === READ_COMMITTED;
      const { topics: asked, timeoutMs } = request;
      return await withDeadline(services.env.clock, timeoutMs, gone, async (limits) => {
        const search = { version, committed, ...limits };
        const repeated = repeatedPlaces(asked);
        const answers = asked.map(async ({ name, partitions: parts }) => ({
          name,
          partitions: await Promise.all(
            parts.map((one) => answer(name, one, repeated.has(placeOf(name, one)), search)),
          ),
        }));
        return { topics: await Promise.all(answers) };
      });
    },
  };
}
