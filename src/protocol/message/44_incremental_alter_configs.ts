/**
 * IncrementalAlterConfigs, key 44, versions 0-1, flexible from 1 (KIP-339).
 * Operations: 0 set, 1 delete, 2 append, 3 subtract.
 */
import { api } from "../api.ts";
import { bool, int16, int32, int8, string } from "../primitive.ts";
import { array, type Infer, type InferInput, message, since, struct } from "../schema.ts";

const VERSIONS = { min: 0, max: 1, flexibleFrom: 1 };

const alterableConfig = struct({
  name: string,
  configOperation: int8,
  value: since(0, string, { nullableSince: 0 }),
});

const alterConfigsResource = struct({
  resourceType: int8,
  resourceName: string,
  configs: array(alterableConfig),
});

export const incrementalAlterConfigsRequest = message("IncrementalAlterConfigsRequest", VERSIONS, {
  resources: array(alterConfigsResource),
  validateOnly: bool,
});

const alterConfigsResourceResponse = struct({
  errorCode: int16,
  errorMessage: since(0, string, { nullableSince: 0 }),
  resourceType: int8,
  resourceName: string,
});

export const incrementalAlterConfigsResponse = message(
  "IncrementalAlterConfigsResponse",
  VERSIONS,
  {
    throttleTimeMs: int32,
    responses: array(alterConfigsResourceResponse),
  },
);

export type IncrementalAlterConfigsRequest = Infer<typeof incrementalAlterConfigsRequest>;
export type IncrementalAlterConfigsResponse = InferInput<typeof incrementalAlterConfigsResponse>;
export const incrementalAlterConfigsApi = api(
  44,
  incrementalAlterConfigsRequest,
  incrementalAlterConfigsResponse,
);
