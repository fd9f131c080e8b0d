/** POST records: parse, hand over, answer with an offset per record. */
import * as v from "valibot";
import type { Env } from "../../env/env.ts";
import { messageOf } from "../../lib/errors.ts";
import { type BodyQuery, recordsOfBody } from "../body.ts";
import { acks, bare, key, partition as partitionField } from "./parameters.ts";
import type { RecordInput, Written } from "../port.ts";
import { badRequest, ProblemError } from "../problem.ts";
import type { ProduceOptions } from "../write_port.ts";
import { answerProduce } from "./answer_produce.ts";
import { HeldRequest, type ProduceServices, type Target } from "./held_request.ts";
import { checkOnePartition, isPlain, optionsOf } from "./options.ts";
import { isRawBatch, produceRawBatch } from "./raw_batch.ts";

export const produceQuery = v.strictObject({ acks, bare, key, partition: partitionField });
type ProduceQuery = v.InferOutput<typeof produceQuery>;

function toPartition(record: RecordInput, partition: number, i: number): RecordInput {
  if (record.partition !== null && record.partition !== partition) {
    throw badRequest(
      `Cannot produce record ${i}: it names partition ${record.partition}, the path names ${partition}`,
    );
  }
  return { ...record, partition };
}

/** Work that its client does not wait for, nor hears of; a bug in it is a line in our log. */
export function inBackground(env: Env, work: Promise<unknown>): void {
  work.catch((error: unknown) => {
    if (error instanceof ProblemError) return;
    env.log.log("error", "http-produce-failed", { error: messageOf(error) });
  });
}

export function accepted(count: number): Response {
  return new Response(JSON.stringify({ accepted: count }), {
    status: 202,
    headers: { "content-type": "application/json" },
  });
}

function recordsFor(
  held: HeldRequest,
  { partition }: Target,
  options: ProduceOptions,
  query: BodyQuery,
): readonly RecordInput[] {
  const records = recordsOfBody(held.request, query, held.body.bytes);
  const placed = partition === null
    ? records
    : records.map((record, i) => toPartition(record, partition, i));
  checkOnePartition(placed, options);
  return placed;
}

/** The records of a request and what became of them; the caller releases what is held. */
export async function write(
  { gateway }: ProduceServices,
  held: HeldRequest,
  target: Target,
  query: BodyQuery,
): Promise<{ readonly results: readonly Written[]; readonly options: ProduceOptions }> {
  const options = optionsOf(held.request, target.partition);
  const records = recordsFor(held, target, options, query);
  const results = await gateway.produce(target.topic, records, options);
  held.releasePermits();
  return { results, options };
}

/** The answer says that the request was understood, nothing more. */
function writeUnacknowledged(
  { gateway, env }: ProduceServices,
  held: HeldRequest,
  target: Target,
  query: BodyQuery,
): Response {
  const options = optionsOf(held.request, target.partition);
  if (!isPlain(options)) {
    throw badRequest("Cannot use acks=0 with a key, a producer or a condition: nobody would hear");
  }
  const records = recordsFor(held, target, options, query);
  inBackground(env, gateway.produce(target.topic, records).finally(() => held.release()));
  return accepted(records.length);
}

export async function produce(
  services: ProduceServices,
  request: Request,
  target: Target,
  query: ProduceQuery,
): Promise<Response> {
  const isUnheard = query.acks === "0";
  if (isRawBatch(request)) return await produceRawBatch(services, request, target, isUnheard);
  const held = await HeldRequest.read(services, request);
  try {
    if (isUnheard) return writeUnacknowledged(services, held, target, query);
    const { clock } = services.env;
    const written = await write(services, held, target, query);
    return answerProduce({ ...written, request, clock, release: () => held.release() });
  } catch (error) {
    held.release();
    throw error;
  }
}
