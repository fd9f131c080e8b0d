/**
 * ApiVersions (key 18), versions 0-4.
 * Behaviour: lists what this broker really serves, and nothing else. A bad software name is answered
 * with INVALID_REQUEST and the connection stays. Versions above 4 are answered by the dispatcher.
 * Version notes: 3 client software (KIP-511), features (KIP-584); none is supported, and the epoch
 * of the finalized ones is 0, not -1, because clients take features only from a growing epoch.
 */
import { errorCode } from "../../protocol/error_code.ts";
import {
  apiVersionsApi,
  type ApiVersionsRequest,
  type ApiVersionsResponse,
} from "../../protocol/message/18_api_versions.ts";
import type { Handler } from "../handler.ts";

const SOFTWARE_SINCE = 3;
const SOFTWARE = /^[a-zA-Z0-9](?:[a-zA-Z0-9.-]*[a-zA-Z0-9])?$/;

interface Listed {
  readonly key: number;
  readonly advertisedMin: number;
  readonly max: number;
}

export function apiVersionsHandler(
  routes: () => readonly Listed[],
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
      const apiKeys = routes().toSorted((a, b) => a.key - b.key).map((route) => ({
        apiKey: route.key,
        minVersion: route.advertisedMin,
        maxVersion: route.max,
      }));
      return Promise.resolve({ errorCode: errorCode("NONE"), apiKeys, finalizedFeaturesEpoch: 0 });
    },
  };
}
