/**
 * FindCoordinator (key 10), versions 0-6.
 * Behaviour: a group's coordinator is the leader of its partition of `__consumer_offsets`, a transactional id's
 * that of `__transaction_state`; each is created when the first client asks. Share groups (key type 2) are INVALID_REQUEST, like any type that is not known.
 * Version notes: 4 many keys (KIP-699) · 6 share groups (KIP-932).
 */
import { nodeId } from "../../lib/brand.ts";
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import {
  findCoordinatorApi,
  type FindCoordinatorRequest,
  type FindCoordinatorResponse,
} from "../../protocol/message/10_find_coordinator.ts";
import type { GroupServices } from "../group/services.ts";
import type { Handler } from "../handler.ts";
import { inGroups } from "../many.ts";

const GROUP = 0;
const TRANSACTION = 1;
const MANY_KEYS_SINCE = 4;

interface Found {
  readonly key: string;
  readonly nodeId: number;
  readonly host: string;
  readonly port: number;
  readonly errorCode: number;
  readonly errorMessage: string | null;
}

function failed(key: string, error: ErrorName, errorMessage: string): Found {
  return { key, nodeId: -1, host: "", port: -1, errorCode: errorCode(error), errorMessage };
}

export function findCoordinatorHandler(
  services: GroupServices,
): Handler<FindCoordinatorRequest, FindCoordinatorResponse> {
  async function find(key: string, keyType: number): Promise<Found> {
    if (keyType !== GROUP && keyType !== TRANSACTION) {
      return failed(key, "INVALID_REQUEST", `Key type ${keyType} is not known.`);
    }
    const located = keyType === GROUP
      ? await services.coordinator.locate(key)
      : await services.transactions.locate(key);
    if ("error" in located) {
      return failed(key, located.error, "The coordinators' topic cannot be used now.");
    }
    const node = located.leader === null
      ? undefined
      : services.metadata.view().nodes.get(nodeId(located.leader));
    if (node === undefined) {
      return failed(key, "COORDINATOR_NOT_AVAILABLE", "The coordinator is being elected.");
    }
    const { host, port } = node;
    return {
      key,
      nodeId: node.nodeId,
      host,
      port,
      errorCode: errorCode("NONE"),
      errorMessage: null,
    };
  }

  return {
    api: findCoordinatorApi,
    min: 0,
    max: 6,
    async handle(request, { version }) {
      if (version < MANY_KEYS_SINCE) return await find(request.key, request.keyType);
      const coordinators = await inGroups(
        services.env.clock,
        request.coordinatorKeys,
        (key) => find(key, request.keyType),
      );
      return { coordinators };
    },
  };
}
