/** Text that is about to be parsed as JSON, and the parser's errors as answers. */
import { HTTP_JSON_DEPTH_MAX } from "../lib/limits.ts";
import { isTooDeep } from "./json_depth.ts";
import { badRequest } from "./problem.ts";

const strictUtf8 = new TextDecoder("utf-8", { fatal: true });

/** The text of JSON, one or a line each, that is sane enough to be parsed. */
export function jsonText(body: Uint8Array): string {
  if (isTooDeep(body)) {
    throw badRequest(`Cannot read the body: nested more than ${HTTP_JSON_DEPTH_MAX} deep`);
  }
  try {
    return strictUtf8.decode(body);
  } catch {
    throw badRequest("Cannot read the body: not valid UTF-8");
  }
}

export function parseJson(text: string, what: string): unknown {
  if (text.trim() === "") throw badRequest(`Cannot read ${what}: it is empty`);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw badRequest(`Cannot read ${what}: ${error instanceof Error ? error.message : "not JSON"}`);
  }
}
