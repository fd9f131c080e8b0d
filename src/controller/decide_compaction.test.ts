import assert from "node:assert/strict";
import { test } from "node:test";
import { nodeId, objectId, streamId } from "../lib/brand.ts";
import {
  COMPACTION_LINKS_MAX,
  COMPACTION_SET_OBJECTS_MAX,
  COMPACTION_STREAM_OBJECTS_MAX,
  METADATA_ENTRY_BYTES_MAX,
} from "../lib/limits.ts";
import { encodeRecord, type RecordOf, type StreamObjectRecord } from "./record.ts";

/** Ids and offsets of a cluster that has run for very long. */
const LARGE = 2 ** 40;

function streamObject(i: number, links: number): StreamObjectRecord {
  return {
    objectId: objectId(LARGE + i),
    size: LARGE,
    bytesCrc: 2 ** 32 - 1,
    indexCrc: 2 ** 32 - 1,
    attributes: links > 0 ? 1 : 0,
    links: Array.from({ length: links }, (_, k) => objectId(LARGE + k)),
    streamId: streamId(2 ** 32 + i),
    start: LARGE,
    end: LARGE + 1,
  };
}

function bytesOf(objects: readonly StreamObjectRecord[], replaced: number): number {
  const record: RecordOf<"compacted"> = {
    type: "compacted",
    nodeId: nodeId(2 ** 31 - 1),
    streamSetObject: null,
    streamObjects: objects,
    replaced: Array.from({ length: replaced }, (_, k) => objectId(LARGE + k)),
  };
  return encodeRecord(record).length;
}

test("the largest compaction of stream set objects fits one entry", () => {
  const objects = Array.from(
    { length: COMPACTION_STREAM_OBJECTS_MAX },
    (_, i) => streamObject(i, 0),
  );
  const bytes = bytesOf(objects, COMPACTION_SET_OBJECTS_MAX);
  assert.ok(bytes < METADATA_ENTRY_BYTES_MAX, `${bytes} bytes`);
});

test("the largest composite fits one entry", () => {
  const bytes = bytesOf([streamObject(0, COMPACTION_LINKS_MAX)], COMPACTION_LINKS_MAX);
  assert.ok(bytes < METADATA_ENTRY_BYTES_MAX, `${bytes} bytes`);
});
