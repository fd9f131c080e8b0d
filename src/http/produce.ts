/** POST records: parse, hand over, answer with an offset per record. */
import type { Gateway, RecordInput, Written } from "./port.ts";
import { recordsOfRequest } from "./body.ts";
import { badRequest, kafkaError, problemOf, problemResponse } from "./problem.ts";

function resultOf(written: Written): Record<string, unknown> {
  if (written.ok) {
    return { partition: written.partition, offset: written.offset, timestamp: written.timestampMs };
  }
  return { error: { ...kafkaError(written.error), message: written.message ?? written.error } };
}

/** All written 200, none written the first error as a problem, else 207 with a result for each. */
export function answerProduce(results: readonly Written[]): Response {
  const failures = results.filter((result) => !result.ok);
  const first = failures[0];
  if (first !== undefined && failures.length === results.length) {
    return problemResponse(
      problemOf(first, results.length > 1 ? { results: results.map(resultOf) } : {}),
    );
  }
  return Response.json({ results: results.map(resultOf) }, {
    status: first === undefined ? 200 : 207,
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

export async function produce(
  gateway: Gateway,
  request: Request,
  topic: string,
  partition: number | null,
): Promise<Response> {
  const query = new URL(request.url).searchParams;
  const records = await recordsOfRequest(request, query);
  const placed = partition === null
    ? records
    : records.map((record, i) => toPartition(record, partition, i));
  return answerProduce(await gateway.produce(topic, placed, request.signal));
}
