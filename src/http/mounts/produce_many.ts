/** Records for several topics at once; nothing binds them together. */
import {
  HTTP_JSON_BYTES_RATIO,
  HTTP_RECORDS_MAX,
  HTTP_TOPICS_PER_REQUEST_MAX,
} from "../../lib/limits.ts";
import { takePermits } from "../permit_wait.ts";
import type { Gateway, RecordInput, Written } from "../port.ts";
import type { ProduceServices } from "../produce/held_request.ts";
import { tooLarge } from "../read_body.ts";
import { bodyOf } from "./body_of.ts";

export interface TopicRecord {
  readonly topic: string;
  readonly record: RecordInput;
}

export async function writeAll(
  gateway: Gateway,
  records: readonly TopicRecord[],
): Promise<readonly Written[]> {
  if (records.length > HTTP_RECORDS_MAX) {
    throw tooLarge(`Cannot produce: more than ${HTTP_RECORDS_MAX} records`);
  }
  const byTopic = Map.groupBy(records.keys(), (i) => records[i]!.topic);
  if (byTopic.size > HTTP_TOPICS_PER_REQUEST_MAX) {
    throw tooLarge(`Cannot produce: more than ${HTTP_TOPICS_PER_REQUEST_MAX} topics`);
  }
  const results: Written[] = [];
  await Promise.all([...byTopic].map(async ([topic, places]) => {
    const written = await gateway.produce(topic, places.map((i) => records[i]!.record));
    for (const [at, i] of places.entries()) results[i] = written[at]!;
  }));
  return results;
}

/**
 * A body of records with the memory for it and for what becomes of it, which is given back at the end of the work.
 */
export async function withBody<T>(
  { rooms, producePermits, env }: ProduceServices,
  request: Request,
  work: (body: Uint8Array) => Promise<T>,
): Promise<T> {
  const body = await bodyOf(request, rooms);
  const bytes = body.bytes.length * HTTP_JSON_BYTES_RATIO;
  try {
    await takePermits(producePermits, bytes, env.clock, request);
    try {
      return await work(body.bytes);
    } finally {
      producePermits.release(bytes);
    }
  } finally {
    body.release();
  }
}
