/** The client's half of the protocol: request frames out, response frames in. */
import { ByteReader, ByteWriter } from "../lib/bytes.ts";
import { type Api, hasTaggedResponseHeader } from "./api.ts";
import { FRAME_PREFIX_BYTES } from "./frame.ts";
import { readResponseHeader, writeRequestHeader } from "./header.ts";
import { decode, isFlexible } from "./schema.ts";

export interface Call {
  readonly version: number;
  readonly correlationId: number;
  /** What the broker's logs and group listings show of the client. */
  readonly clientId: string;
}

/** A whole frame, its length in front. */
export function requestFrame<Q, S, QIn, SOut>(
  api: Api<Q, S, QIn, SOut>,
  { version, correlationId, clientId }: Call,
  request: QIn,
): Uint8Array {
  const writer = new ByteWriter();
  writer.i32(0);
  const header = { apiKey: api.key, apiVersion: version, correlationId, clientId };
  writeRequestHeader(writer, header, isFlexible(api, version));
  api.request.codec(version).write(writer, request);
  writer.patchI32(0, writer.length - FRAME_PREFIX_BYTES);
  return writer.view();
}

/** Reads the answer to a call from a frame without its length. Throws DecodeError. */
export function readResponse<Q, S, QIn, SOut>(
  api: Api<Q, S, QIn, SOut>,
  { version, correlationId }: Omit<Call, "clientId">,
  frame: Uint8Array,
): SOut {
  const reader = new ByteReader(frame);
  readResponseHeader(reader, correlationId, hasTaggedResponseHeader(api, version));
  return decode(api.response, version, reader);
}
