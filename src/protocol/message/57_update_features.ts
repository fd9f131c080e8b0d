/**
 * UpdateFeatures, key 57, versions 0-2, flexible (KIP-584). 1 has a kind of change instead of a flag: 1 up,
 * 2 safely down, 3 unsafely down. 2 answers with one error for all.
 */
import { api } from "../api.ts";
import { bool, int16, int32, int8, string } from "../primitive.ts";
import { array, type Infer, type InferInput, message, since, struct } from "../schema.ts";

const VERSIONS = { min: 0, max: 2, flexibleFrom: 0 };

const featureUpdateKey = struct({
  feature: string,
  maxVersionLevel: int16,
  allowDowngrade: since(0, bool, { until: 0 }),
  upgradeType: since(1, int8, { default: 1 }),
});

export const updateFeaturesRequest = message("UpdateFeaturesRequest", VERSIONS, {
  timeoutMs: since(0, int32, { default: 60000 }),
  featureUpdates: array(featureUpdateKey),
  validateOnly: since(1, bool),
});

const updatableFeatureResult = struct({
  feature: string,
  errorCode: int16,
  errorMessage: since(0, string, { nullableSince: 0 }),
});

export const updateFeaturesResponse = message("UpdateFeaturesResponse", VERSIONS, {
  throttleTimeMs: int32,
  errorCode: int16,
  errorMessage: since(0, string, { nullableSince: 0 }),
  results: since(0, array(updatableFeatureResult), { until: 1 }),
});

export type UpdateFeaturesRequest = Infer<typeof updateFeaturesRequest>;
export type UpdateFeaturesResponse = InferInput<typeof updateFeaturesResponse>;
export const updateFeaturesApi = api(57, updateFeaturesRequest, updateFeaturesResponse);
