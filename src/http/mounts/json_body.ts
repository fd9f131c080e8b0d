/** Small JSON bodies of the dialects, checked by a schema; their content type says nothing that we need. */
import * as v from "valibot";
import { HTTP_SMALL_BODY_BYTES } from "../../lib/limits.ts";
import { type Sourced, sourced } from "../json_source.ts";
import { jsonText, parseJson } from "../json_text.ts";
import { badRequest } from "../problem.ts";
import type { BodyRooms } from "../read_body.ts";
import { bodyOf } from "./body_of.ts";

const SHOWN_CHARS_MAX = 200;

/** Null for a body that is empty. */
export function sourcedBody(body: Uint8Array): Sourced | null {
  const text = jsonText(body);
  return text.trim() === "" ? null : sourced(text, parseJson(text, "the JSON body"));
}

export function checked<S extends v.GenericSchema>(
  schema: S,
  value: unknown,
  what = "the body",
): v.InferOutput<S> {
  const result = v.safeParse(schema, value);
  if (result.success) return result.output;
  const issue = result.issues[0];
  const at = (v.getDotPath(issue) ?? "").slice(0, SHOWN_CHARS_MAX);
  const detail = issue.message.slice(0, SHOWN_CHARS_MAX);
  throw badRequest(`Cannot use ${what}: ${at === "" ? "" : `${at}: `}${detail}`);
}

/** Null for a body that is empty, or not there. */
export async function readChecked<S extends v.GenericSchema>(
  request: Request,
  rooms: BodyRooms,
  schema: S,
): Promise<v.InferOutput<S> | null> {
  const body = await bodyOf(request, rooms, HTTP_SMALL_BODY_BYTES);
  try {
    const json = sourcedBody(body.bytes);
    return json === null ? null : checked(schema, json.value);
  } finally {
    body.release();
  }
}

export const count = v.pipe(v.number(), v.safeInteger(), v.minValue(0));
export const partition = v.pipe(count, v.maxValue(2 ** 31 - 1));
export const nameText = v.pipe(v.string(), v.minLength(1), v.maxLength(1_000));
