/** The route of streams of records: how many there may be, and what their bodies are. */
import * as v from "valibot";
import type { Semaphore } from "../../lib/semaphore.ts";
import { mediaType } from "../media_type.ts";
import { busy } from "../permit_wait.ts";
import { badRequest, ProblemError } from "../problem.ts";
import type { ProduceServices, Target } from "./held_request.ts";
import { isPlain, optionsOf } from "./options.ts";
import { bare as bareField } from "./parameters.ts";
import { lineForm, RecordStream } from "./record_stream.ts";

const TYPES: ReadonlySet<string> = new Set(["application/x-ndjson", "application/jsonl"]);

function unsupported(detail: string): ProblemError {
  return new ProblemError({ status: 415, title: "Unsupported media type", detail });
}

function check(request: Request, partition: number | null): void {
  const type = mediaType(request);
  if (!TYPES.has(type)) throw unsupported("Cannot read the stream: its type is not NDJSON");
  const encoding = request.headers.get("content-encoding") ?? "identity";
  if (encoding.trim().toLowerCase() !== "identity") {
    throw unsupported("Cannot read the stream: it has a content encoding");
  }
  if (!isPlain(optionsOf(request, partition))) {
    throw badRequest("Cannot use Idempotency-Key, Producer-Id or If-Match with a stream");
  }
}

export const streamQuery = v.strictObject({ bare: bareField });

export interface StreamServices extends ProduceServices {
  /** How many there may be at once. */
  readonly recordStreams: Semaphore;
}

export function streamRecords(
  services: StreamServices,
  request: Request,
  target: Target,
  { bare }: v.InferOutput<typeof streamQuery>,
): Response {
  const { recordStreams } = services;
  check(request, target.partition);
  if (!recordStreams.tryAcquire()) throw busy();
  const release = () => recordStreams.release();
  const body = new RecordStream({ services, request, target, form: lineForm(bare), release })
    .open();
  return new Response(body, {
    headers: {
      "content-type": "application/x-ndjson",
      "cache-control": "no-store, no-transform",
      "x-accel-buffering": "no",
    },
  });
}
