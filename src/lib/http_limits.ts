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
/** Live streams (SSE, NDJSON) of one node: ten thousand take some tens of MiB; more are told to come again. */
export const HTTP_STREAMS_MAX = 10_000;
/** Bytes of record batches behind one read of a durable stream. */
export const HTTP_STREAM_PAGE_BYTES = MIB;
/** Long poll of a durable stream: an interval of its cursors, in which caches join the polls of many. */
export const STREAM_POLL_MS = 20_000;
/** Server-sent events of a durable stream last this long: readers behind a cache come back together. */
export const STREAM_EVENTS_MS = 60_000;
/** Time between two looks for durable streams whose time is over: nobody finds them meanwhile. */
export const STREAM_SWEEP_MS = 10_000;
/** Forks of forks of durable streams: a read looks through all of them. */
export const STREAM_FORKS_DEEP_MAX = 64;
/** Durable streams that one such look deletes: an entry of the metadata each. */
export const STREAMS_SWEPT_AT_ONCE = 100;
/** Names, orders and types that a client of durable streams gives in headers. */
export const STREAM_HEADER_CHARS_MAX = 255;
/** Bytes of record batches that a live stream reads at once: what it holds of a reader that is slow. */
export const HTTP_STREAM_WINDOW_BYTES = 256 * KIB;
/** Records of all live streams in memory, of each kind of fetch permits: a quarter of them. */
export const HTTP_LIVE_READS_BYTES_MAX = 32 * MIB;
/** Pause between two signs of life of an idle stream: below the idle limits of proxies. */
export const HTTP_HEARTBEAT_MS = 15_000;
/** A reader that takes nothing for this long gives its window back, and it is read again when it goes on. */
export const HTTP_STREAM_HOLD_MS = 3_000;
/** Steps of live streams in one turn of the event loop: thousands of them wake at one record. */
export const HTTP_STREAM_STEPS_PER_TURN = 64;
/** Time of such a turn, after which others have theirs. */
export const HTTP_STREAM_TURN_MS = 5;
/** Partitions behind one cursor: it is sent back as a header, and hosts take 16 KiB of them. */
export const HTTP_CURSOR_PARTITIONS_MAX = 512;
/** Text of a cursor: the largest that we give, in base64. */
export const HTTP_CURSOR_CHARS_MAX = 8 * KIB;
/** First and longest pause of a stream after a partition could not be read. */
export const HTTP_STREAM_PAUSE_MS_MIN = 500;
export const HTTP_STREAM_PAUSE_MS_MAX = 15_000;
/** Keys that one request filters by. */
export const HTTP_FILTER_KEYS_MAX = 100;
/** Headers that one request filters by. */
export const HTTP_FILTER_HEADERS_MAX = 20;
/** A value above this is not looked at as JSON: parsing it would hold up the others. */
export const HTTP_JSON_VALUE_BYTES_MAX = MIB;
/** Partitions of one fetch over HTTP. */
export const HTTP_FETCH_PARTITIONS_MAX = 1_000;
/** A page over several partitions that has records reads no further ones after this time. */
export const HTTP_MERGE_MS_MAX = 500;
/** How long caches may keep records that never change: a year, the longest that they heed. */
export const HTTP_SEALED_MAX_AGE_S = 31_536_000;
/** Partitions that a request with an Idempotency-Key opens at once, to ask what they remember. */
export const HTTP_PARTITIONS_OPENED_AT_ONCE = 16;
/** Characters of an Idempotency-Key: a UUID has 36, a digest 64. */
export const HTTP_IDEMPOTENCY_KEY_CHARS_MAX = 255;
/** Streams of records that are written at the same time: each holds up to one line of the largest size. */
export const HTTP_PRODUCE_STREAMS_MAX = 256;
/** A line of such a stream; what is larger has a request of its own. */
export const HTTP_STREAM_LINE_BYTES_MAX = MIB;
/** Records of such a stream that are appended together. */
export const HTTP_STREAM_GROUP_RECORDS = 1_000;
/** Records of such a stream whose answers the client has not taken; it is not read any further. */
export const HTTP_STREAM_UNTAKEN_RECORDS_MAX = 10_000;
/** Silence after which such a stream ends: below the idle limit of the connection. */
export const HTTP_STREAM_IDLE_MS = 60_000;
/** Times that an encoded body may grow beyond 1 MiB: text comes to ten, bombs to a thousand. */
export const HTTP_INFLATE_RATIO_MAX = 100;
/** Answers below this are not encoded: it would save nothing. */
export const HTTP_ENCODED_ANSWER_BYTES_MIN = 1 * KIB;
/** Topics of one produce request over HTTP: each may have to be created. */
export const HTTP_TOPICS_PER_REQUEST_MAX = 100;
/** WebSockets of one node; more are told to come again. */
export const HTTP_SOCKETS_MAX = 5_000;
/** A message of a WebSocket. Hosts gather one unseen, so each socket may hold as much while it arrives. */
export const HTTP_SOCKET_MESSAGE_BYTES_MAX = MIB;
/** What a message costs beside its bytes, in memory. */
export const HTTP_SOCKET_MESSAGE_COST = 256;
/** Messages of a WebSocket that nobody has read yet: Bun and Deno push them, and cannot be made to wait. */
export const HTTP_SOCKET_QUEUE_BYTES_MAX = 16 * MIB;
/** Such messages of all WebSockets of a node. */
export const HTTP_SOCKETS_QUEUED_BYTES_MAX = 128 * MIB;
/** Bytes on their way to the peer of a WebSocket, above which the next message waits. */
export const HTTP_SOCKET_ROOM_BYTES = 64 * KIB;
/** Produce messages of one WebSocket that are not acknowledged yet; the next one waits. */
export const HTTP_SOCKET_PRODUCES_MAX = 32;
/** Records that the client of a WebSocket may ask for ahead. */
export const HTTP_SOCKET_CREDIT_MAX = 1_000_000;
/** A record above this is not sent over a WebSocket, whose messages are whole: it is named, to be read raw. */
export const HTTP_SOCKET_RECORD_BYTES_MAX = MIB;
/** A WebSocket is pinged in this time, and a peer that does not answer in as much is gone. */
export const HTTP_SOCKET_PING_MS = 60_000;
/** Bodies that came encoded, as they are read, node-wide: three of the largest. */
export const HTTP_INFLATED_BODIES_BYTES_MAX = 96 * MIB;
/** Consumer instances of a cluster that HTTP clients made through the compatibility mounts: records in its metadata. */
export const HTTP_INSTANCES_MAX = 1_000;
/** Without a request for so long, such an instance ends, unless it says otherwise; Kafka REST proxies have the same. */
export const HTTP_INSTANCE_IDLE_MS = 300_000;
/** Least and most that a client may say. */
export const HTTP_INSTANCE_IDLE_MS_MIN = 10_000;
export const HTTP_INSTANCE_IDLE_MS_MAX = 1_800_000;
/** Characters of the name of a consumer instance, and of its group. */
export const HTTP_INSTANCE_NAME_CHARS_MAX = 255;
/** Partitions and topics that an instance may name. */
export const HTTP_INSTANCE_PARTITIONS_MAX = 1_000;
/** Members of groups that HTTP clients stand behind say that they are alive so often. */
export const HTTP_INSTANCE_BEAT_MS = 3_000;
/** A member that has no partition yet looks for some so often while its client waits. */
export const HTTP_INSTANCE_JOIN_MS = 250;
/** Requests that wait for another one of the same instance. */
export const HTTP_INSTANCE_WAITERS_MAX = 16;
/** Places of an instance that are kept in its record: jumps, and beginnings of those that do not commit by themselves. */
export const HTTP_INSTANCE_SEEKS_MAX = 500;
/** Partitions of one request or answer of administration over HTTP: each may have to be opened. */
export const HTTP_ADMIN_ROWS_MAX = 1_000;
/** Topics of one poll of a group over HTTP; their partitions are bounded as those of a cursor. */
export const HTTP_GROUP_TOPICS_MAX = 100;
/** Records that one acknowledgement gives back, or offsets that one request sets: each is looked at. */
export const HTTP_GROUP_NACKS_MAX = 500;
/** How long a lease of records over HTTP lasts: what one call of an edge script may take. */
export const HTTP_LEASE_MS_DEFAULT = 30_000;
/** Shortest lease: below it a slow network alone would end it. */
export const HTTP_LEASE_MS_MIN = 1_000;
/** Longest lease, and longest pause before a record that was given back: 12 h, as of common queues. */
export const HTTP_LEASE_MS_MAX = 43_200_000;
/** Spans of a group's leases in one partition, above which nothing new is given out: each costs 30 bytes a write. */
export const HTTP_LEASE_SPANS_MAX = 1_000;
/** Spans above which leases are not cut further: the whole window is one record of 200 KiB then. */
export const HTTP_LEASE_SPANS_HARD_MAX = 8_000;
/** Text that names what a poll leased: a range in each of as many partitions as a cursor has. */
export const HTTP_ACK_CHARS_MAX = 40 * KIB;
/** Polls of groups that wait at the same time; more are told to come again. */
export const HTTP_GROUP_WAITERS_MAX = 10_000;
/** Partitions that polls of groups look at at the same time: each takes about 1 KiB meanwhile; others take turns. */
export const HTTP_GROUP_LOOKS_MAX = 65_536;
/** Subscriptions of a cluster that push records: each may hold two windows on the node that delivers for it. */
export const PUSH_SUBSCRIPTIONS_MAX = 64;
/** URL of a handler: what servers take as a first line. */
export const PUSH_URL_CHARS_MAX = 2_048;
/** Topics of one subscription that pushes. */
export const PUSH_TOPICS_MAX = 100;
/** Partitions of one subscription that pushes; those above are not delivered, and its state says so. */
export const PUSH_PARTITIONS_MAX = 1_000;
/** A record above this is not pushed: Kafka's default largest batch, and what is around a record. */
export const PUSH_RECORD_BYTES_MAX = MIB + 64 * KIB;
/** Records that a subscription holds until its handler has taken them; one more page is read below it. */
export const PUSH_WINDOW_BYTES = MIB;
/** The same of one partition, so that one whose records are refused leaves room for others. */
export const PUSH_PARTITION_WINDOW_BYTES = 256 * KIB;
/** Records of one partition behind the first one that is not done; offsets of those done are kept. */
export const PUSH_PARTITION_WINDOW_RECORDS = 1_000;
/** Bodies of deliveries under way, node-wide: about a hundred of the default size. */
export const PUSH_BODIES_BYTES_MAX = 32 * MIB;
/** Deliveries under way, node-wide: four subscriptions at their bound, each a connection. */
export const PUSH_REQUESTS_MAX = 256;
/** Largest batch of one delivery. */
export const PUSH_BATCH_RECORDS_MAX = 1_000;
/** Deliveries of one subscription under way at once. */
export const PUSH_IN_FLIGHT_MAX = 64;
/** Longest time for one delivery: above it a handler should take the records and work later. */
export const PUSH_TIMEOUT_MS_MAX = 300_000;
/** Attempts before a record goes to the dead-letter topic, at most. */
export const PUSH_ATTEMPTS_MAX = 1_000;
/** Longest pause between attempts. */
export const PUSH_PAUSE_MS_MAX = 86_400_000;
/** Longest time that a handler may ask for in Retry-After: an hour, above it it is a mistake. */
export const PUSH_RETRY_AFTER_MS_MAX = 3_600_000;
/** Of a handler's answer: it is dropped, and only read so that the connection can be used again. */
export const PUSH_ANSWER_BYTES_MAX = 64 * KIB;
/** Least time between two commits of a subscription: what is delivered in it comes again after a crash. */
export const PUSH_COMMIT_MS = 250;
/** How often positions are committed that have not moved; the broker writes only those about to expire. */
export const PUSH_REFRESH_MS = 3_600_000;
/** First and longest pause before something of ours that failed (a read, a commit) is tried again. */
export const PUSH_REPEAT_MS_MIN = 500;
export const PUSH_REPEAT_MS_MAX = 30_000;
/** How long a key signs. The next one is public as long beforehand, so that caches know it. */
export const PUSH_KEY_MS = 30 * 86_400_000;
/** Topics with settings of webhooks: each takes up to 2 KiB of the metadata, which all nodes hold. */
export const WEBHOOKS_MAX = 10_000;
/** Secrets of one webhook: the present one, the next one, and one to spare. */
export const WEBHOOK_SECRETS_MAX = 4;
/** Longest secret of a webhook: above it HMAC hashes it anyway. */
export const WEBHOOK_SECRET_CHARS_MAX = 512;
/** Largest age of a signed webhook that may be set: an hour. */
export const WEBHOOK_TOLERANCE_S_MAX = 3_600;
/** Signatures of one webhook that are looked at: senders send one for each key in use. */
export const WEBHOOK_SIGNATURES_MAX = 8;
