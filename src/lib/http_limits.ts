/** The bounds of the HTTP gateway; used through limits.ts. */

const KIB = 1024;
const MIB = 1024 * KIB;

/** Largest body of one HTTP request: it is parsed in memory, so far below the Kafka limit. */
export const HTTP_BODY_BYTES_MAX = 32 * MIB;
/** Records in one HTTP produce request. */
export const HTTP_RECORDS_MAX = 50_000;
/** Records in one HTTP read; they are in memory until the client has taken the answer. */
export const HTTP_READ_RECORDS_MAX = 10_000;
/** Bytes of record batches behind one HTTP read. */
export const HTTP_READ_BYTES_MAX = 16 * MIB;
/** How long an HTTP produce waits for the store: Kafka's request.timeout.ms, below the limits of proxies. */
export const HTTP_PRODUCE_TIMEOUT_MS = 30_000;
/** Longest long poll over HTTP: below the idle limits of common proxies. */
export const HTTP_WAIT_MS_MAX = 30_000;
/** HTTP bodies up to this have memory of their own, so that they never wait behind large uploads. */
export const HTTP_SMALL_BODY_BYTES = 64 * KIB;
/** Small HTTP bodies from their first byte to their answer, node-wide: about a thousand at once. */
export const HTTP_SMALL_BODIES_BYTES_MAX = 64 * MIB;
/** HTTP bodies up to this do not wait behind larger ones either: what most clients send at once. */
export const HTTP_MEDIUM_BODY_BYTES = MIB;
/** Medium HTTP bodies, node-wide: 32 of the largest. */
export const HTTP_MEDIUM_BODIES_BYTES_MAX = 32 * MIB;
/** Larger HTTP bodies, node-wide: five of the largest, or of those that do not say their length. */
export const HTTP_LARGE_BODIES_BYTES_MAX = 160 * MIB;
/** What the values and records parsed from JSON take in memory, as a multiple of its text. */
export const HTTP_JSON_BYTES_RATIO = 4;
/** Nesting of JSON over HTTP: engines take seconds to find that a deeper one overflows their stack. */
export const HTTP_JSON_DEPTH_MAX = 512;
/** An upload that brings nothing for this long is ended: as the grace of a Kafka frame. */
export const HTTP_BODY_STALL_MS = 30_000;
/** Slowest HTTP body or answer past its first stall time: as 1 MiB in the 60 s of a Kafka answer. */
export const HTTP_BYTES_PER_S_MIN = 16 * KIB;
/** How long an HTTP request waits for memory: below the limits of proxies, as the wait for the store. */
export const HTTP_PERMIT_WAIT_MS = 30_000;
/** How long an HTTP request waits for a node that recovers: below the limits of proxies. */
export const HTTP_READY_WAIT_MS = 30_000;
/** HTTP requests that wait for a node that recovers; more are told to come again. */
export const HTTP_READY_WAITERS_MAX = 1_000;
/** HTTP answers above this are made piece by piece, as the client takes them. */
export const HTTP_CHUNK_BYTES = 64 * KIB;
/** A record above this is not shown as JSON, only raw: JSON of that size serves nobody. */
export const HTTP_RECORD_BYTES_MAX = 16 * MIB;
/** HTTP reads up to this do not wait behind larger ones: the default page, and one batch of a topic. */
export const HTTP_SMALL_READ_BYTES = 2 * MIB;
/** Larger HTTP reads, of each kind of fetch permits: a quarter stays for small reads and for Kafka's. */
export const HTTP_LARGE_READS_BYTES_MAX = 96 * MIB;
/** Text of one HTTP read: escapes make up to six bytes of one. */
export const HTTP_RENDERED_BYTES_MAX = 32 * MIB;
/** Key and headers of a record as headers of its raw answer: clients take 8 to 16 KiB of headers in all. */
export const HTTP_RECORD_HEADERS_BYTES_MAX = 6 * KIB;
/** Records of one HTTP request that go to one partition are cut into batches of about this size. */
export const HTTP_BATCH_BYTES = MIB;
/** HTTP connections without traffic are closed after this: longer than the longest long poll, with a margin. */
export const HTTP_IDLE_MS = 120_000;
