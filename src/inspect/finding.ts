/** What `fsck` has to say, one finding at a time, so that nothing piles up. */

/** Something is lost or wrong. */
export type DamageKind =
  /** The metadata itself: cluster object, log entry, snapshot, or rows that contradict each other. */
  | "metadata"
  /** A committed object is not in the store. */
  | "missing"
  /** A committed object has another size than its row. */
  | "size"
  /** Footer or index do not parse, or do not match their checksum, row or digest. */
  | "index"
  /** A block does not parse, or its index entry says something else. */
  | "block"
  /** An object's bytes do not match the checksum of its row. */
  | "checksum"
  /** A record is not what its stream carries, or a Kafka batch fails its CRC. */
  | "batch"
  /** Offsets of a stream are in no object, in two, or past its end. */
  | "range"
  /** A WAL that recovery refuses. */
  | "wal"
  /** The store holds more than its metadata knows of: the end of the metadata log is lost. */
  | "ahead";

export type Finding =
  | {
    readonly severity: "damage";
    readonly kind: DamageKind;
    readonly key: string;
    readonly detail: string;
  }
  /** `orphan`: no row names it, only an audit finds it. `garbage`: the node deletes it in time. */
  | {
    readonly severity: "reclaimable";
    readonly kind: "orphan" | "garbage";
    readonly key: string;
    readonly detail: string;
    readonly bytes: number;
  }
  | {
    readonly severity: "note";
    readonly kind: "foreign" | "wal-tail";
    readonly key: string;
    readonly detail: string;
  };

/** Waited for: a slow reader of the findings holds up the check, not its memory. */
export type Report = (finding: Finding) => Promise<void>;

export function damage(kind: DamageKind, key: string, detail: string): Finding {
  return { severity: "damage", kind, key, detail };
}

export function findingLine(finding: Finding): string {
  const { severity, kind, key, detail } = finding;
  const bytes = finding.severity === "reclaimable" ? ` (${finding.bytes} bytes)` : "";
  return `${severity.padEnd(11)} ${kind.padEnd(8)} ${key}  ${detail}${bytes}`;
}

/** At most one finding of each kind: a broken object breaks every check behind the first. */
export function firstOfKind(report: Report): Report {
  const seen = new Set<string>();
  return async (finding) => {
    if (seen.has(finding.kind)) return;
    seen.add(finding.kind);
    await report(finding);
  };
}
