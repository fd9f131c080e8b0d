/** Where a group or a transactional id lies among the partitions of an internal topic. */

/** Java's String.hashCode: over UTF-16 units, signed. */
function javaHash(text: string): number {
  let hash = 0;
  for (let i = 0; i < text.length; i++) hash = (Math.imul(hash, 31) + text.charCodeAt(i)) | 0;
  return hash;
}

/**
 * How ids are spread. `kafka`: by the amount of the hash (Utils.abs of kafka-clients). `masked`: without its top
 * bit, as builds before 2026-11-30 did it; what they have stored stays where it is.
 */
export type Placement = "kafka" | "masked";

export function partitionOfId(id: string, partitions: number, placement: Placement): number {
  const hash = javaHash(id);
  if (placement === "masked") return (hash & 0x7fffffff) % partitions;
  // The one hash that has no positive counterpart counts as 0.
  return (hash === -(2 ** 31) ? 0 : Math.abs(hash)) % partitions;
}
