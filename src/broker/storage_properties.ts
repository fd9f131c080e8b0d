/** The broker properties of the write-ahead log, the log cache, the upload and what is kept of the past. */
import {
  LOG_CACHE_BYTES_MAX,
  METADATA_EVIDENCE_AGE_MS_MAX,
  METADATA_SNAPSHOT_ENTRIES,
  METADATA_TRIM_AGE_MS_MIN,
  OBJECT_RETAIN_AGE_MS_MIN,
  STREAM_OBJECT_SPLIT_BYTES,
  UNCOMMITTED_AGE_MS_MAX,
  UPLOAD_BLOCK_BYTES,
  UPLOAD_INTERVAL_MS,
} from "../lib/limits.ts";
import { ownLong, type Property } from "./property.ts";

const MIB = 1024 * 1024;
const MAX = Number.MAX_SAFE_INTEGER;

export const STORAGE_PROPERTIES: readonly Property[] = [
  ownLong(
    "wal.puts.per.hour",
    -1,
    [-1, 1_000_000_000],
    "PUTs that the write-ahead log spends in an hour under load: fewer cost less, and records wait " +
      "longer. 0 sets no limit; -1 means 14400 where PUTs have a price, and no limit elsewhere.",
  ),
  {
    name: "skerry.wal.dollars.per.month",
    type: "double",
    fallback: "0",
    min: 0n,
    max: 1_000_000n,
    documentation:
      "The same as money, for 730 hours of load; the smaller of the two holds. 0 sets no limit.",
  },
  {
    name: "skerry.wal.dollars.per.million.puts",
    type: "double",
    fallback: "5",
    min: 0n,
    max: 1_000_000n,
    documentation: "What a million PUTs cost, for the budget in money.",
  },
  ownLong(
    "log.cache.bytes",
    LOG_CACHE_BYTES_MAX,
    [16 * MIB, MAX],
    "Memory of records that are not uploaded, or lately were; when that much waits for upload, " +
      "producers are refused until some of it is committed.",
  ),
  ownLong(
    "upload.block.bytes",
    UPLOAD_BLOCK_BYTES,
    [MIB, MAX],
    "Records are uploaded when there are so many bytes of them; at most a third of the log cache.",
  ),
  ownLong("upload.interval.ms", UPLOAD_INTERVAL_MS, [1_000, MAX], "The same by time."),
  ownLong(
    "upload.age.ms.max",
    UNCOMMITTED_AGE_MS_MAX,
    [60_000, MAX],
    "When records could not be uploaded for so long, producers are refused until they are.",
  ),
  ownLong(
    "upload.split.bytes",
    STREAM_OBJECT_SPLIT_BYTES,
    [1, MAX],
    "A stream with at least this much in an upload gets an object of its own.",
  ),
  ownLong(
    "upload.bytes.per.second",
    0,
    [0, MAX],
    "Rate of uploads; 0 follows the producers, at twice their rate. It does not hold while room is " +
      "short, and when somebody waits for an upload.",
  ),
  ownLong(
    "objects.retain.ms",
    OBJECT_RETAIN_AGE_MS_MIN,
    [10_000, MAX],
    "How long an object that nobody needs any more stays in the store; longer than the longest read.",
  ),
  ownLong(
    "metadata.snapshot.entries",
    METADATA_SNAPSHOT_ENTRIES,
    [10, 1_000_000],
    "Metadata entries after which a snapshot is written, so that a start need not read them.",
  ),
  ownLong(
    "metadata.trim.age.ms",
    METADATA_TRIM_AGE_MS_MIN,
    [2 * METADATA_EVIDENCE_AGE_MS_MAX, MAX],
    "How long a snapshot stands before the entries below it are deleted; longer than any process is " +
      "stopped, and at least skerry.objects.retain.ms.",
  ),
];
