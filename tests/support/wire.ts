/** Frames of a client with a name that says where it comes from. */
import type { Api } from "../../src/protocol/api.ts";
import { type Call, requestFrame as frameOf } from "../../src/protocol/client_frame.ts";

export { readResponse } from "../../src/protocol/client_frame.ts";

export function requestFrame<Q, S, QIn, SOut>(
  api: Api<Q, S, QIn, SOut>,
  call: Omit<Call, "clientId"> & Partial<Call>,
  request: QIn,
): Uint8Array {
  return frameOf(api, { clientId: "test", ...call }, request);
}
