/**
 * Fetch (key 1), versions 4-18.
 * Behaviour: whole batches only; the first one is returned whatever the limits (KIP-74). Holds until
 * minBytes are there below the high watermark (last stable offset for read_committed), a partition
 * has an error, a log closes, or the wait is over. Memory is read before objects. read_committed gets
 * the aborted transactions that overlap its batches, by their first offsets; markers go to everybody.
 * Storage trouble is KAFKA_STORAGE_ERROR for its partition; versions 4 and 5, which do not know it, get
 * NOT_LEADER_OR_FOLLOWER, as from Kafka. Sessions remember 200,000 partitions in all; without room a
 * fetch works without one.
 * Of a partition that is asked for twice the last place counts, as in Kafka.
 * Deviations: follower fields are ignored; no preferred replica; zstd is sent to any version.
 * Version notes: 6 KAFKA_STORAGE_ERROR · 7 sessions (KIP-227) · 9 leader epochs (KIP-320) · 12 flexible, diverging epochs
 * · 13 topic ids (KIP-516) · 16 leader hints (KIP-951).
 */
import { FETCH_WAIT_MS_MAX } from "../../lib/limits.ts";
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import {
  fetchApi,
  type FetchRequest,
  type FetchResponse,
} from "../../protocol/message/01_fetch.ts";
import type { TopicRow } from "../../controller/image.ts";
import { hintedNodes, type LeaderHint, leaderHint } from "../endpoints.ts";
import { faultToCode } from "../fault_to_code.ts";
import {
  type FetchResult,
  type OpenTarget,
  type Pass,
  type PassOptions,
  readPass,
} from "../fetch_read.ts";
import { createFetchSessions, type FetchOpening, type FetchTarget } from "../fetch_session.ts";
import { createFetchWait, type FetchWait } from "../fetch_wait.ts";
import type { BrokerServices, Handler, RequestContext } from "../handler.ts";
import { lastOfEach } from "../many.ts";
import { epochProblem } from "../partitions.ts";

type TopicAnswer = FetchResponse["responses"][number];
type PartitionAnswer = TopicAnswer["partitions"][number];

const STORAGE_ERROR_SINCE = 6;
const TOPIC_IDS_SINCE = 13;
const HINTS_SINCE = 16;
const READ_COMMITTED = 1;

function targetsOf(request: FetchRequest): readonly FetchTarget[] {
  const all = request.topics.flatMap(({ topic, topicId, partitions }) =>
    partitions.map((one) => ({
      topic,
      topicId,
      partition: one.partition,
      // Fetch alone takes every negative epoch for "do not check", as in Kafka.
      currentLeaderEpoch: Math.max(-1, one.currentLeaderEpoch),
      fetchOffset: one.fetchOffset,
      lastFetchedEpoch: one.lastFetchedEpoch,
      partitionMaxBytes: Math.max(0, one.partitionMaxBytes),
    }))
  );
  return lastOfEach(all, ({ topic, topicId, partition }) => `${topic}${topicId}/${partition}`);
}

function openingOf(request: FetchRequest, version: number): FetchOpening {
  return {
    sessionId: request.sessionId,
    epoch: request.sessionEpoch,
    usesIds: version >= TOPIC_IDS_SINCE,
    targets: targetsOf(request),
    forgotten: request.forgottenTopicsData.flatMap(({ topic, topicId, partitions }) =>
      partitions.map((partition) => ({ topic, topicId, partition }))
    ),
  };
}

function onFault(error: unknown, version: number): ErrorName {
  const name = faultToCode(error, "fetch");
  const isKnown = name !== "KAFKA_STORAGE_ERROR" || version >= STORAGE_ERROR_SINCE;
  return isKnown ? name : "NOT_LEADER_OR_FOLLOWER";
}

function topicOf(
  services: BrokerServices,
  target: FetchTarget,
  version: number,
): TopicRow | ErrorName {
  return version >= TOPIC_IDS_SINCE
    ? services.topics.findById(target.topicId) ?? "UNKNOWN_TOPIC_ID"
    : services.topics.find(target.topic) ?? "UNKNOWN_TOPIC_OR_PARTITION";
}

async function openTarget(
  services: BrokerServices,
  target: FetchTarget,
  version: number,
): Promise<OpenTarget> {
  const { topics } = services;
  await (version >= TOPIC_IDS_SINCE
    ? topics.lookById([target.topicId])
    : topics.look([target.topic]));
  const topic = topicOf(services, target, version);
  if (typeof topic === "string") return { target, log: null, error: topic };
  try {
    const located = await services.partitions.open(topic.topicId, target.partition);
    if (!located.ok) return { target, log: null, error: located.error };
    const error = epochProblem(located.log, target.currentLeaderEpoch);
    return error === null ? { target, log: located.log } : { target, log: null, error };
  } catch (error) {
    return { target, log: null, error: onFault(error, version) };
  }
}

