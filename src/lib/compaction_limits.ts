/** The bounds of compaction; used through limits.ts. */

const KIB = 1024;
const MIB = 1024 * KIB;

/** How often a node looks whether metadata changed since its last compaction; without a change nothing happens. */
export const COMPACTION_INTERVAL_MS = 60_000;
/** Pause before a compaction goes on when it left work over: others get their turn. */
export const COMPACTION_PAUSE_MS = 10_000;
/** How long a node that closes waits for a compaction to notice; its objects are swept later. */
export const COMPACTION_CLOSE_MS = 1_000;
/** Blocks that a compaction holds at once, beside a part or two of the objects that it writes. */
export const COMPACTION_MEMORY_BYTES = 128 * MIB;
/** Bytes that compaction may read per second in any case: its share of the network and of the processor. */
export const COMPACTION_BYTES_PER_S = 64 * MIB;
/** Bytes that it may read for each byte uploaded of late: a byte is rewritten once or twice, the rest catches up. */
export const COMPACTION_FOLLOW_TIMES = 4;
/** How far back the rate of uploads looks: several blocks of a fast node. */
export const COMPACTION_FOLLOW_MS = 60_000;
/** Pause of a read while somebody waits for an upload. */
export const COMPACTION_YIELD_MS = 50;
/** Such pauses of one read at most: a node that is always in a hurry still compacts. */
export const COMPACTION_YIELDS_MAX = 20;
/** Range reads of compaction at once, beside STORE_READS_MAX: enough to hide a latency, never behind cold readers. */
export const COMPACTION_READS_MAX = 8;
/** Writes of compaction at once: one for each rewrite that runs. */
export const COMPACTION_WRITES_MAX = 4;
/** Rewrites of single streams at once, as far as their bytes fit into the memory of one. */
export const COMPACTION_RUNS_AT_ONCE = 4;
/** Rewrites of single streams that share a metadata entry: the work that a refusal throws away. */
export const COMPACTION_BATCH_RUNS_MAX = 64;
/** Indexes of objects that uploads and compaction wrote: those of a thousand objects of 32 MiB. */
export const COMPACTION_INDEX_BYTES = MIB;
/** Bytes of one read below which, where requests have prices, waiting for one rewrite is dearer than two of them. */
export const PRICED_COMPACTION_READ_BYTES_MIN = 8 * MIB;
/** Smaller objects are read whole, with the same request as their index. */
export const COMPACTION_WHOLE_BYTES_MAX = MIB;
/** Such objects in memory between the read of their index and that of their blocks. */
export const COMPACTION_WHOLE_CACHE_BYTES = 16 * MIB;
/** One range read of compaction. */
export const COMPACTION_READ_BYTES_MAX = 32 * MIB;
/** Dead bytes between two blocks that are cheaper to read than a second request. */
export const COMPACTION_HOLE_BYTES_MAX = 256 * KIB;
/** Neighbouring blocks of a stream share an index entry up to this size (AutoMQ's value). */
export const COMPACTED_ENTRY_BYTES_MAX = MIB;
/** Objects from which on a rewrite is worth its requests: work decides, never the time. */
export const COMPACTION_OBJECTS_MIN = 8;
/** A stream with more than this leaves its stream set object: as much as is never merged again. */
export const COMPACTION_SPLIT_BYTES = 32 * MIB;
/** Age at which every stream of a stream set object gets an object of its own: at most one PUT per stream and day. */
export const COMPACTION_FORCE_SPLIT_MS = 24 * 3_600_000;
/** Stream set objects that may wait until their streams have enough to leave: what a cold read looks through. */
export const COMPACTION_WAIT_OBJECTS_MAX = 64;
/** Stream set objects of one run (AutoMQ's value). */
export const COMPACTION_SET_OBJECTS_MAX = 500;
/** Bytes of one run over stream set objects: keeps it below the time of a few minutes. */
export const COMPACTION_SET_BYTES_MAX = 10 * 1024 * MIB;
/** Index entries of one run, about 100 bytes of memory each. */
export const COMPACTION_BLOCKS_MAX = 200_000;
/** Streams of one stream set object (AutoMQ's value). */
export const COMPACTION_SET_STREAMS_MAX = 20_000;
/** Stream objects of one run: about 200 bytes each must fit one metadata entry. */
export const COMPACTION_STREAM_OBJECTS_MAX = 2_000;
/** Largest object that merging makes: above it, links are cheaper than copies. */
export const COMPACTION_MERGE_BYTES_MAX = 64 * MIB;
/** Smaller objects wait to be merged before they are linked (AutoMQ's value). */
export const COMPACTION_LINK_BYTES_MIN = 4 * MIB;
/** Bytes behind one composite object (AutoMQ's value). */
export const COMPACTION_LINK_BYTES_MAX = 10 * 1024 * MIB;
/** Objects that one run merges, or that one composite links to: their ids must fit one metadata entry. */
export const COMPACTION_LINKS_MAX = 5_000;
/** Dead bytes of a composite that are worth writing it anew when they are half of it. */
export const COMPACTION_DEAD_BYTES_MIN = 64 * MIB;
/** Dead bytes of a composite that are worth it in any case (AutoMQ's value). */
export const COMPACTION_DEAD_BYTES_MAX = 512 * MIB;
/** Objects of the cluster past which any two neighbours are put together (AutoMQ's value). */
export const COMPACTION_CLUSTER_OBJECTS_MAX = 400_000;
/** Ids that compaction reserves at once: what a dead epoch leaves unused is deleted one by one. */
export const COMPACTION_ID_BLOCK = 256;
/** How often indexes of stream set objects are read to find dead ones; not while nothing changes. */
export const COMPACTION_TIDY_MS = 3_600_000;
/** Commits of one look for stream set objects, and as many for streams: neither waits until the other has no work. */
export const COMPACTION_RUNS_MAX = 64;
