/** Gives a batch another codec, for topics whose compression.type is not the producer's. */
import type { CodecName, Codecs } from "../env/codecs.ts";
import { inflateRecords } from "./compression.ts";
import { BATCH_HEADER_BYTES, codecOf, readBatchHeader, replacePayload } from "./record_batch.ts";

/**
 * The batch with its records under `codec` at a level of its own; the same bytes when it has that codec already. Records keep
 * every byte, the header all but attributes, length and checksum. Throws DecodeError or FaultError("corrupt").
 */
export function recompressBatch(
  batch: Uint8Array,
  codec: CodecName | null,
  codecs: Codecs,
  level?: number,
): Uint8Array {
  const header = readBatchHeader(batch);
  if (codecOf(header) === codec) return batch;
  const plain = inflateRecords(header.attributes, batch.subarray(BATCH_HEADER_BYTES), codecs);
  return replacePayload(
    header,
    codec,
    codec === null ? plain : codecs.compress(codec, plain, level),
  );
}
