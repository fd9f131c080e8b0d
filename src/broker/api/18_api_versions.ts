/**
 * ApiVersions (key 18), versions 0-4.
 * Behaviour: lists what this broker really serves, and nothing else. A bad software name is answered
 * with INVALID_REQUEST and the connection stays. Versions above 4 are answered by the dispatcher.
 * Features are shown while the APIs behind them are served; level 0 is off and not listed as finalized. The
 * epoch is 0 while no level was ever set, not -1, because clients take features only from a growing epoch.
 * Version notes: 3 client software (KIP-511), features (KIP-584) · 4 features that may be off: older clients
 * cannot read a minimum of 0, and are not shown them as supported.
 */
import { errorCode } from "../../protocol/error_code.ts";
import {
  apiVersionsApi,
  type ApiVersionsRequest,
  type ApiVersionsResponse,
} from "../../protocol/message/18_api_versions.ts";
import { FEATURES, type FinalizedFeatures } from "../features.ts";
import type { Handler } from "../handler.ts";

const SOFTWARE_SINCE = 3;
const LEVEL_0_SINCE = 4;
const SOFTWARE = /^[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?$/;

interface Listed {
  readonly key: number;
  readonly advertisedMin: number;
  readonly max: number;
}

function featureFields(
  listed: readonly Listed[],
  finalized: FinalizedFeatures,
  version: number,
) {
  const shown = FEATURES.filter(({ apiKey }) => listed.some(({ key }) => key === apiKey));
  const levels = shown.map(({ name }) => ({ name, level: finalized.levelOf(name) }));
  return {
    supportedFeatures: shown.filter(({ min }) => min > 0 || version >= LEVEL_0_SINCE)
      .map(({ name, min, max }) => ({ name, minVersion: min, maxVersion: max })),
    finalizedFeaturesEpoch: finalized.epoch,
    finalizedFeatures: levels.filter(({ level }) => level > 0)
      .map(({ name, level }) => ({ name, minVersionLevel: level, maxVersionLevel: level })),
  };
}

export function apiVersionsHandler(
  routes: () => readonly Listed[],
  finalized: FinalizedFeatures,
): Handler<ApiVersionsRequest, ApiVersionsResponse> {
  return {
    api: apiVersionsApi,
    min: 0,
    max: 4,
    handle(request, { version }) {
      const named = SOFTWARE.test(request.clientSoftwareName) &&
        SOFTWARE.test(request.clientSoftwareVersion);
      if (version >= SOFTWARE_SINCE && !named) {
        return Promise.resolve({ errorCode: errorCode("INVALID_REQUEST"), apiKeys: [] });
      }
      const listed = routes();
      const apiKeys = listed.toSorted((a, b) => a.key - b.key).map((route) => ({
        apiKey: route.key,
        minVersion: route.advertisedMin,
        maxVersion: route.max,
      }));
      const features = featureFields(listed, finalized, version);
      return Promise.resolve({ errorCode: errorCode("NONE"), apiKeys, ...features });
    },
  };
}
