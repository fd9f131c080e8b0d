/** A broker that does in minutes what takes days, and the topics that it serves: 200 partitions. */

/** Objects are kept this long after nobody needs them. */
export const OBJECT_RETAIN_MS = 15_000;
/** Small, so that cold readers find nothing in memory. */
export const LOG_CACHE_BYTES = 16_777_216;

const PROPERTIES = {
  "auto.create.topics.enable": "false",
  "group.initial.rebalance.delay.ms": "200",
  "log.retention.check.interval.ms": "3000",
  "skerry.compaction.interval.ms": "1000",
  "skerry.compaction.objects.min": "4",
  "skerry.compaction.split.bytes": "262144",
  "skerry.compaction.merge.bytes.max": "1048576",
  "skerry.compaction.link.bytes.min": "524288",
  "skerry.compaction.dead.bytes.max": "1048576",
  "skerry.compaction.force.split.ms": "150000",
  "skerry.log.cache.bytes": String(LOG_CACHE_BYTES),
  "skerry.upload.block.bytes": "2097152",
  "skerry.upload.interval.ms": "4000",
  "skerry.upload.split.bytes": "262144",
  "skerry.objects.retain.ms": String(OBJECT_RETAIN_MS),
  "skerry.metadata.snapshot.entries": "50",
  "skerry.metadata.trim.age.ms": "120000",
  "skerry.audit.interval.ms": "60000",
  "skerry.audit.requests.per.second": "10",
} as const;

export function propertyWords(): string[] {
  return Object.entries(PROPERTIES).flatMap(([name, value]) => ["--set", `${name}=${value}`]);
}

export interface TopicPlan {
  readonly name: string;
  readonly partitions: number;
  readonly configs: Readonly<Record<string, string>>;
  /** Records older than this may be gone; null: never by age. */
  readonly retentionMs: number | null;
  /** Closed segments above this may be gone; null: never by size. */
  readonly retentionBytes: number | null;
}

/** The smallest segment that the broker takes. */
export const SEGMENT_BYTES = 1_048_576;

function plan(
  name: string,
  partitions: number,
  { ms = null, bytes = null }: { ms?: number | null; bytes?: number | null } = {},
): TopicPlan {
  const configs: Record<string, string> = {};
  configs["retention.ms"] = String(ms ?? -1);
  if (ms !== null) configs["segment.ms"] = String(Math.floor(ms / 4));
  if (bytes !== null) {
    configs["retention.bytes"] = String(bytes);
    configs["segment.bytes"] = String(SEGMENT_BYTES);
  }
  return { name, partitions, configs, retentionMs: ms, retentionBytes: bytes };
}

/** Kept for ever, with little traffic. */
export const KEPT = plan("kept", 60);
/** Dropped by age. */
export const AGED = plan("aged", 80, { ms: 40_000 });
/** Dropped by size. */
export const SIZED = plan("sized", 20, { bytes: SEGMENT_BYTES });
/** Read by groups of real clients. */
export const GROUPED = plan("grouped", 20);
/** Topics of this size come and go all the time: the other 20 partitions. */
export const PASSING_TOPICS = 4;

export function passingPlan(name: string): TopicPlan {
  return plan(name, 5);
}

export const PARTITIONS = KEPT.partitions + AGED.partitions + SIZED.partitions +
  GROUPED.partitions + PASSING_TOPICS * passingPlan("").partitions;
