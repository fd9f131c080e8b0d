/**
 * AlterClientQuotas, key 49, versions 0-1, flexible from 1 (KIP-546). A null name is the default entity.
 */
import { api } from "../api.ts";
import { bool, float64, int16, int32, string } from "../primitive.ts";
import { array, type Infer, type InferInput, message, since, struct } from "../schema.ts";

const VERSIONS = { min: 0, max: 1, flexibleFrom: 1 };

const entityData = struct({
  entityType: string,
  entityName: since(0, string, { nullableSince: 0 }),
});

const opData = struct({
  key: string,
  value: float64,
  remove: bool,
});

const entryData = struct({
  entity: array(entityData),
  ops: array(opData),
});

export const alterClientQuotasRequest = message("AlterClientQuotasRequest", VERSIONS, {
  entries: array(entryData),
  validateOnly: bool,
});

const entryResult = struct({
  errorCode: int16,
  errorMessage: since(0, string, { nullableSince: 0 }),
  entity: array(entityData),
});

export const alterClientQuotasResponse = message("AlterClientQuotasResponse", VERSIONS, {
  throttleTimeMs: int32,
  entries: array(entryResult),
});

export type AlterClientQuotasRequest = Infer<typeof alterClientQuotasRequest>;
export type AlterClientQuotasResponse = InferInput<typeof alterClientQuotasResponse>;
export const alterClientQuotasApi = api(49, alterClientQuotasRequest, alterClientQuotasResponse);
