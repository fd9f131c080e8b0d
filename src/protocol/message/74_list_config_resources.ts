/**
 * ListConfigResources, key 74, versions 0-1, flexible. 0 lists subscriptions to client metrics only; 1 chooses
 * types, none meaning all (KIP-1142).
 */
import { api } from "../api.ts";
import { int16, int32, int8, string } from "../primitive.ts";
import { array, type Infer, type InferInput, message, since, struct } from "../schema.ts";

const VERSIONS = { min: 0, max: 1, flexibleFrom: 0 };

export const listConfigResourcesRequest = message("ListConfigResourcesRequest", VERSIONS, {
  resourceTypes: since(1, array(int8)),
});

const configResource = struct({
  resourceName: string,
  resourceType: since(1, int8, { default: 16 }),
});

export const listConfigResourcesResponse = message("ListConfigResourcesResponse", VERSIONS, {
  throttleTimeMs: int32,
  errorCode: int16,
  configResources: array(configResource),
});

export type ListConfigResourcesRequest = Infer<typeof listConfigResourcesRequest>;
export type ListConfigResourcesResponse = InferInput<typeof listConfigResourcesResponse>;
export const listConfigResourcesApi = api(
  74,
  listConfigResourcesRequest,
  listConfigResourcesResponse,
);
