/** Where Kafka puts a group or a transactional id among the partitions of an internal topic. */

/** Java's String.hashCode over UTF-16 units, without its sign; the one value that has no positive counterpart is 0. */
export function javaHash(text: string): number {
  let hash = 0;
  for (let i = 0; i < text.length; i++) hash = (Math.imul(hash, 31) + text.charCodeAt(i)) | 0;
  return hash === -(2 ** 31) ? 0 : Math.abs(hash);
}
