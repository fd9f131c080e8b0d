/** The stream ranges of one stream set object, 24 bytes each: what remains of an index for searching. */
import { type Offset, type StreamId, streamId } from "../../lib/brand.ts";
import { partitionPoint } from "../../lib/partition_point.ts";
import type { StreamRange } from "../ports.ts";

const FIELDS = 3;

export class RangeTable {
  readonly #fields: Float64Array;

  /** Sorted by (stream, start). */
  constructor(ranges: readonly StreamRange[]) {
    this.#fields = new Float64Array(ranges.length * FIELDS);
    for (const [i, range] of ranges.entries()) {
      this.#fields.set([range.streamId, range.start, range.end], i * FIELDS);
    }
  }

  get bytes(): number {
    return this.#fields.byteLength;
  }

  get count(): number {
    return this.#fields.length / FIELDS;
  }

  *ranges(): Generator<StreamRange> {
    const fields = this.#fields;
    for (let at = 0; at < fields.length; at += FIELDS) {
      yield { streamId: streamId(fields[at]!), start: fields[at + 1]!, end: fields[at + 2]! };
    }
  }

  holds(stream: StreamId, offset: Offset): boolean {
    const fields = this.#fields;
    const after = partitionPoint(this.count, (i) => {
      const at = i * FIELDS;
      return fields[at]! < stream || (fields[at] === stream && fields[at + 1]! <= offset);
    });
    const at = (after - 1) * FIELDS;
    return after > 0 && fields[at] === stream && offset < fields[at + 2]!;
  }
}
