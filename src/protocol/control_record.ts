/**
 * End-of-transaction markers: control batches of one record, uncompressed (section "Control Batches" of
 * Kafka's message format). Key: i16 version 0 · i16 type (0 abort, 1 commit). Value: i16 version 0 ·
 * i32 coordinator epoch. Other types and later fields are passed over, as Kafka's readers do.
 */
import type { Codecs } from "../env/codecs.ts";
import { ByteReader, ByteWriter, DecodeError } from "../lib/bytes.ts";
import { BATCH_HEADER_BYTES, buildBatch } from "./record_batch.ts";

const VERSION = 0;
const ABORT = 0;
const COMMIT = 1;

export interface EndMarker {
  readonly commit: boolean;
  /** The leader epoch of the coordinator that ended the transaction. */
  readonly coordinatorEpoch: number;
}

export interface MarkerInput extends EndMarker {
  readonly producerId: number;
  readonly producerEpoch: number;
  readonly timestampMs: number;
}

export function buildMarker(marker: MarkerInput, codecs: Codecs): Uint8Array {
  const { producerId, producerEpoch, timestampMs } = marker;
  const key = new ByteWriter(4);
  key.i16(VERSION);
  key.i16(marker.commit ? COMMIT : ABORT);
  const value = new ByteWriter(6);
  value.i16(VERSION);
  value.i32(marker.coordinatorEpoch);
  return buildBatch({
    records: [{ key: key.view(), value: value.view(), headers: [], timestampMs }],
    codec: null,
    codecs,
    producerId,
    producerEpoch,
    transactional: true,
    control: true,
  });
}

function takeSized(reader: ByteReader): Uint8Array {
  return reader.take(Math.max(0, reader.varint()));
}

function readFirst(reader: ByteReader): EndMarker | null {
  reader.varint(); // length
  reader.skip(1); // record attributes: none are defined
  reader.varlong(); // timestamp delta
  reader.varint(); // offset delta
  const key = new ByteReader(takeSized(reader));
  const value = new ByteReader(takeSized(reader));
  key.skip(2);
  const type = key.i16();
  if (type !== ABORT && type !== COMMIT) return null;
  value.skip(2);
  return { commit: type === COMMIT, coordinatorEpoch: value.i32() };
}

/** The marker in a control batch; null when it is of another type or does not parse. */
export function readMarker(batch: Uint8Array): EndMarker | null {
  try {
    return readFirst(new ByteReader(batch.subarray(BATCH_HEADER_BYTES)));
  } catch (error) {
    if (error instanceof DecodeError) return null;
    throw error;
  }
}
