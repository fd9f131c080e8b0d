/** Sends records of one topic: several calls in one request, one Idempotency-Key for all attempts of it. */
import { isObject, type Problem, recordError, SkerryError, wrongAnswer } from "./errors.ts";
import type { Answer, Http } from "./http.ts";
import { retrying } from "./retry.ts";

export interface ProducedRecord {
  readonly partition: number;
  readonly offset: number;
  readonly timestamp: number;
  /** An attempt whose answer was lost had stored it. */
  readonly duplicate?: true;
}

export type Outcome = ProducedRecord | SkerryError;

export interface SendOptions {
  readonly deliveryTimeoutMs: number;
  readonly key?: string;
}

const encoder = new TextEncoder();

function outcomeOf(result: unknown): Outcome {
  if (!isObject(result)) throw wrongAnswer("a result is no object");
  const { error, offset } = result;
  if (isObject(error)) return recordError(error);
  if (typeof offset !== "number") throw wrongAnswer("a result without an offset");
  return result as unknown as ProducedRecord;
}

/** Null where the answer speaks of the request as a whole. */
function outcomesOf({ results }: Problem, count: number): readonly Outcome[] | null {
  return Array.isArray(results) && results.length === count ? results.map(outcomeOf) : null;
}

/** What is not stored for now is thrown, to be tried again; the results are where a problem has them, too. */
function storedBy({ json }: Answer, count: number): readonly Outcome[] {
  const outcomes = outcomesOf(json, count);
  if (outcomes === null) throw wrongAnswer("results are missing");
  if (outcomes.some((outcome) => outcome instanceof SkerryError && outcome.retriable)) {
    const message = "Cannot store all records now";
    throw new SkerryError(message, { code: "partly-stored", retriable: true, problem: json });
  }
  return outcomes;
}

/** A string of structured fields (RFC 9651). */
function quoted(key: string): string {
  return `"${key.replace(/["\\]/g, "\\$&")}"`;
}

/** The lines are of records; an outcome for each. Throws only what `headers` of the client throw. */
export async function send(
  http: Http,
  path: string,
  lines: readonly string[],
  { deliveryTimeoutMs, key = http.host.token() }: SendOptions,
): Promise<readonly Outcome[]> {
  const ask = {
    method: "POST",
    path,
    headers: { "content-type": "application/x-ndjson", "idempotency-key": quoted(key) },
    body: encoder.encode(lines.join("")),
  };
  try {
    return await retrying(
      http.host,
      { forMs: deliveryTimeoutMs, isRepeatable: true },
      async () => storedBy(await http.request(ask), lines.length),
    );
  } catch (error) {
    if (!(error instanceof SkerryError)) throw error;
    return outcomesOf(error.problem, lines.length) ?? lines.map(() => error);
  }
}
