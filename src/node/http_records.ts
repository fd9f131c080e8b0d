/** Whose memory the records of an answer are, and how much of it they keep from being used again. */
import type { RecordOutput } from "../http/port.ts";

export interface OwnedRecords {
  readonly records: readonly RecordOutput[];
  readonly heldBytes: number;
  /** They are views of the batch itself. */
  readonly viewsLog: boolean;
}

function fieldsOf({ key, value, headers }: RecordOutput): (Uint8Array | null)[] {
  return [key, value, ...headers.map((header) => header.value)];
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
  let buffer: ArrayBufferLike | null = null;
  for (const record of records) {
    for (const field of fieldsOf(record)) {
      bytes += field?.length ?? 0;
      buffer ??= field?.buffer ?? null;
    }
  }
  if (buffer !== null && 2 * bytes >= buffer.byteLength) {
    return { records, heldBytes: buffer.byteLength, viewsLog: buffer === batch.buffer };
  }
  const packer = new Packer(bytes);
  const copies = records.map((record) => ({
    ...record,
    key: packer.pack(record.key),
    value: packer.pack(record.value),
    headers: record.headers.map(({ name, value }) => ({ name, value: packer.pack(value) })),
  }));
  return { records: copies, heldBytes: bytes, viewsLog: false };
}
