/** From key to path: a key is its own path below the root, where the operating system can hold it. */
import { join } from "node:path";
import { platform } from "node:process";
import { FaultError } from "../lib/errors.ts";
import { toUtf8 } from "../lib/bytes.ts";
import { isKey } from "../object/object_key.ts";

/** Holds files that are being written; not part of the key space. */
export const TEMP_NAME = ".tmp";

/** NAME_MAX of every file system in use. */
const SEGMENT_BYTES_MAX = 255;
const WINDOWS_FORBIDDEN = // oxlint-disable-next-line no-control-regex -- Windows refuses exactly these
  /[<>:"\\|?*\u0001-\u001f]|[. ]$|^(con|prn|aux|nul|com\d|lpt\d)(\.|$)/i;

function complaint(key: string): string | null {
  if (!isKey(key)) return "an empty, '.' or '..' segment";
  const segments = key.split("/");
  if (segments[0] === TEMP_NAME) return `${TEMP_NAME} is reserved`;
  for (const segment of segments) {
    if (segment.includes("\0")) return "a zero byte";
    if (toUtf8(segment).length > SEGMENT_BYTES_MAX) return "a segment longer than 255 bytes";
    if (platform === "win32" && WINDOWS_FORBIDDEN.test(segment)) return `the name ${segment}`;
  }
  return null;
}

/** Throws FaultError("config"): such a key stems from a cluster id or prefix that does not suit a directory. */
export function pathOf(root: string, key: string): string {
  const why = complaint(key);
  if (why !== null) {
    const message = `A directory store cannot hold the key ${JSON.stringify(key)}: ${why}`;
    throw new FaultError("config", message, { retriable: false });
  }
  return join(root, key);
}
