/** JSON bodies of requests about things other than records: small, and checked by a schema. */
import * as v from "valibot";
import { HTTP_SMALL_BODY_BYTES } from "../../lib/limits.ts";
import { jsonText, parseJson } from "../json_text.ts";
import { badRequest, type ProblemError } from "../problem.ts";
import { type BodyRooms, readBody } from "../read_body.ts";

const SHOWN_CHARS_MAX = 200;
/** A body of nothing but mistakes would else be answered with as many errors. */
const ISSUES_SHOWN_MAX = 10;

/** All that is wrong, the first of it in the sentence. */
export function refusedBy(issues: readonly v.BaseIssue<unknown>[], what: string): ProblemError {
  const errors = issues.slice(0, ISSUES_SHOWN_MAX).map((issue) => ({
    pointer: (v.getDotPath(issue) ?? "").slice(0, SHOWN_CHARS_MAX),
    detail: issue.message.slice(0, SHOWN_CHARS_MAX),
  }));
  const { pointer, detail } = errors[0]!;
  return badRequest(`Cannot use ${what}: ${pointer === "" ? "" : `${pointer}: `}${detail}`, {
    errors,
  });
}

/** Throws ProblemError. */
export function parsed<S extends v.GenericSchema>(
  schema: S,
  value: unknown,
  what: string,
): v.InferOutput<S> {
  const result = v.safeParse(schema, value);
  if (result.success) return result.output;
  throw refusedBy(result.issues, what);
}

/** Throws ProblemError. */
export async function readJson<S extends v.GenericSchema>(
  request: Request,
  rooms: BodyRooms,
  schema: S,
): Promise<v.InferOutput<S>> {
  const body = await readBody(request, rooms, HTTP_SMALL_BODY_BYTES);
  try {
    return parsed(schema, parseJson(jsonText(body.bytes), "the JSON body"), "the body");
  } finally {
    body.release();
  }
}
