/**
 * Which names a cluster may have, and how a name becomes part of a key. People see the name as it is; keys hold
 * it percent-encoded, so that one path segment fits every store: no slash, no control character, at most 255 bytes
 * with `_kafka_` in front of it.
 */
import { toUtf8 } from "./bytes.ts";
import { CLUSTER_ID_BYTES_MAX } from "./limits.ts";

/** For messages. */
export const CLUSTER_ID_ALLOWED =
  `printable text of 1 to ${CLUSTER_ID_BYTES_MAX} UTF-8 bytes, without blanks at its ends`;

/** Control characters, halves of surrogate pairs, line and paragraph separators. */
const UNPRINTABLE = /[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u;

export function isClusterId(text: string): boolean {
  if (text === "" || text.trim() !== text || UNPRINTABLE.test(text)) return false;
  return toUtf8(text).length <= CLUSTER_ID_BYTES_MAX;
}

/** Letters, digits and . _ ~ - stay; every other byte becomes % and two hex digits. One name, one segment. */
export function clusterSegment(clusterId: string): string {
  return encodeURIComponent(clusterId).replace(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}
