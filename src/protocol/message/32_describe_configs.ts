/**
 * DescribeConfigs, key 32, versions 1-4, flexible from 4.
 * 1 names each value's source and synonyms (KIP-226), 3 its type and documentation (KIP-569).
 */
import { api } from "../api.ts";
import { bool, int16, int32, int8, string } from "../primitive.ts";
import { array, type Infer, type InferInput, message, since, struct } from "../schema.ts";

const VERSIONS = { min: 1, max: 4, flexibleFrom: 4 };

const describeConfigsResource = struct({
  resourceType: int8,
  resourceName: string,
  configurationKeys: since(0, array(string), { nullableSince: 0 }),
});

export const describeConfigsRequest = message("DescribeConfigsRequest", VERSIONS, {
  resources: array(describeConfigsResource),
  includeSynonyms: since(0, bool, { default: false }),
  includeDocumentation: since(3, bool),
});

const describeConfigsSynonym = struct({
  name: string,
  value: since(0, string, { nullableSince: 0 }),
  source: int8,
});

const describeConfigsResourceResult = struct({
  name: string,
  value: since(0, string, { nullableSince: 0 }),
  readOnly: bool,
  configSource: since(0, int8, { default: -1 }),
  isSensitive: bool,
  synonyms: array(describeConfigsSynonym),
  configType: since(3, int8),
  documentation: since(3, string, { nullableSince: 0 }),
});

const describeConfigsResult = struct({
  errorCode: int16,
  errorMessage: since(0, string, { nullableSince: 0 }),
  resourceType: int8,
  resourceName: string,
  configs: array(describeConfigsResourceResult),
});

export const describeConfigsResponse = message("DescribeConfigsResponse", VERSIONS, {
  throttleTimeMs: int32,
  results: array(describeConfigsResult),
});

export type DescribeConfigsRequest = Infer<typeof describeConfigsRequest>;
export type DescribeConfigsResponse = InferInput<typeof describeConfigsResponse>;
export const describeConfigsApi = api(32, describeConfigsRequest, describeConfigsResponse);
