/**
 * ApiVersions, key 18, versions 0-4, flexible from 3.
 * 3 names the client software (KIP-511) and shows features (KIP-584); below 4 a supported feature
 * may not have minimum 0. A version that we do not know is answered in the layout of version 0 with
 * UNSUPPORTED_VERSION. The response header is never tagged, see `hasTaggedResponseHeader`.
 */
import { api } from "../api.ts";
import { bool, int16, int32, int64, string } from "../primitive.ts";
import { array, type Infer, type InferInput, message, since, struct } from "../schema.ts";

const VERSIONS = { min: 0, max: 4, flexibleFrom: 3 };

export const apiVersionsRequest = message("ApiVersionsRequest", VERSIONS, {
  clientSoftwareName: since(3, string),
  clientSoftwareVersion: since(3, string),
});

const apiVersion = struct({
  apiKey: int16,
  minVersion: int16,
  maxVersion: int16,
});

const supportedFeatureKey = struct({
  name: string,
  minVersion: int16,
  maxVersion: int16,
});

const finalizedFeatureKey = struct({
  name: string,
  maxVersionLevel: int16,
  minVersionLevel: int16,
});

export const apiVersionsResponse = message("ApiVersionsResponse", VERSIONS, {
  errorCode: int16,
  apiKeys: array(apiVersion),
  throttleTimeMs: since(1, int32),
  supportedFeatures: since(3, array(supportedFeatureKey), { tag: 0 }),
  finalizedFeaturesEpoch: since(3, int64, { default: -1, tag: 1 }),
  finalizedFeatures: since(3, array(finalizedFeatureKey), { tag: 2 }),
  zkMigrationReady: since(3, bool, { tag: 3 }),
});

export type ApiVersionsRequest = Infer<typeof apiVersionsRequest>;
export type ApiVersionsResponse = InferInput<typeof apiVersionsResponse>;
export const apiVersionsApi = api(18, apiVersionsRequest, apiVersionsResponse);
