/** The client's half of the Kafka wire protocol, over the broker's own schemas. */
import { ByteReader, ByteWriter } from "../../src/lib/bytes.ts";
import { type Api, hasTaggedResponseHeader } from "../../src/protocol/api.ts";
import { FRAME_PREFIX_BYTES } from "../../src/protocol/frame.ts";
import { readResponseHeader, writeRequestHeader } from "../../src/protocol/header.ts";
import { decode, isFlexible } from "../../src/protocol/schema.ts";

export interface Call {
  readonly version: number;
  readonly correlationId: number;
  readonly clientId?: string;
}

/** A whole frame, its length in front. */
export function requestFrame<Q, S, QIn, SOut>(
  api: Api<Q, S, QIn, SOut>,
  { version, correlationId, clientId = "test" }: Call,
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

/** Reads the answer to a call from a frame without its length. */
export function readResponse<Q, S, QIn, SOut>(
  api: Api<Q, S, QIn, SOut>,
  { version, correlationId }: Call,
  frame: Uint8Array,
): SOut {
  const reader = new ByteReader(frame);
  readResponseHeader(reader, correlationId, hasTaggedResponseHeader(api, version));
  return decode(api.response, version, reader);
}
