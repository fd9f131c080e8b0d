/**
 * ShareFetch (key 78), versions 1-2.
 * Behaviour: gives records to a member of a share group under a lock, and takes acknowledgements on the way
 * (KIP-932). An acknowledgement is answered once it is durable. Records come in whole batches of the log, or in
 * exactly MaxRecords of them in mode 1. What an answer that never left had given is free again at once; what a
 * connection's session had, when the connection ends. Sessions remember 200,000 partitions in all.
 * Deviations: of a batch of more than 10,000 records the rest comes later. Where a group begins is stored when
 * its first member fetches, not with its first acknowledgement. A group whose state is stored on another node,
 * or was never begun, gets KAFKA_STORAGE_ERROR: nodes do not write to each other.
 * Version notes: 2 acquire mode (KIP-1206), renewal of locks (KIP-1222).
 */
import { sleep } from "../../env/clock.ts";
import { FETCH_WAIT_MS_MAX } from "../../lib/limits.ts";
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import {
  shareFetchApi,
  type ShareFetchRequest,
  type ShareFetchResponse,
} from "../../protocol/message/78_share_fetch.ts";
import type { Handler, RequestContext } from "../handler.ts";
import {
  acknowledgeAll,
  type Acknowledged,
  acknowledgeMessage,
  type RequestedAcknowledgements,
} from "../share/acknowledgements.ts";
import { shareFetch, type ShareFetched } from "../share/share_fetch.ts";
import {
  askerOf,
  byTopic,
  currentLeader,
  leadersOf,
  type ShareServices,
} from "../share/share_request.ts";
import {
  FINAL_EPOCH,
  type ShareMember,
  type SharePlace,
  type ShareScope,
} from "../share/share_sessions.ts";

const RENEW_SINCE = 2;
const RECORD_LIMIT_MODE = 1;

type PartitionAnswer = ShareFetchResponse["responses"][number]["partitions"][number];

function failure(error: ErrorName, errorMessage: string | null = null): ShareFetchResponse {
  return {
    throttleTimeMs: 0,
    errorCode: errorCode(error),
    errorMessage,
    acquisitionLockTimeoutMs: 0,
    responses: [],
    nodeEndpoints: [],
  };
}

/** A request that only renews must ask for nothing. */
function renewalProblem(request: ShareFetchRequest): string | null {
  const { maxBytes, minBytes, maxRecords, maxWaitMs } = request;
  const asked = Object.entries({ maxBytes, minBytes, maxRecords, maxWaitMs })
    .flatMap(([name, value]) => value === 0 ? [] : [name]);
  return asked.length === 0 ? null : `With renewals these must be zero: ${asked.join(", ")}`;
}

function requestedOf({ topics }: ShareFetchRequest): RequestedAcknowledgements[] {
  return topics.flatMap(({ topicId, partitions }) =>
    partitions.flatMap(({ partitionIndex: partition, acknowledgementBatches: batches }) =>
      batches.length === 0 ? [] : [{ place: { topicId, partition }, batches }]
    )
  );
}

function placesOf({ topics }: ShareFetchRequest): SharePlace[] {
  return topics.flatMap(({ topicId, partitions }) =>
    partitions.map(({ partitionIndex: partition }) => ({ topicId, partition }))
  );
}

/** A fetch result, an acknowledgement, or both of one partition. */
interface Told {
  readonly place: SharePlace;
  readonly error: ErrorName;
  readonly fetched: ShareFetched | null;
  readonly acknowledged: ErrorName;
}

function placeKey({ topicId, partition }: SharePlace): string {
  return `${topicId}/${partition}`;
}

/** What was fetched, with the fate of acknowledgements; partitions that were acknowledged only come after. */
function tellAll(
  fetched: readonly ShareFetched[],
  acknowledged: readonly Acknowledged[],
): Told[] {
  const left = new Map(acknowledged.map((one) => [placeKey(one.place), one]));
  const told = fetched.map((one): Told => {
    const fate = left.get(placeKey(one.place))?.error ?? "NONE";
    left.delete(placeKey(one.place));
    return { place: one.place, error: one.error, fetched: one, acknowledged: fate };
  });
  for (const { place, error } of left.values()) {
    told.push({ place, error: "NONE", fetched: null, acknowledged: error });
  }
  return told;
}

