/** POST records: parse, hand over, answer with an offset per record. */
import type { Clock } from "../env/clock.ts";
import type { Semaphore } from "../lib/semaphore.ts";
import { answerOf, chunksOf } from "./answer.ts";
import { producedBytes, recordsOfBody } from "./body.ts";
import { takePermits } from "./permit_wait.ts";
import type { Gateway, RecordInput, Written } from "./port.ts";
import { badRequest, kafkaError, type Problem, problemOf, problemText } from "./problem.ts";
import { queryOf } from "./query.ts";
import { type BodyRooms, type HeldBody, readBody } from "./read_body.ts";

export interface ProduceServices {
  readonly gateway: Gateway;
  readonly clock: Clock;
  readonly rooms: BodyRooms;
  /** Of the whole node, shared with the Kafka side. */
  readonly producePermits: Semaphore;
}

function resultOf(written: Written): Record<string, unknown> {
  if (written.ok) {
    return { partition: written.partition, offset: written.offset, timestamp: written.timestampMs };
  }
  return { error: { ...kafkaError(written.error), message: written.message ?? written.error } };
}

function* resultsJson(results: readonly Written[]): Generator<string, void> {
  yield '"results":[';
  for (const [i, result] of results.entries()) {
    yield `${i === 0 ? "" : ","}${JSON.stringify(resultOf(result))}`;
  }
  yield "]";
}

function* resultsOnly(results: readonly Written[]): Generator<string, void> {
  yield "{";
  yield* resultsJson(results);
  yield "}";
}

/** The members of the problem, and behind them a result for each record. */
function* problemWithResults(
  problem: Problem,
  results: readonly Written[],
): Generator<string, void> {
  yield `${problemText(problem).slice(0, -1)},`;
  yield* resultsJson(results);
  yield "}\n";
}

/** All written 200, none written the first error as a problem, else 207 with a result for each. */
export function answerProduce(
  results: readonly Written[],
  request: Request,
  clock: Clock,
  release: () => void,
): Response {
  const failures = results.filter((result) => !result.ok);
  const first = failures[0];
  const isNone = first !== undefined && failures.length === results.length;
  if (!isNone) {
    return answerOf(chunksOf(resultsOnly(results)), {
      request,
      clock,
      status: first === undefined ? 200 : 207,
      headers: { "content-type": "application/json" },
      release,
    });
  }
  const problem = problemOf(first);
  const text = results.length > 1 ? problemWithResults(problem, results) : [problemText(problem)];
  return answerOf(chunksOf(text), {
    request,
    clock,
    status: problem.status,
    headers: { "content-type": "application/problem+json", ...problem.headers },
    release,
  });
}

function toPartition(record: RecordInput, partition: number, i: number): RecordInput {
  if (record.partition !== null && record.partition !== partition) {
    throw badRequest(
      `Cannot produce record ${i}: it names partition ${record.partition}, the path names ${partition}`,
    );
  }
  return { ...record, partition };
}

/** Permits come before the parser: what it makes of a body takes more than the body. */
async function write(
  { gateway, clock, producePermits }: ProduceServices,
  request: Request,
  topic: string,
  partition: number | null,
  body: HeldBody,
): Promise<readonly Written[]> {
  const bytes = producedBytes(request, body.bytes.length);
  await takePermits(producePermits, bytes, clock, request);
  try {
    const records = recordsOfBody(request, queryOf(request), body.bytes);
    const placed = partition === null
      ? records
      : records.map((record, i) => toPartition(record, partition, i));
    return await gateway.produce(topic, placed);
  } finally {
    producePermits.release(bytes);
  }
}

export async function produce(
  services: ProduceServices,
  request: Request,
  topic: string,
  partition: number | null,
): Promise<Response> {
  const body = await readBody(request, services.rooms);
  let results: readonly Written[];
  try {
    results = await write(services, request, topic, partition, body);
  } catch (error) {
    body.release();
    throw error;
  }
  // The room of the body stands for the answer too: a record more is a result more.
  return answerProduce(results, request, services.clock, () => body.release());
}
