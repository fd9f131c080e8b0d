/** Errors as problem+json (RFC 9457): one status per Kafka error, one body shape for all. */
import { ERROR_CODES, type ErrorName, isRetriable } from "../protocol/error_code.ts";
import type { Failure } from "./port.ts";

export interface Problem {
  readonly status: number;
  readonly title: string;
  readonly detail: string;
  /** Members beyond the standard ones. */
  readonly more?: Readonly<Record<string, unknown>>;
  readonly headers?: Readonly<Record<string, string>>;
}

/** Thrown by parsers of requests; the app turns it into an answer. */
export class ProblemError extends Error {
  override readonly name = "ProblemError";
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.detail);
    this.problem = problem;
  }
}

/** Statuses that differ from the rule "retriable is 503, the rest 400". */
const STATUS: Partial<Record<ErrorName, number>> = {
  UNKNOWN_SERVER_ERROR: 500,
  UNKNOWN_TOPIC_OR_PARTITION: 404,
  UNKNOWN_TOPIC_ID: 404,
  GROUP_ID_NOT_FOUND: 404,
  NON_EMPTY_GROUP: 409,
  INCONSISTENT_GROUP_PROTOCOL: 409,
  RESOURCE_NOT_FOUND: 404,
  TOPIC_ALREADY_EXISTS: 409,
  OUT_OF_ORDER_SEQUENCE_NUMBER: 409,
  INVALID_PRODUCER_EPOCH: 409,
  PRODUCER_FENCED: 409,
  FENCED_INSTANCE_ID: 409,
  FENCED_MEMBER_EPOCH: 409,
  ILLEGAL_GENERATION: 409,
  UNKNOWN_MEMBER_ID: 409,
  REBALANCE_IN_PROGRESS: 409,
  SASL_AUTHENTICATION_FAILED: 401,
  /** Clients send no batches here: it is what is stored that is damaged. */
  CORRUPT_MESSAGE: 500,
  INVALID_RECORD: 422,
  MESSAGE_TOO_LARGE: 413,
  RECORD_LIST_TOO_LARGE: 413,
  OFFSET_OUT_OF_RANGE: 416,
  TOPIC_AUTHORIZATION_FAILED: 403,
  CLUSTER_AUTHORIZATION_FAILED: 403,
  GROUP_AUTHORIZATION_FAILED: 403,
  TRANSACTIONAL_ID_AUTHORIZATION_FAILED: 403,
  DELEGATION_TOKEN_AUTHORIZATION_FAILED: 403,
  POLICY_VIOLATION: 403,
  REQUEST_TIMED_OUT: 504,
  THROTTLING_QUOTA_EXCEEDED: 429,
  UNSUPPORTED_VERSION: 501,
  KAFKA_STORAGE_ERROR: 503,
};

export const RETRY_AFTER_S = "1";

export function statusOf(error: ErrorName): number {
  return STATUS[error] ?? (isRetriable(error) ? 503 : 400);
}

/** What every route says about an error, inside problems and inside mixed results. */
export function kafkaError(error: ErrorName): Record<string, unknown> {
  return { code: ERROR_CODES[error], name: error, retriable: isRetriable(error) };
}

function titleOf(error: ErrorName): string {
  const words = error.toLowerCase().replaceAll("_", " ");
  return words[0]!.toUpperCase() + words.slice(1);
}

export function problemOf(failure: Failure, more: Readonly<Record<string, unknown>> = {}): Problem {
  const status = statusOf(failure.error);
  const mayComeBack = isRetriable(failure.error) && (status > 500 || status === 429);
  return {
    status,
    title: titleOf(failure.error),
    detail: failure.message ?? titleOf(failure.error),
    more: { kafka: kafkaError(failure.error), ...more },
    ...(mayComeBack ? { headers: { "retry-after": RETRY_AFTER_S } } : {}),
  };
}

export function badRequest(detail: string, more?: Readonly<Record<string, unknown>>): ProblemError {
  return new ProblemError({
    status: 400,
    title: "Bad request",
    detail,
    ...(more === undefined ? {} : { more }),
  });
}

export function problemText({ title, status, detail, more }: Problem): string {
  return JSON.stringify({ type: "about:blank", title, status, detail, ...more });
}

export function problemResponse(problem: Problem): Response {
  return new Response(`${problemText(problem)}\n`, {
    status: problem.status,
    headers: { "content-type": "application/problem+json", ...problem.headers },
  });
}
