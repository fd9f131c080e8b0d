/** What became of the records of a produce request: a result for each, or the first error. */
import type { Clock } from "../../env/clock.ts";
import { REQUEST_WINDOW_MS, REQUESTS_PER_PARTITION_MAX } from "../../lib/limits.ts";
import { answerOf, chunksOf } from "../answer.ts";
import type { Written } from "../port.ts";
import { kafkaError, type Problem, problemOf, problemText } from "../problem.ts";
import type { ProduceOptions } from "../write_port.ts";

export interface ProduceAnswer {
  readonly results: readonly Written[];
  /** Of each result, where they differ. */
  readonly topics?: readonly string[];
  readonly options: ProduceOptions;
  readonly request: Request;
  readonly clock: Clock;
  readonly release: () => void;
}

/** How long a key is remembered, in partitions that take many of them. */
const WINDOW = `seconds=${REQUEST_WINDOW_MS / 1000}, keys=${REQUESTS_PER_PARTITION_MAX}`;

export function resultOf(written: Written): Record<string, unknown> {
  if (!written.ok) {
    return { error: { ...kafkaError(written.error), message: written.message ?? written.error } };
  }
  const { partition, offset, timestampMs: timestamp, duplicate } = written;
  return { partition, offset, timestamp, ...(duplicate === true ? { duplicate } : {}) };
}

type Results = Pick<ProduceAnswer, "results" | "topics">;

function* resultsJson({ results, topics }: Results): Generator<string, void> {
  yield '"results":[';
  for (const [i, result] of results.entries()) {
    const topic = topics === undefined ? {} : { topic: topics[i] };
    yield `${i === 0 ? "" : ","}${JSON.stringify({ ...topic, ...resultOf(result) })}`;
  }
  yield "]";
}

function* resultsOnly(results: Results): Generator<string, void> {
  yield "{";
  yield* resultsJson(results);
  yield "}";
}

/** The members of the problem, and behind them a result for each record. */
function* problemWithResults(
  problem: Problem,
  results: Results,
): Generator<string, void> {
  yield `${problemText(problem).slice(0, -1)},`;
  yield* resultsJson(results);
  yield "}\n";
}

function headersOf({ results, options }: ProduceAnswer): Record<string, string> {
  if (options.idempotencyKey === undefined) return {};
  const isReplay = results.every((result) => result.ok && result.duplicate === true);
  return {
    "idempotency-window": WINDOW,
    ...(isReplay ? { "idempotent-replayed": "true" } : {}),
  };
}

/** All written 200, none written the first error as a problem, else 207 with a result for each. */
export function answerProduce(answer: ProduceAnswer): Response {
  const { results } = answer;
  const first = results.find((result) => !result.ok);
  const isNone = first !== undefined && results.every((result) => !result.ok);
  const problem = isNone ? problemOf(first) : null;
  const text = problem === null
    ? resultsOnly(answer)
    : results.length > 1
    ? problemWithResults(problem, answer)
    : [problemText(problem)];
  const type = problem === null ? "application/json" : "application/problem+json";
  const { request, clock, release } = answer;
  return answerOf(chunksOf(text), {
    request,
    clock,
    status: problem?.status ?? (first === undefined ? 200 : 207),
    headers: { "content-type": type, ...headersOf(answer), ...problem?.headers },
    release,
  });
}
