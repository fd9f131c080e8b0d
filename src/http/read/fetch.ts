/**
 * POST /v1/fetch: partitions of many topics in one answer, each with its records or its own error; and the same
 * in WarpStream's shape under /v1/kafka/fetch.
 */
import * as v from "valibot";
import type { Clock } from "../../env/clock.ts";
import { toUtf8 } from "../../lib/bytes.ts";
import { ERROR_CODES } from "../../protocol/error_code.ts";
import { answerOf, chunksOf } from "../answer.ts";
import { jsonText, parseJson } from "../json_text.ts";
import { described } from "../api/fields.ts";
import { parsed } from "../api/read_json.ts";
import { kafkaError } from "../problem.ts";
import type { ReadGateway } from "../read_port.ts";
import { toBase64 } from "../../lib/base64.ts";
import { type Shown } from "../record_json.ts";
import type { RecordOutput } from "../port.ts";
import {
  type FetchAsked,
  type nativeBody,
  nativeFetch,
  warpBody,
  warpFetch,
} from "./fetch_body.ts";
import {
  type ManyQuery,
  readMany,
  release,
  type Results,
  type Target,
  waitForMany,
} from "./many.ts";
import { type Found, listOf, type NotFound, ofPartition, rawPath } from "./page.ts";

export interface FetchServices {
  readonly gateway: ReadGateway;
  readonly clock: Clock;
}

type Result = Results[number];

/** A partition and what came of it. */
interface Fetched {
  readonly target: Target;
  readonly result: Result;
}

function targetsOf(asked: FetchAsked, gateway: ReadGateway): Target[] {
  return asked.topics.flatMap(({ topic, topicId, partitions }) => {
    const found = gateway.findTopic(topic)?.topicId ?? null;
    return partitions.map((one) => ({ topic, topicId: topicId ?? found, ...one }));
  });
}

function hasNews(results: Results): boolean {
  return results.some((result) =>
    result !== null && (!result.ok || result.records.length > 0 || result.oversized !== null)
  );
}

/** Where each read stands now, so that what was passed over is not read again. */
function movedOn(targets: readonly Target[], results: Results): Target[] {
  return targets.map((target, i) => {
    const result = results[i];
    return result?.ok === true ? { ...target, offset: result.next } : target;
  });
}

async function fetchAll(
  { gateway, clock }: FetchServices,
  asked: FetchAsked,
  query: ManyQuery,
): Promise<Fetched[]> {
  const endMs = clock.monotonicMs() + asked.waitMs;
  let targets = targetsOf(asked, gateway);
  for (;;) {
    const results = await readMany(gateway, clock, targets, query);
    const leftMs = endMs - clock.monotonicMs();
    if (hasNews(results) || leftMs <= 0 || query.signal.aborted || targets.length === 0) {
      return targets.map((target, i) => ({ target, result: results[i] ?? null }));
    }
    release(results);
    targets = movedOn(targets, results);
    await waitForMany(gateway, clock, targets, query, leftMs);
  }
}

function queryOfAsked(asked: FetchAsked, request: Request): ManyQuery {
  const { recordsMax, bytesMax, isolation, encoding } = asked;
  const { signal } = request;
  const shown = { encoding, isInLine: false };
  return { recordsMax, bytesMax, isolation, signal, shown, filter: null };
}

/** Topics in the order of the request, each with its partitions. */
function* inTopics(
  asked: FetchAsked,
  fetched: readonly Fetched[],
  one: (fetched: Fetched) => Iterable<string>,
): Generator<string, void> {
  let at = 0;
  yield '{"topics":[';
  for (const [i, { topic, partitions }] of asked.topics.entries()) {
    yield `${i === 0 ? "" : ","}{"topic":${JSON.stringify(topic)},"partitions":[`;
    for (let p = 0; p < partitions.length; p++, at++) {
      if (p > 0) yield ",";
      yield* one(fetched[at]!);
    }
    yield "]}";
  }
  yield "]}";
}

