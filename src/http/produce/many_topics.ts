/** POST /v1/records: records that name their topics. Each stands for itself; nothing binds them together. */
import * as v from "valibot";
import { HTTP_TOPICS_PER_REQUEST_MAX } from "../../lib/limits.ts";
import { elementsOfBody } from "../body.ts";
import { recordForTopic } from "../json_record.ts";
import type { Gateway, RecordInput, Written } from "../port.ts";
import { badRequest, ProblemError } from "../problem.ts";
import { tooLarge } from "../read_body.ts";
import { answerProduce } from "./answer_produce.ts";
import { HeldRequest, type ProduceServices } from "./held_request.ts";
import { isPlain, optionsOf } from "./options.ts";
import { acks } from "./parameters.ts";
import { accepted, inBackground } from "./produce.ts";

export const manyQuery = v.strictObject({ acks });

interface TopicRecord {
  readonly topic: string;
  readonly record: RecordInput;
}

function recordsOf(request: Request, body: Uint8Array): readonly TopicRecord[] {
  const elements = elementsOfBody(request, body, false);
  if (elements === null) {
    throw new ProblemError({
      status: 415,
      title: "Unsupported media type",
      detail: "Cannot read the body: records that name their topics are JSON or NDJSON",
    });
  }
  if (elements.length === 0) throw badRequest("Cannot produce: the body holds no record");
  return elements.map(({ json, where }) => recordForTopic(json, where));
}

async function produceAll(
  gateway: Gateway,
  records: readonly TopicRecord[],
): Promise<readonly Written[]> {
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

export async function produceMany(
  services: ProduceServices,
  request: Request,
  query: v.InferOutput<typeof manyQuery>,
): Promise<Response> {
  const { gateway, env } = services;
  const options = optionsOf(request, null);
  if (!isPlain(options)) {
    throw badRequest("Cannot use Idempotency-Key or Producer-Id here: they are for one topic");
  }
  const isUnheard = query.acks === "0";
  const held = await HeldRequest.read(services, request);
  try {
    const records = recordsOf(request, held.body.bytes);
    const work = produceAll(gateway, records);
    if (isUnheard) {
      inBackground(env, work.finally(() => held.release()));
      return accepted(records.length);
    }
    const results = await work;
    held.releasePermits();
    const topics = records.map(({ topic }) => topic);
    const release = () => held.release();
    return answerProduce({ results, topics, options, request, clock: env.clock, release });
  } catch (error) {
    held.release();
    throw error;
  }
}
