/**
 * DescribeClientQuotas, key 48, versions 0-1, flexible from 1 (KIP-546). A component matches a name (0), the
 * default (1) or any that has its type (2).
 */
import { api } from "../api.ts";
import { bool, float64, int16, int32, int8, string } from "../primitive.ts";
import { array, type Infer, type InferInput, message, since, struct } from "../schema.ts";

const VERSIONS = { min: 0, max: 1, flexibleFrom: 1 };

const componentData = struct({
  entityType: string,
  matchType: int8,
  match: since(0, string, { nullableSince: 0 }),
});

export const describeClientQuotasRequest = message("DescribeClientQuotasRequest", VERSIONS, {
  components: array(componentData),
  strict: bool,
});

const entityData = struct({
  entityType: string,
  entityName: since(0, string, { nullableSince: 0 }),
});

const valueData = struct({
  key: string,
  value: float64,
});

const entryData = struct({
  entity: array(entityData),
  values: array(valueData),
});

export const describeClientQuotasResponse = message("DescribeClientQuotasResponse", VERSIONS, {
  throttleTimeMs: int32,
  errorCode: int16,
  errorMessage: since(0, string, { nullableSince: 0 }),
  entries: since(0, array(entryData), { nullableSince: 0 }),
});

export type DescribeClientQuotasRequest = Infer<typeof describeClientQuotasRequest>;
export type DescribeClientQuotasResponse = InferInput<typeof describeClientQuotasResponse>;
export const describeClientQuotasApi = api(
  48,
  describeClientQuotasRequest,
  describeClientQuotasResponse,
);
