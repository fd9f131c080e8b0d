/** The bounds of reading back from objects; used through limits.ts. */

const KIB = 1024;
const MIB = 1024 * KIB;

/** Indexes of data objects kept in memory. */
export const INDEX_CACHE_BYTES_MAX = 32 * MIB;
/** Range tables of stream set objects (24 bytes per stream range) kept in memory. */
export const RANGE_INDEX_BYTES_MAX = 32 * MIB;
/** Data blocks read from objects kept in memory. */
export const BLOCK_CACHE_BYTES_MAX = 128 * MIB;
/** Read-ahead doubles up to here: a GET per 4 MiB makes requests the smallest part of a cold read. */
export const RANGE_READ_BYTES_MAX = 4 * MIB;
/** Span of one range read: a window of 4 MiB ends with a whole block, which must not cost a request. */
export const RANGE_READ_SPAN_MAX = RANGE_READ_BYTES_MAX + 512 * KIB;
/** Share of a range read that nobody asked for: up to here a larger read is better than two. */
export const RANGE_READ_HOLE_SHARE = 0.5;
/** First read-ahead window of a sequential reader, and what each of its misses adds. */
export const READ_AHEAD_BYTES_MIN = 512 * KIB;
/** Largest read-ahead window: eight range reads under way for a reader that outruns the store. */
export const READ_AHEAD_BYTES_MAX = 32 * MIB;
/** After a reader's unread blocks had to go it reads ahead no more for this long. */
export const READ_AHEAD_PAUSE_MS = 60_000;
/** Read-aheads of one node at the same time: a quarter of the store's reads at most. */
export const READ_AHEADS_IN_FLIGHT_MAX = 16;
/** A reader that does not come back is forgotten after this time. */
export const READER_IDLE_MS = 60_000;
/** A block that was read ahead and that nobody wanted goes after this time. */
export const UNREAD_BLOCK_MS = 60_000;
/** Sequential readers whose place is remembered. */
export const READ_AHEAD_READERS_MAX = 4_096;
/** Lost places of streams that the log has named: each one is named once. */
export const LOST_PLACES_MAX = 1_000;
/** What a range of a sparse index costs in memory. */
export const SPARSE_RANGE_BYTES = 40;
/** Memory of one node's sparse index, above which it is thinned: about 100,000 ranges. */
export const SPARSE_INDEX_BYTES_MAX = 4 * MIB;
/** The stored form of it; a larger object is none of ours. */
export const SPARSE_INDEX_OBJECT_BYTES_MAX = 8 * MIB;
/** Newest ranges of a stream that go last when a sparse index is thinned. */
export const SPARSE_RANGES_KEPT = 3;
/** Sparse indexes of other nodes in memory. */
export const SPARSE_INDEXES_MAX = 16;
/** A node with fewer stream set objects than this has no sparse index: reading their indexes is as cheap. */
export const SPARSE_INDEX_OBJECTS_MIN = 16;
/** Objects that came since it was written: one more PUT on at least three times as many. */
export const SPARSE_INDEX_CHANGES_MIN = 16;
/** A sparse index that did not help is not read again for this long. */
export const SPARSE_INDEX_AGE_MS = 60_000;
/** Reads of data at once by partitions and groups that open, beside STORE_READS_MAX: never behind cold readers. */
export const OPEN_READS_MAX = 16;
/** Bytes of data blocks that are read at once for what opens, beside those that cold reads may. */
export const OPEN_READ_BYTES_MAX = 32 * MIB;
/** Index loads at the same time while a stream's offsets are searched in stream set objects. */
export const INDEX_LOADS_IN_FLIGHT_MAX = 8;
