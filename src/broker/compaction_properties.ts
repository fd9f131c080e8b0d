/** The broker properties that say how objects are compacted. */
import {
  COMPACTION_BYTES_PER_S,
  COMPACTION_CLUSTER_OBJECTS_MAX,
  COMPACTION_DEAD_BYTES_MAX,
  COMPACTION_FORCE_SPLIT_MS,
  COMPACTION_INTERVAL_MS,
  COMPACTION_LINK_BYTES_MAX,
  COMPACTION_LINK_BYTES_MIN,
  COMPACTION_MEMORY_BYTES,
  COMPACTION_MERGE_BYTES_MAX,
  COMPACTION_OBJECTS_MIN,
  COMPACTION_SET_OBJECTS_MAX,
  COMPACTION_SET_STREAMS_MAX,
  COMPACTION_STREAM_OBJECTS_MAX,
  STREAM_OBJECT_SPLIT_BYTES,
} from "../lib/limits.ts";
import type { Property } from "./property.ts";

const MIB = 1024 * 1024;

function long(
  name: string,
  fallback: number,
  [min, max]: readonly [min: number, max: number],
  documentation: string,
): Property {
  return {
    name: `skerry.compaction.${name}`,
    type: "long",
    fallback: String(fallback),
    min: BigInt(min),
    max: BigInt(max),
    documentation,
  };
}

const MAX = Number.MAX_SAFE_INTEGER;

export const COMPACTION_PROPERTIES: readonly Property[] = [
  {
    name: "skerry.compaction.enable",
    type: "boolean",
    fallback: "true",
    documentation:
      "Whether this node puts its objects together; without it their number only grows.",
  },
  long(
    "interval.ms",
    COMPACTION_INTERVAL_MS,
    [1_000, MAX],
    "How often it looks whether there is enough to do; nothing happens while nothing changed.",
  ),
  long("memory.bytes", COMPACTION_MEMORY_BYTES, [MIB, 1_024 * MIB], "Blocks in memory at once."),
  long("bytes.per.second", COMPACTION_BYTES_PER_S, [MIB, MAX], "Bytes that it reads per second."),
  long(
    "objects.min",
    COMPACTION_OBJECTS_MIN,
    [2, 1_000],
    "Neighbouring objects from which on a rewrite is worth its requests.",
  ),
  long(
    "split.bytes",
    STREAM_OBJECT_SPLIT_BYTES,
    [1, MAX],
    "More bytes of one stream than this leave the objects that streams share.",
  ),
  long(
    "force.split.ms",
    COMPACTION_FORCE_SPLIT_MS,
    [60_000, MAX],
    "Age at which every stream in a shared object gets one of its own.",
  ),
  long(
    "set.objects.max",
    COMPACTION_SET_OBJECTS_MAX,
    [2, 10_000],
    "Shared objects that one run puts together.",
  ),
  long(
    "set.streams.max",
    COMPACTION_SET_STREAMS_MAX,
    [1, 100_000],
    "Streams of one shared object that a run makes.",
  ),
  long(
    "stream.objects.max",
    COMPACTION_STREAM_OBJECTS_MAX,
    [1, COMPACTION_STREAM_OBJECTS_MAX],
    "Objects of single streams that one run makes.",
  ),
  long(
    "merge.bytes.max",
    COMPACTION_MERGE_BYTES_MAX,
    [1, MAX],
    "Largest object that merging makes; larger ones are only linked.",
  ),
  long(
    "link.bytes.min",
    COMPACTION_LINK_BYTES_MIN,
    [0, MAX],
    "Smaller objects wait to be merged before they are linked.",
  ),
  long("link.bytes.max", COMPACTION_LINK_BYTES_MAX, [1, MAX], "Bytes behind one composite object."),
  long(
    "dead.bytes.max",
    COMPACTION_DEAD_BYTES_MAX,
    [1, MAX],
    "Deleted bytes that a composite object may hold on to.",
  ),
  long(
    "cluster.objects.max",
    COMPACTION_CLUSTER_OBJECTS_MAX,
    [1, MAX],
    "Objects of the cluster past which any two neighbours are put together.",
  ),
];