/** A client must not wait for more than it can be given. */
function limitsOf(
  { config }: BrokerServices,
  { minBytes, maxBytes }: FetchRequest,
): Pick<PassOptions, "bytesMin" | "bytesMax"> {
  const bytesMax = Math.max(0, Math.min(maxBytes, config.integer("fetch.max.bytes")));
  return { bytesMin: Math.min(minBytes, bytesMax), bytesMax };
}

async function pass(
  services: BrokerServices,
  targets: readonly FetchTarget[],
  request: FetchRequest,
  context: RequestContext,
  wait: FetchWait,
): Promise<Pass> {
  const opened = await Promise.all(
    targets.map((one) => openTarget(services, one, context.version)),
  );
  for (const { log } of opened) if (log !== null) wait.watch(log);
  return await readPass(opened, {
    ...limitsOf(services, request),
    isolation: request.isolationLevel === READ_COMMITTED ? "committed" : "uncommitted",
    signal: context.signal,
    hotPermits: services.permits.hotFetch,
    coldPermits: services.permits.coldFetch,
    onFault: (error) => onFault(error, context.version),
  });
}

function isSatisfied({ results, bytes }: Pass, bytesMin: number): boolean {
  return results.length === 0 || bytes >= bytesMin ||
    results.some(({ error, diverging }) => error !== "NONE" || diverging);
}

/** Reads until satisfied or out of time; the last pass is the answer. */
async function poll(
  services: BrokerServices,
  targets: readonly FetchTarget[],
  request: FetchRequest,
  context: RequestContext,
): Promise<Pass> {
  const waitMs = Math.min(request.maxWaitMs, FETCH_WAIT_MS_MAX);
  const { bytesMin } = limitsOf(services, request);
  const wait = createFetchWait(services.env.clock, Math.max(0, waitMs), context.signal);
  try {
    for (;;) {
      const found = await pass(services, targets, request, context, wait);
      if (isSatisfied(found, bytesMin) || waitMs <= 0) return found;
      // A long poll holds no permits while it waits; what it answers late is a small part.
      found.release();
      if (await wait.next() === "over") return found;
      found.forget();
    }
  } finally {
    wait.stop();
  }
}

function hintOf(
  services: BrokerServices,
  { target, error }: FetchResult,
  version: number,
): LeaderHint | null {
  if (version < HINTS_SINCE) return null;
  const topic = topicOf(services, target, version);
  return typeof topic === "string"
    ? null
    : leaderHint(error, services.partitions.leaderOf(topic.topicId, target.partition));
}

function answerOf(
  services: BrokerServices,
  result: FetchResult,
  request: FetchRequest,
  version: number,
): PartitionAnswer {
  const hint = hintOf(services, result, version);
  return {
    partitionIndex: result.target.partition,
    errorCode: errorCode(result.error),
    highWatermark: result.highWatermark,
    lastStableOffset: result.lastStableOffset,
    logStartOffset: result.logStartOffset,
    ...(result.divergingEpoch === null ? {} : { divergingEpoch: result.divergingEpoch }),
    ...(hint === null ? {} : { currentLeader: hint }),
    abortedTransactions: request.isolationLevel === READ_COMMITTED ? result.aborted : null,
    records: result.batches,
  };
}

function responseOf(
  services: BrokerServices,
  results: readonly FetchResult[],
  request: FetchRequest,
  sessionId: number,
  version: number,
): FetchResponse {
  const responses: (TopicAnswer & { partitions: PartitionAnswer[] })[] = [];
  for (const result of results) {
    const { topic, topicId } = result.target;
    let last = responses.at(-1);
    if (last === undefined || last.topic !== topic || last.topicId !== topicId) {
      last = { topic, topicId, partitions: [] };
      responses.push(last);
    }
    last.partitions.push(answerOf(services, result, request, version));
  }
  const hints = results.map((result) => hintOf(services, result, version));
  return {
    throttleTimeMs: 0,
    errorCode: errorCode("NONE"),
    sessionId,
    responses,
    nodeEndpoints: hintedNodes(services, hints),
  };
}

export function fetchHandler(services: BrokerServices): Handler<FetchRequest, FetchResponse> {
  const sessions = createFetchSessions({
    clock: services.env.clock,
    random: services.env.random.derive("fetch-sessions"),
    slotsMax: services.config.integer("max.incremental.fetch.session.cache.slots"),
  });

  return {
    api: fetchApi,
    min: 4,
    max: 18,
    async handle(request, context) {
      const { version } = context;
      const opened = sessions.open(openingOf(request, version));
      if (!opened.ok) {
        return {
          throttleTimeMs: 0,
          errorCode: errorCode(opened.error),
          sessionId: 0,
          responses: [],
        };
      }
      const found = await poll(services, opened.targets, request, context);
      context.afterAnswer((left) => {
        found.release();
        if (left) found.forget();
      });
      services.env.metrics.count("skerry_fetch_bytes_total", {}, found.bytes);
      services.env.metrics.gauge("skerry_fetch_sessions", sessions.size);
      const selected = opened.select(found.results);
      return responseOf(services, selected, request, opened.sessionId, version);
    },
  };
}
