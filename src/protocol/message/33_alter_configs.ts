/**
 * AlterConfigs, key 33, versions 0-2, flexible from 2. Replaces all settings of a resource.
 */
import { api } from "../api.ts";
import { bool, int16, int32, int8, string } from "../primitive.ts";
import { array, type Infer, type InferInput, message, since, struct } from "../schema.ts";

const VERSIONS = { min: 0, max: 2, flexibleFrom: 2 };

const alterableConfig = struct({
  name: string,
  value: since(0, string, { nullableSince: 0 }),
});

const alterConfigsResource = struct({
  resourceType: int8,
  resourceName: string,
  configs: array(alterableConfig),
});

export const alterConfigsRequest = message("AlterConfigsRequest", VERSIONS, {
  resources: array(alterConfigsResource),
  validateOnly: bool,
});

const alterConfigsResourceResponse = struct({
  errorCode: int16,
  errorMessage: since(0, string, { nullableSince: 0 }),
  resourceType: int8,
  resourceName: string,
});

export const alterConfigsResponse = message("AlterConfigsResponse", VERSIONS, {
  throttleTimeMs: int32,
  responses: array(alterConfigsResourceResponse),
});

export type AlterConfigsRequest = Infer<typeof alterConfigsRequest>;
export type AlterConfigsResponse = InferInput<typeof alterConfigsResponse>;
export const alterConfigsApi = api(33, alterConfigsRequest, alterConfigsResponse);
