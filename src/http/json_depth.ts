/** How deep JSON is nested, without parsing it. */
import { HTTP_JSON_DEPTH_MAX } from "../lib/limits.ts";

const [QUOTE, BACKSLASH] = [0x22, 0x5c];
const [OPEN_ARRAY, CLOSE_ARRAY, OPEN_OBJECT, CLOSE_OBJECT] = [0x5b, 0x5d, 0x7b, 0x7d];

/** Looked for in the bytes: a parser that is asked first has done the harm already. */
export function isTooDeep(json: Uint8Array): boolean {
  let depth = 0;
  let isInText = false;
  for (let i = 0; i < json.length; i++) {
    const byte = json[i];
    if (byte === QUOTE) isInText = !isInText;
    else if (isInText) i += byte === BACKSLASH ? 1 : 0;
    else if (byte === OPEN_ARRAY || byte === OPEN_OBJECT) depth += 1;
    else if (byte === CLOSE_ARRAY || byte === CLOSE_OBJECT) depth -= 1;
    if (depth > HTTP_JSON_DEPTH_MAX) return true;
  }
  return false;
}