function answerOf(services: ShareServices, told: Told): PartitionAnswer {
  const { place, error, fetched, acknowledged } = told;
  const moved = error === "NONE" ? acknowledged : error;
  return {
    partitionIndex: place.partition,
    errorCode: errorCode(error),
    acknowledgeErrorCode: errorCode(acknowledged),
    acknowledgeErrorMessage: acknowledgeMessage(acknowledged),
    currentLeader: currentLeader(services, place, moved),
    records: fetched?.batches ?? [],
    acquiredRecords: (fetched?.acquired ?? []).map(({ first, last, count }) => ({
      firstOffset: first,
      lastOffset: last,
      deliveryCount: count,
    })),
  };
}

async function readAll(
  services: ShareServices,
  request: ShareFetchRequest,
  member: ShareMember,
  scope: ShareScope,
  context: RequestContext,
): Promise<readonly ShareFetched[]> {
  const results = await shareFetch(services, {
    ...member,
    places: request.isRenewAck ? [] : scope.places,
    maxWaitMs: request.maxWaitMs,
    minBytes: request.minBytes,
    maxBytes: request.maxBytes,
    recordsMax: request.maxRecords,
    batchSize: request.batchSize,
    isRecordLimit: request.shareAcquireMode === RECORD_LIMIT_MODE,
  }, context);
  return scope.select(results.map((one) => ({
    ...one,
    hasRecords: one.batches.length > 0,
    hasError: one.error !== "NONE",
  })));
}

async function serve(
  services: ShareServices,
  request: ShareFetchRequest,
  member: ShareMember,
  scope: ShareScope,
  context: RequestContext,
): Promise<ShareFetchResponse> {
  const { shareGroups } = services;
  const requested = requestedOf(request);
  const [acknowledged, found] = await Promise.all([
    acknowledgeAll(services, member, requested, context.version, request.isRenewAck),
    readAll(services, request, member, scope, context),
  ]);
  // Not before its last acknowledgements have been seen to.
  if (request.shareSessionEpoch === FINAL_EPOCH) {
    await shareGroups.release(member, shareGroups.sessions.end(member));
  }
  shareGroups.showMetrics();
  const told = tellAll(found, acknowledged);
  const failed = told.flatMap(({ place, error, acknowledged: fate }) => [
    { place, error },
    { place, error: fate },
  ]);
  return {
    throttleTimeMs: 0,
    errorCode: errorCode("NONE"),
    acquisitionLockTimeoutMs: shareGroups.settingsOf(member.groupId).recordLockDurationMs,
    responses: byTopic(told, (one) => answerOf(services, one)),
    nodeEndpoints: leadersOf(services, failed),
  };
}

export function shareFetchHandler(
  services: ShareServices,
): Handler<ShareFetchRequest, ShareFetchResponse> {
  return {
    api: shareFetchApi,
    min: 1,
    max: 2,
    async handle(request, context) {
      const member = askerOf(services, request);
      if (typeof member === "string") return failure(member);
      if (request.isRenewAck && context.version >= RENEW_SINCE) {
        const problem = renewalProblem(request);
        if (problem !== null) return failure("INVALID_REQUEST", problem);
      }
      const opened = services.shareGroups.sessions.open({
        ...member,
        epoch: request.shareSessionEpoch,
        hasAcknowledgements: requestedOf(request).length > 0,
        places: placesOf(request),
        forgotten: request.forgottenTopicsData.flatMap(({ topicId, partitions }) =>
          partitions.map((partition) => ({ topicId, partition }))
        ),
        ended: context.session.ended,
      });
      if (opened.ok) return await serve(services, request, member, opened, context);
      // As after an empty poll: the client comes again at once.
      if (opened.error === "SHARE_SESSION_LIMIT_REACHED") {
        const waitMs = Math.max(0, Math.min(request.maxWaitMs, FETCH_WAIT_MS_MAX));
        await sleep(services.env.clock, waitMs, context.signal);
      }
      return failure(opened.error);
    },
  };
}
