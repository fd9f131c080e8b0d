/** Whose memory the records of an answer are, and how much of it they keep from being used again. */
import type { RecordOutput } from "../http/port.ts";

export interface OwnedRecords {
  readonly records: readonly RecordOutput[];
  readonly heldBytes: number;
  /** They are views of the batch itself. */
  readonly viewsLog: boolean;
}

/** Calls back with each field that is there. */
function eachField(
  { key, value, headers }: RecordOutput,
  found: (bytes: Uint8Array) => void,
): void {
  if (key !== null) found(key);
  if (value !== null) found(value);
  for (const header of headers) if (header.value !== null) found(header.value);
}

/** Copies bytes one behind the other into memory of their own. */
class Packer {
  readonly #target: Uint8Array;
  #at = 0;

  constructor(bytes: number) {
    this.#target = new Uint8Array(bytes);
  }

  pack(bytes: Uint8Array | null): Uint8Array | null {
    if (bytes === null) return null;
    const copy = this.#target.subarray(this.#at, this.#at + bytes.length);
    copy.set(bytes);
    this.#at += bytes.length;
    return copy;
  }
}

/**
 * Views of a large buffer keep all of it, and a client that reads slowly keeps the views: so what is
 * kept of a batch is copied, unless it is most of the buffer that it lies in.
 */
export function owned(records: readonly RecordOutput[], batch: Uint8Array): OwnedRecords {
  let bytes = 0;
  let buffer = null as ArrayBufferLike | null;
  const look = (field: Uint8Array) => {
    bytes += field.length;
    buffer ??= field.buffer;
  };
  for (const record of records) eachField(record, look);
  if (buffer !== null && 2 * bytes >= buffer.byteLength) {
    return { records, heldBytes: buffer.byteLength, viewsLog: buffer === batch.buffer };
  }
  const packer = new Packer(bytes);
  const copies = records.map((record) => ({
    offset: record.offset,
    timestampMs: record.timestampMs,
    key: packer.pack(record.key),
    value: packer.pack(record.value),
    headers: record.headers.map(({ name, value }) => ({ name, value: packer.pack(value) })),
  }));
  return { records: copies, heldBytes: bytes, viewsLog: false };
}
