/** The one error of the client: what the broker said (RFC 9457), or that nobody said anything. */

export interface KafkaError {
  readonly code: number;
  readonly name: string;
  readonly retriable: boolean;
}

/** Members of a problem; the broker adds some for each kind. */
export type Problem = Readonly<Record<string, unknown>>;

interface ErrorDetails {
  readonly code: string;
  readonly status?: number;
  readonly problem?: Problem;
  readonly retriable?: boolean;
  readonly sideEffects?: "none" | "unknown";
  readonly retryAfterMs?: number;
  readonly cause?: unknown;
}

export class SkerryError extends Error {
  override readonly name = "SkerryError";
  /**
   * Kafka's name of the error where there is one, else `http-404` and the like; `network`, `timeout` or `protocol`
   * where no answer came or one that is none; `buffer-full`; of consumers `gap`, `problem` and why streams end.
   */
  readonly code: string;
  /** Null without an answer, and for a single record of an answer. */
  readonly status: number | null;
  readonly problem: Problem;
  readonly kafka: KafkaError | null;
  /** Trying again may help. Where the client tries again by itself, it has done so. */
  readonly retriable: boolean;
  /** `none`: what was asked for has not happened. `unknown`: it may have. */
  sideEffects: "none" | "unknown";
  /** How long the broker asked to wait. */
  readonly retryAfterMs: number;

  constructor(message: string, details: ErrorDetails) {
    super(message, { cause: details.cause });
    const { problem = {} } = details;
    this.problem = problem;
    this.kafka = isKafkaError(problem["kafka"]) ? problem["kafka"] : null;
    this.code = details.code;
    this.status = details.status ?? null;
    this.retriable = details.retriable ?? false;
    this.sideEffects = details.sideEffects ?? "none";
    this.retryAfterMs = details.retryAfterMs ?? 0;
  }
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isKafkaError(value: unknown): value is KafkaError {
  return isObject(value) && typeof value["name"] === "string";
}

function textOf(value: unknown): string | null {
  return typeof value === "string" ? value : null;
}

/** A Kafka error that is retriable by name, but over HTTP means that there is no such thing. */
const UNKNOWN = /^UNKNOWN_TOPIC/;

/** Of one record among others. */
export function recordError(error: Problem): SkerryError {
  const kafka = isKafkaError(error) ? error : null;
  const code = kafka?.name ?? "protocol";
  return new SkerryError(textOf(error["message"]) ?? code, {
    code,
    problem: { ...error, kafka },
    retriable: kafka?.retriable === true && !UNKNOWN.test(code),
  });
}

const RETRIABLE = [408, 425, 429, 502, 503, 504];
/** From here on proxies have their own for broken connections. */
const PROXY_ERRORS = 520;
const RETRY_AFTER_MS_MAX = 60_000;

function parsed(text: string): Problem {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) ? value : {};
  } catch {
    return {};
  }
}

/** Of an answer that is no success. */
export function answerError(status: number, headers: Headers, text: string): SkerryError {
  const problem = parsed(text);
  const retryAfterS = Number(headers.get("retry-after") ?? Number.NaN);
  const isConflictForNow = status === 409 && retryAfterS >= 0;
  const said = problem["sideEffects"];
  const kafka = problem["kafka"];
  const detail = textOf(problem["detail"]) ?? textOf(problem["title"]) ?? "No reason given";
  return new SkerryError(`${detail} (${status})`, {
    code: isKafkaError(kafka) ? kafka.name : `http-${status}`,
    status,
    problem,
    retriable: RETRIABLE.includes(status) || status >= PROXY_ERRORS || isConflictForNow,
    sideEffects: said === "none" || said === "unknown"
      ? said
      : status < 500 && status !== 408
      ? "none"
      : "unknown",
    retryAfterMs: retryAfterS >= 0 ? Math.min(retryAfterS * 1000, RETRY_AFTER_MS_MAX) : 0,
  });
}

export function noAnswer(code: "network" | "timeout", cause?: unknown): SkerryError {
  const why = code === "timeout" ? "nothing came in time" : String(cause);
  return new SkerryError(`No answer from the broker: ${why}`, {
    code,
    retriable: true,
    sideEffects: "unknown",
    cause,
  });
}

/** An answer that the broker does not give: something else answers, or it was cut. */
export function wrongAnswer(what: string, retriable = false): SkerryError {
  const message = `Cannot understand the answer: ${what}`;
  return new SkerryError(message, { code: "protocol", retriable, sideEffects: "unknown" });
}
