/** One Kafka API: its key, its versions and the schemas of both directions. */
import { assert } from "../lib/assert.ts";
import type { ByteReader } from "../lib/bytes.ts";
import { REQUEST_ELEMENTS_MAX } from "../lib/limits.ts";
import { ChunkWriter } from "./chunk_writer.ts";
import { FRAME_PREFIX_BYTES } from "./frame.ts";
import { endRequestHeader, type RequestHeader, writeResponseHeader } from "./header.ts";
import { decodePrefix, isFlexible, type Schema, type Versions } from "./schema.ts";

/** `Q` is a request as read, `S` a response as written: the broker's side of both. */
export interface Api<Q = unknown, S = unknown, QIn = unknown, SOut = unknown> extends Versions {
  readonly key: number;
  readonly name: string;
  /** The lowest version that ApiVersions lists; those below `min` are refused all the same. */
  readonly advertisedMin: number;
  readonly request: Schema<Q, QIn>;
  readonly response: Schema<SOut, S>;
}

export function api<Q, S, QIn, SOut>(
  key: number,
  request: Schema<Q, QIn>,
  response: Schema<SOut, S>,
  options: { readonly advertisedMin?: number } = {},
): Api<Q, S, QIn, SOut> {
  const { min, max, flexibleFrom } = request;
  const name = request.name.replace(/Request$/, "");
  assert(response.min === min && response.max === max, `${name}: versions differ`);
  const { advertisedMin = min } = options;
  return { key, name, min, max, flexibleFrom, advertisedMin, request, response };
}

export function supports(of: Api, version: number): boolean {
  return version >= of.min && version <= of.max;
}

/** Clients send ApiVersions before they know the broker: its answer never has a tagged header. */
const API_VERSIONS_KEY = 18;

export function hasTaggedResponseHeader(of: Api, version: number): boolean {
  return of.key !== API_VERSIONS_KEY && isFlexible(of, version);
}

/**
 * Reads the rest of a request frame after `readRequestHeader`. The version must be supported. Bytes left
 * over are ignored, as in Kafka: librdkafka 2.16 ends its Metadata request for all topics with three.
 * A request with more elements than REQUEST_ELEMENTS_MAX does not decode.
 */
export function readRequest<Q>(of: Api<Q>, header: RequestHeader, reader: ByteReader): Q {
  reader.limitElements(REQUEST_ELEMENTS_MAX);
  endRequestHeader(reader, isFlexible(of, header.apiVersion));
  return decodePrefix(of.request, header.apiVersion, reader);
}

/** A whole response frame. Large byte fields go uncopied: they must not change until sent. */
export function responseFrame<S>(
  of: Api<unknown, S>,
  version: number,
  correlationId: number,
  response: S,
): Uint8Array[] {
  const writer = new ChunkWriter();
  writer.i32(0);
  writeResponseHeader(writer, correlationId, hasTaggedResponseHeader(of, version));
  of.response.codec(version).write(writer, response);
  writer.patchI32(0, writer.total - FRAME_PREFIX_BYTES);
  return writer.chunks();
}
