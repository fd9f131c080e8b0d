/** What a record of the gateway takes in memory and in a batch, roughly and never too little. */
import { RECORD_OVERHEAD_BYTES_MAX } from "../lib/limits.ts";
import type { RecordInput } from "../http/port.ts";

export function recordBytes(
  { key, value, headers }: Pick<RecordInput, "key" | "value" | "headers">,
): number {
  let bytes = RECORD_OVERHEAD_BYTES_MAX + (key?.length ?? 0) + (value?.length ?? 0);
  for (const header of headers) {
    bytes += RECORD_OVERHEAD_BYTES_MAX + 3 * header.name.length + (header.value?.length ?? 0);
  }
  return bytes;
}
