/** The bounds of topic compaction; used through limits.ts. */

const KIB = 1024;
const MIB = 1024 * KIB;

/** Bytes per second that the cleaner of a node reads: it works beside produces and fetches. */
export const CLEAN_BYTES_PER_S = 32 * MIB;
/** The map from keys to their newest offsets: one on a node, 24 bytes a key, so 2.5 million keys in one pass. */
export const CLEAN_MAP_BYTES = 64 * MIB;
/** One read of the cleaner; it pauses after each, and holds up nobody for longer than this takes. */
export const CLEAN_READ_BYTES = 256 * KIB;
/** Work of the cleaner without a pause: about what a client notices. */
export const CLEAN_TURN_MS = 20;
/** Records of a batch that the cleaner works through before it looks at the time: a few milliseconds. */
export const CLEAN_STEP_RECORDS = 4_096;
/** Cleaned bytes on their way to the store: they share the WAL with produces. */
export const CLEAN_IN_FLIGHT_BYTES = 4 * MIB;
/** Pause of the cleaner when the WAL is full: producers go first. */
export const CLEAN_OVERLOAD_PAUSE_MS = 250;
/** Longest pause before a partition whose compaction failed is tried again: each try may write most of it anew. */
export const CLEAN_FAILED_PAUSE_MS_MAX = 86_400_000;
/** Offsets without a batch in a cleaned stream: more get an empty one, since a stream record counts with 31 bits. */
export const CLEAN_HOLE_OFFSETS_MAX = 2 ** 30;
