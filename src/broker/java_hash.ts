/** Where Kafka puts a group or a transactional id among the partitions of an internal topic. */

/** Java's String.hashCode over UTF-16 units, made non-negative as Kafka does it. */
export function javaHash(text: string): number {
  let hash = 0;
  for (let i = 0; i < text.length; i++) hash = (Math.imul(hash, 31) + text.charCodeAt(i)) | 0;
  return hash & 0x7fffffff;
}
