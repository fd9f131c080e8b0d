/**
 * Request and response headers. Request header 0 belongs to a removed API; 1 and 2 differ only in
 * the tagged section, response headers 0 and 1 likewise.
 */
import { type ByteReader, type ByteWriter, DecodeError } from "../lib/bytes.ts";
import { string } from "./primitive.ts";
import { skipTags } from "./struct.ts";

export interface RequestHeader {
  readonly apiKey: number;
  readonly apiVersion: number;
  readonly correlationId: number;
  /** Null is legal on the wire and reads as "". */
  readonly clientId: string;
}

/** The client id keeps its classic form in every header version, so that any broker can read it. */
const clientId = string.compileNullable({ version: 0, flexible: false });

/**
 * Reads what all header versions share. It is enough to refuse a request; whoever knows the API
 * calls `endRequestHeader` before the body.
 */
export function readRequestHeader(reader: ByteReader): RequestHeader {
  return {
    apiKey: reader.i16(),
    apiVersion: reader.i16(),
    correlationId: reader.i32(),
    clientId: clientId.read(reader) ?? "",
  };
}

export function endRequestHeader(reader: ByteReader, flexible: boolean): void {
  if (flexible) skipTags(reader);
}

export function writeRequestHeader(
  writer: ByteWriter,
  header: RequestHeader,
  flexible: boolean,
): void {
  writer.i16(header.apiKey);
  writer.i16(header.apiVersion);
  writer.i32(header.correlationId);
  clientId.write(writer, header.clientId);
  if (flexible) writer.uvarint(0);
}

/** `tagged` is header version 1. */
export function writeResponseHeader(
  writer: ByteWriter,
  correlationId: number,
  tagged: boolean,
): void {
  writer.i32(correlationId);
  if (tagged) writer.uvarint(0);
}

/** Reads the header of the answer to a known request; answers come in order of the requests. */
export function readResponseHeader(
  reader: ByteReader,
  correlationId: number,
  tagged: boolean,
): void {
  const got = reader.i32();
  if (got !== correlationId) {
    throw new DecodeError(`Cannot read response: correlation id ${got}, not ${correlationId}`);
  }
  if (tagged) skipTags(reader);
}
