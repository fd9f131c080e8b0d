/** POST appends to a stream, closes it, or both at once. */
import type { Failure } from "../../port.ts";
import { badRequest, ProblemError, problemOf } from "../../problem.ts";
import { HeldRequest } from "../../produce/held_request.ts";
import { expectValues, kindOf, mediaTypeOf, valuesOf } from "./content.ts";
import {
  asksToClose,
  conflict,
  orderOf,
  positionHeaders,
  writerHeaders,
  writerOf,
} from "./headers.ts";
import { offsetText } from "./offsets.ts";
import { findPlace, type Found, type Named, type StreamsServices } from "./place.ts";
import type { Stepped, StepRefusal } from "./port.ts";

function refused(refusal: StepRefusal, { topicId }: Found): ProblemError {
  switch (refusal.reason) {
    case "closed":
      return conflict("Stream closed", "Cannot append: the stream is closed", {
        headers: {
          "stream-closed": "true",
          "stream-next-offset": offsetText(topicId, refusal.next),
        },
      });
    case "order":
      return conflict("Sequence conflict", "Cannot append: Stream-Seq is not above the last one", {
        more: { lastSeq: refusal.last },
      });
    case "stale-epoch":
      return new ProblemError({
        status: 403,
        title: "Stale producer epoch",
        detail: `Cannot append: the producer's epoch is ${refusal.epoch} by now`,
        headers: { "producer-epoch": String(refusal.epoch) },
      });
    case "epoch-start":
      return badRequest("Cannot append: a new Producer-Epoch begins with Producer-Seq 0");
    case "gap":
      return conflict("Producer sequence gap", "Cannot append: requests before it are missing", {
        headers: {
          "producer-expected-seq": String(refusal.expected),
          "producer-received-seq": String(refusal.received),
        },
      });
  }
}

/** Throws ProblemError where it is no success. */
export function expectStepped(
  outcome: Stepped | Failure,
  place: Found,
): Stepped & { readonly ok: true } {
  if (outcome.ok) return outcome;
  throw "refusal" in outcome
    ? refused(outcome.refusal, place)
    : new ProblemError(problemOf(outcome));
}

/** The body is looked at only where there is one: a request that only closes may have any type. */
function valuesIn({ request, body: { bytes } }: HeldRequest, { stream }: Found, closes: boolean) {
  if (bytes.length === 0 && closes) return [];
  const contentType = request.headers.get("content-type");
  if (contentType === null) throw badRequest("Cannot append: the request has no Content-Type");
  if (mediaTypeOf(contentType) !== mediaTypeOf(stream.contentType)) {
    throw conflict("Content type mismatch", `Cannot append: the stream is ${stream.contentType}`);
  }
  const values = valuesOf(bytes, kindOf(stream.contentType));
  expectValues(values);
  return values;
}

export async function append(
  services: StreamsServices,
  request: Request,
  named: Named,
): Promise<Response> {
  const { gateway } = services;
  const place = findPlace(gateway, named);
  const [closes, order, writer] = [asksToClose(request), orderOf(request), writerOf(request)];
  const held = await HeldRequest.read(services, request);
  try {
    const values = valuesIn(held, place, closes);
    const ask = { values, closes, order, writer, isFirst: false };
    const stepped = expectStepped(await gateway.step(place, ask), place);
    const { next, isClosed } = stepped;
    // Clients of the dialect tell what is new from a repeat by the status.
    const status = writer !== null && stepped.isNew && values.length > 0 ? 200 : 204;
    return new Response(null, {
      status,
      headers: {
        ...positionHeaders({ topicId: place.topicId, next, isClosed }),
        ...writerHeaders(stepped.writer),
      },
    });
  } finally {
    held.release();
  }
}
