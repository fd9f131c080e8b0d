/** The broker properties of topic compaction, under Kafka's names. */
import { CLEAN_BYTES_PER_S, CLEAN_MAP_BYTES } from "../lib/limits.ts";
import type { Property } from "./property.ts";

const MIB = 1_048_576n;

export const LOG_CLEANER_PROPERTIES: readonly Property[] = [
  {
    name: "log.cleaner.enable",
    type: "boolean",
    fallback: "true",
    documentation: "Whether this node compacts the compacted topics that it leads.",
  },
  {
    name: "log.cleaner.dedupe.buffer.size",
    type: "long",
    fallback: String(CLEAN_MAP_BYTES),
    min: MIB,
    max: 1024n * MIB,
    dynamic: true,
    documentation:
      "Memory for the keys of one pass, 24 bytes each; more keys take several passes. There is one pass at a time.",
  },
  {
    name: "log.cleaner.io.max.bytes.per.second",
    type: "long",
    fallback: String(CLEAN_BYTES_PER_S),
    min: 1n,
    dynamic: true,
    documentation: "Bytes that compaction of topics reads per second; it writes no more than that.",
  },
];
