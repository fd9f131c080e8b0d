/** Every bound of the system, its unit and its reason. Units stand last in the name. */

const KIB = 1024;
const MIB = 1024 * KIB;

/** A WAL object occupies one slot of this size in the WAL's address space (AutoMQ's alignment). */
export const SLOT_BYTES = 64 * MIB;
/** Header of a record in a WAL object. */
export const WAL_RECORD_HEADER_BYTES = 24;
/** Header of a stream record. */
export const STREAM_RECORD_HEADER_BYTES = 33;
/** Largest payload that still fits a slot with its two headers: the cap of max.message.bytes. */
export const PAYLOAD_BYTES_MAX = SLOT_BYTES - WAL_RECORD_HEADER_BYTES - STREAM_RECORD_HEADER_BYTES;
/** Largest Kafka request frame, as Kafka's socket.request.max.bytes. */
export const REQUEST_BYTES_MAX = 100 * MIB;
/** Metadata log entries stay below this, so that one PUT carries one entry with ease. */
export const METADATA_ENTRY_BYTES_MAX = 512 * KIB;
/** Un-acknowledged WAL bytes past which new produces are refused with a retriable error. */
export const WAL_UNACKNOWLEDGED_BYTES_MAX = 256 * MIB;
/** Largest body of one HTTP request: it is parsed in memory, so far below the Kafka limit. */
export const HTTP_BODY_BYTES_MAX = 32 * MIB;
/** Records in one HTTP produce request. */
export const HTTP_RECORDS_MAX = 50_000;
/** Records in one HTTP read; the answer is built in memory. */
export const HTTP_READ_RECORDS_MAX = 10_000;
/** Bytes of record batches behind one HTTP read. */
export const HTTP_READ_BYTES_MAX = 16 * MIB;
/** Longest long poll over HTTP: below the idle limits of common proxies. */
export const HTTP_WAIT_MS_MAX = 30_000;
