/** Answers of the REST Proxy's third version: objects and lists that name their kind and where they stand. */
import type { Clock } from "../../../env/clock.ts";
import { answerOf, chunksOf } from "../../answer.ts";
import { type Problem, ProblemError } from "../../problem.ts";
import { publicUrl } from "../rest_v2/public_url.ts";
import { codeOf as codeOfV2 } from "../rest_v2/shape.ts";

const UNKNOWN_TOPIC_OR_PARTITION = 40_403;
const KAFKA_REFUSES = 40_002;

function hasKafkaName({ more }: Problem): boolean {
  return more?.["kafka"] !== undefined;
}

export function codeOf(problem: Problem): number {
  if (!hasKafkaName(problem)) return codeOfV2(problem);
  if (problem.status === 404) return UNKNOWN_TOPIC_OR_PARTITION;
  return problem.status === 400 || problem.status === 409 ? KAFKA_REFUSES : codeOfV2(problem);
}

export function v3Error(problem: Problem): Response {
  const { status, detail, headers } = problem;
  // What Kafka refuses is a bad request here, also where something is there already.
  const told = hasKafkaName(problem) && status === 409 ? 400 : status;
  return Response.json({ error_code: codeOf(problem), message: detail }, {
    status: told,
    ...(headers === undefined ? {} : { headers }),
  });
}

export function v3Fault(status: number, detail: string, errorCode = status): ProblemError {
  return new ProblemError({ status, title: "Error", detail, more: { errorCode } });
}

/** Where things stand: URLs for clients, and Confluent's names for resources. */
export class Place {
  readonly base: string;
  readonly clusterId: string;

  constructor(request: Request, clusterId: string) {
    this.base = `${publicUrl(request, "/clusters")}/clusters`;
    this.clusterId = clusterId;
  }

  /** `path` in pairs of a collection and a name in it. */
  #parts(path: readonly string[]): string {
    return path.map((part) => `/${encodeURIComponent(part)}`).join("");
  }

  url(...path: readonly string[]): string {
    return `${this.base}/${encodeURIComponent(this.clusterId)}${this.#parts(path)}`;
  }

  related(...path: readonly string[]): { readonly related: string } {
    return { related: this.url(...path) };
  }

  metadata(resource: string, ...path: readonly string[]) {
    return {
      self: this.url(...path),
      resource_name: `crn:///kafka=${this.clusterId}${resource}`,
    };
  }
}

function* listOf(kind: string, self: string, items: Iterable<unknown>): Generator<string, void> {
  yield `{"kind":${JSON.stringify(kind)},"metadata":${
    JSON.stringify({ self, next: null })
  },"data":[`;
  let isFirst = true;
  for (const item of items) {
    yield `${isFirst ? "" : ","}${JSON.stringify(item)}`;
    isFirst = false;
  }
  yield "]}";
}

export function v3List(
  kind: string,
  self: string,
  items: Iterable<unknown>,
  how: { readonly request: Request; readonly clock: Clock },
): Response {
  return answerOf(chunksOf(listOf(kind, self, items)), {
    ...how,
    headers: { "content-type": "application/json" },
    release: () => {},
  });
}
