/** The client's half of the Kafka wire protocol, over the broker's own schemas. Pure. */
import { ByteReader, ByteWriter } from "../../lib/bytes.ts";
import { type Api, hasTaggedResponseHeader } from "../../protocol/api.ts";
import { FRAME_PREFIX_BYTES } from "../../protocol/frame.ts";
import { readResponseHeader, writeRequestHeader } from "../../protocol/header.ts";
import { decode, isFlexible } from "../../protocol/schema.ts";

/** What the broker's logs and group listings show of us. */
export const CLIENT_ID = "skerry-cli";

export interface Call {
  readonly version: number;
  readonly correlationId: number;
}

/** A whole frame, its length in front. */
export function requestFrame<Q, S, QIn, SOut>(
  api: Api<Q, S, QIn, SOut>,
  { version, correlationId }: Call,
  request: QIn,
): Uint8Array {
  const writer = new ByteWriter();
  writer.i32(0);
  const header = { apiKey: api.key, apiVersion: version, correlationId, clientId: CLIENT_ID };
  writeRequestHeader(writer, header, isFlexible(api, version));
  api.request.codec(version).write(writer, request);
  writer.patchI32(0, writer.length - FRAME_PREFIX_BYTES);
  return writer.view();
}

/** Reads the answer to a call from a frame without its length. Throws DecodeError. */
export function readResponse<Q, S, QIn, SOut>(
  api: Api<Q, S, QIn, SOut>,
  { version, correlationId }: Call,
  frame: Uint8Array,
): SOut {
  const reader = new ByteReader(frame);
  readResponseHeader(reader, correlationId, hasTaggedResponseHeader(api, version));
  return decode(api.response, version, reader);
}
