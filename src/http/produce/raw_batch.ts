/**
 * A record batch as Kafka's Produce carries it: checked as there, stored as it is. It brings its own producer id
 * and sequence, if any.
 */
import { BATCH_HEADER_BYTES, readBatchHeader } from "../../protocol/record_batch.ts";
import { DecodeError } from "../../lib/bytes.ts";
import type { Failure } from "../port.ts";
import { badRequest, problemOf, problemResponse } from "../problem.ts";
import type { ProduceOptions } from "../write_port.ts";
import { mediaType } from "../media_type.ts";
import { HeldRequest, type ProduceServices, type Target } from "./held_request.ts";
import { optionsOf } from "./options.ts";

export const BATCH_TYPE = "application/vnd.kafka.batch";

export function isRawBatch(request: Request): boolean {
  return mediaType(request) === BATCH_TYPE;
}

function isNumbered(batch: Uint8Array): boolean {
  if (batch.length < BATCH_HEADER_BYTES) return false;
  try {
    return readBatchHeader(batch).producerId >= 0;
  } catch (error) {
    if (error instanceof DecodeError) return false;
    throw error;
  }
}

function check({ idempotencyKey, producer, nextOffset }: ProduceOptions, batch: Uint8Array): void {
  if (idempotencyKey !== undefined || producer !== undefined) {
    throw badRequest(
      "Cannot produce a batch with Idempotency-Key or Producer-Id: it brings its own",
    );
  }
  if (nextOffset !== undefined && isNumbered(batch)) {
    throw badRequest("Cannot use If-Match with a batch that has a producer id");
  }
}

/** Here it is the client's batch that is damaged, not what is stored. */
function refusal(failure: Failure): Response {
  const problem = problemOf(failure);
  return problemResponse(
    failure.error === "CORRUPT_MESSAGE" ? { ...problem, status: 400 } : problem,
  );
}

export async function produceRawBatch(
  services: ProduceServices,
  request: Request,
  { topic, partition }: Target,
  isUnheard: boolean,
): Promise<Response> {
  if (partition === null) throw badRequest("Cannot produce a batch: the path names no partition");
  const options = optionsOf(request, partition);
  if (isUnheard) throw badRequest("Cannot use acks=0 with a batch");
  const held = await HeldRequest.read(services, request);
  try {
    check(options, held.body.bytes);
    const written = await services.gateway.produceBatch(
      topic,
      partition,
      held.body.bytes,
      options,
    );
    if (!written.ok) return refusal(written);
    const { baseOffset, lastOffset, timestampMs: timestamp, duplicate } = written;
    return Response.json({
      partition,
      baseOffset,
      lastOffset,
      timestamp,
      ...(duplicate ? { duplicate } : {}),
    });
  } finally {
    held.release();
  }
}
