/**
 * ShareAcknowledge (key 79), versions 1-2.
 * Behaviour: what a member says of the records that it has: accepted, released, rejected, not there, or its lock
 * renewed (KIP-932). Answered once that is durable; all that is said of a partition counts, or none of it. A final
 * request gives back what is left and ends the session. Epoch 0 is INVALID_SHARE_SESSION_EPOCH: only a fetch opens
 * a session.
 * Deviations: KAFKA_STORAGE_ERROR when the group's state cannot be written now; the records then are what
 * they were, and the client may say it again.
 * Version notes: 2 renewal of locks (KIP-1222).
 */
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import {
  shareAcknowledgeApi,
  type ShareAcknowledgeRequest,
  type ShareAcknowledgeResponse,
} from "../../protocol/message/79_share_acknowledge.ts";
import type { Handler } from "../handler.ts";
import {
  acknowledgeAll,
  acknowledgeMessage,
  type RequestedAcknowledgements,
} from "../share/acknowledgements.ts";
import {
  askerOf,
  byTopic,
  currentLeader,
  leadersOf,
  type ShareServices,
} from "../share/share_request.ts";
import { FINAL_EPOCH } from "../share/share_sessions.ts";

function failure(error: ErrorName): ShareAcknowledgeResponse {
  return { throttleTimeMs: 0, errorCode: errorCode(error), responses: [], nodeEndpoints: [] };
}

function requestedOf({ topics }: ShareAcknowledgeRequest): RequestedAcknowledgements[] {
  return topics.flatMap(({ topicId, partitions }) =>
    partitions.map(({ partitionIndex: partition, acknowledgementBatches: batches }) => ({
      place: { topicId, partition },
      batches,
    }))
  );
}

export function shareAcknowledgeHandler(
  services: ShareServices,
): Handler<ShareAcknowledgeRequest, ShareAcknowledgeResponse> {
  return {
    api: shareAcknowledgeApi,
    min: 1,
    max: 2,
    async handle(request, { version }) {
      const { shareGroups } = services;
      const member = askerOf(services, request);
      if (typeof member === "string") return failure(member);
      const epoch = request.shareSessionEpoch;
      const refused = shareGroups.sessions.acknowledge(member, epoch);
      if (refused !== null) return failure(refused);
      const requested = requestedOf(request);
      const results = await acknowledgeAll(
        services,
        member,
        requested,
        version,
        request.isRenewAck,
      );
      if (epoch === FINAL_EPOCH) {
        await shareGroups.release(member, shareGroups.sessions.end(member));
      }
      shareGroups.showMetrics();
      return {
        throttleTimeMs: 0,
        errorCode: errorCode("NONE"),
        acquisitionLockTimeoutMs: shareGroups.settingsOf(member.groupId).recordLockDurationMs,
        responses: byTopic(results, ({ place, error }) => ({
          partitionIndex: place.partition,
          errorCode: errorCode(error),
          errorMessage: acknowledgeMessage(error),
          currentLeader: currentLeader(services, place, error),
        })),
        nodeEndpoints: leadersOf(services, results),
      };
    },
  };
}
