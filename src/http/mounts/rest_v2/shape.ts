/** Answers of the REST proxies' second version: their media types, and errors as a code with a sentence. */
import { type Problem, ProblemError } from "../../problem.ts";
import type { Format } from "../instances/record.ts";

const V2_JSON = "application/vnd.kafka.v2+json";

export function typeOf(format: Format): string {
  return `application/vnd.kafka.${format}.v2+json`;
}

/** An error with a code of the proxies' own; the first three digits of most are the status. */
export function restError(
  errorCode: number,
  detail: string,
  status = Math.floor(errorCode / 100),
): ProblemError {
  return new ProblemError({ status, title: "Error", detail, more: { errorCode } });
}

const BY_KAFKA_NAME: Readonly<Record<string, number>> = {
  UNKNOWN_TOPIC_OR_PARTITION: 40_401,
  UNKNOWN_TOPIC_ID: 40_401,
  LEADER_NOT_AVAILABLE: 40_404,
  GROUP_ID_NOT_FOUND: 40_405,
  TOPIC_AUTHORIZATION_FAILED: 40_301,
  GROUP_AUTHORIZATION_FAILED: 40_301,
  CLUSTER_AUTHORIZATION_FAILED: 40_301,
  OFFSET_OUT_OF_RANGE: 40_002,
};
const KAFKA_REFUSES = 40_002;
const KAFKA_ERROR = 50_002;
const RETRIABLE_ERROR = 50_003;

function kafkaNameIn({ more }: Problem): string | null {
  const kafka = more?.["kafka"];
  if (typeof kafka !== "object" || kafka === null || !("name" in kafka)) return null;
  return typeof kafka.name === "string" ? kafka.name : null;
}

export function codeOf(problem: Problem): number {
  const own = problem.more?.["errorCode"];
  if (typeof own === "number") return own;
  const name = kafkaNameIn(problem);
  const known = name === null ? undefined : BY_KAFKA_NAME[name];
  if (known !== undefined) return known;
  if (problem.status === 503 || problem.status === 504) return RETRIABLE_ERROR;
  if (problem.status >= 500) return KAFKA_ERROR;
  // What is wrong with a request has its status for a code, as their web servers have it.
  return name === null ? problem.status : KAFKA_REFUSES;
}

export function v2Error(problem: Problem): Response {
  const { status, detail, headers } = problem;
  return new Response(JSON.stringify({ error_code: codeOf(problem), message: detail }), {
    status,
    headers: { ...headers, "content-type": V2_JSON },
  });
}

export function v2Json(value: unknown, status = 200): Response {
  return new Response(JSON.stringify(value), { status, headers: { "content-type": V2_JSON } });
}

export function noContent(): Response {
  return new Response(null, { status: 204 });
}