function oversizedError({ target, result }: Fetched, page: Found): Record<string, unknown> {
  const { offset, bytes } = page.oversized!;
  return {
    ...kafkaError("MESSAGE_TOO_LARGE"),
    message: `Cannot show offset ${offset} as JSON: it has ${bytes} bytes`,
    raw: rawPath(target.topic, target.partition, offset),
    next: result?.ok === true ? offset + 1 : null,
  };
}

function failureOf(result: NotFound): Record<string, unknown> {
  const { error, message, logStart, highWatermark, next } = result;
  return {
    ...kafkaError(error),
    ...(message === undefined ? {} : { message }),
    ...(logStart === undefined ? {} : { earliest: logStart, latest: highWatermark }),
    ...(next === undefined ? {} : { next }),
  };
}

function* nativePartition(fetched: Fetched, shown: Shown): Generator<string, void> {
  const { target: { partition, offset }, result } = fetched;
  yield `{"partition":${partition}`;
  if (result === null) {
    // The page was full before its turn came.
    return yield `,"records":[],"next":${JSON.stringify(offset)}}`;
  }
  if (!result.ok) return yield `,"error":${JSON.stringify(failureOf(result))}}`;
  if (result.oversized !== null && result.records.length === 0) {
    return yield `,"error":${JSON.stringify(oversizedError(fetched, result))}}`;
  }
  yield ',"records":[';
  yield* listOf(ofPartition(result.records, partition), shown);
  yield `],"next":${result.next},"highWatermark":${result.highWatermark},"logStart":${result.logStart}}`;
}

function warpRecord({ offset, timestampMs, key, value, headers }: RecordOutput): string {
  const base64 = (bytes: Uint8Array | null) => bytes === null ? null : toBase64(bytes);
  return JSON.stringify({
    offset,
    timestamp: timestampMs,
    key: base64(key),
    value: base64(value),
    headers: headers.map((header) => ({ key: header.name, value: base64(header.value) })),
  });
}

function* warpPartition({ target, result }: Fetched): Generator<string, void> {
  const { partition } = target;
  if (result === null || !result.ok) {
    const code = result === null ? 0 : ERROR_CODES[result.error];
    const mark = result?.highWatermark ?? -1;
    return yield `{"partition":${partition},"error_code":${code},"high_watermark":${mark},"records":[]}`;
  }
  const isTooLarge = result.oversized !== null && result.records.length === 0;
  const code = isTooLarge ? ERROR_CODES.MESSAGE_TOO_LARGE : 0;
  yield `{"partition":${partition},"error_code":${code},"high_watermark":${result.highWatermark},"records":[`;
  for (const [i, record] of result.records.entries()) {
    if (i > 0) yield ",";
    yield warpRecord(record);
  }
  yield "]}";
}

async function answerFetch(
  services: FetchServices,
  request: Request,
  asked: FetchAsked,
  one: (fetched: Fetched) => Iterable<string>,
): Promise<Response> {
  const fetched = await fetchAll(services, asked, queryOfAsked(asked, request));
  return answerOf(chunksOf(inTopics(asked, fetched, one)), {
    request,
    clock: services.clock,
    headers: { "content-type": "application/json", "cache-control": "no-store" },
    release: () => release(fetched.map(({ result }) => result)),
  });
}

export async function fetchMany(
  services: FetchServices,
  request: Request,
  body: v.InferOutput<typeof nativeBody>,
): Promise<Response> {
  const asked = nativeFetch(body);
  const shown = { encoding: asked.encoding, isInLine: false };
  return await answerFetch(services, request, asked, (one) => nativePartition(one, shown));
}

/** A GET says in `request` what a POST says in its body: no fetch client can send a GET with one. */
export const warpQuery = v.strictObject({
  request: described(v.string(), "the body that a POST would have"),
});

export async function fetchWarp(
  services: FetchServices,
  request: Request,
  body: v.InferOutput<typeof warpBody>,
): Promise<Response> {
  return await answerFetch(services, request, warpFetch(body), warpPartition);
}

export async function fetchWarpByQuery(
  services: FetchServices,
  request: Request,
  { request: text }: v.InferOutput<typeof warpQuery>,
): Promise<Response> {
  const body = parseJson(jsonText(toUtf8(text)), "request");
  return await fetchWarp(services, request, parsed(warpBody, body, "request"));
}
