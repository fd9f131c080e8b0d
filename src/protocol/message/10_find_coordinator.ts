/**
 * FindCoordinator, key 10, versions 0-6, flexible from 3.
 * 1 adds the key type (0 group, 1 transaction), 4 asks for many keys at once (KIP-699), 5 and 6
 * change errors and key types only (KIP-890, KIP-932).
 */
import { api } from "../api.ts";
import { int16, int32, int8, string } from "../primitive.ts";
import { array, type Infer, type InferInput, message, since, struct } from "../schema.ts";

const VERSIONS = { min: 0, max: 6, flexibleFrom: 3 };

export const findCoordinatorRequest = message("FindCoordinatorRequest", VERSIONS, {
  key: since(0, string, { until: 3 }),
  keyType: since(1, int8),
  coordinatorKeys: since(4, array(string)),
});

const coordinator = struct({
  key: string,
  nodeId: int32,
  host: string,
  port: int32,
  errorCode: int16,
  errorMessage: since(0, string, { nullableSince: 0 }),
});

export const findCoordinatorResponse = message("FindCoordinatorResponse", VERSIONS, {
  throttleTimeMs: since(1, int32),
  errorCode: since(0, int16, { until: 3 }),
  errorMessage: since(1, string, { until: 3, nullableSince: 1 }),
  nodeId: since(0, int32, { until: 3 }),
  host: since(0, string, { until: 3 }),
  port: since(0, int32, { until: 3 }),
  coordinators: since(4, array(coordinator)),
});

export type FindCoordinatorRequest = Infer<typeof findCoordinatorRequest>;
export type FindCoordinatorResponse = InferInput<typeof findCoordinatorResponse>;
export const findCoordinatorApi = api(10, findCoordinatorRequest, findCoordinatorResponse);
