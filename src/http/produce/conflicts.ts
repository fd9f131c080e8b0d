/** Requests that are refused as a whole because of what the log or another request has done already. */
import type { Failure } from "../port.ts";
import { ProblemError, problemOf, RETRY_AFTER_S } from "../problem.ts";

/** Where a producer stands in a partition, as far as it is known there. */
export interface ProducerPlace {
  readonly producerEpoch: number;
  /** Null where no sequence would be the next one. */
  readonly expected: number | null;
}

export function keyInFlight(): ProblemError {
  return new ProblemError({
    status: 409,
    title: "Request in flight",
    detail: "Cannot produce: the first request with this Idempotency-Key is not answered yet",
    headers: { "retry-after": RETRY_AFTER_S },
  });
}

export function keyReused(): ProblemError {
  return new ProblemError({
    status: 422,
    title: "Idempotency-Key reused",
    detail: "Cannot produce: this Idempotency-Key came with other records before",
  });
}

export function preconditionFailed(asked: number, next: number): ProblemError {
  return new ProblemError({
    status: 412,
    title: "Precondition failed",
    detail: `Cannot append at ${asked}: the next offset is ${next}`,
    more: { next },
    headers: { "kafka-next-offset": String(next) },
  });
}

/** An order or epoch that the log refuses, with what it would take instead. */
export function producerRefused(
  failure: Failure,
  sequence: number,
  place: ProducerPlace | null,
): ProblemError {
  const expected = place?.expected ?? null;
  const isGap = failure.error === "OUT_OF_ORDER_SEQUENCE_NUMBER";
  const isStale = failure.error === "INVALID_PRODUCER_EPOCH";
  const more = {
    ...(isGap ? { receivedSeq: sequence } : {}),
    ...(isGap && expected !== null ? { expectedSeq: expected } : {}),
    ...(isStale && place !== null ? { producerEpoch: place.producerEpoch } : {}),
  };
  const problem = problemOf(failure, more);
  return new ProblemError({
    ...problem,
    headers: {
      ...problem.headers,
      ...(isGap ? { "producer-received-seq": String(sequence) } : {}),
      ...(isGap && expected !== null ? { "producer-expected-seq": String(expected) } : {}),
      ...(isStale && place !== null ? { "producer-epoch": String(place.producerEpoch) } : {}),
    },
  });
}
