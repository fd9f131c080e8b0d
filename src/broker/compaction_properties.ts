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
  COMPACTION_SPLIT_BYTES,
  COMPACTION_STREAM_OBJECTS_MAX,
} from "../lib/limits.ts";
import { ownLong, type Property } from "./property.ts";

const MIB = 1024 * 1024;

const MAX = Number.MAX_SAFE_INTEGER;

export const COMPACTION_PROPERTIES: readonly Property[] = [
  {
    name: "skerry.compaction.enable",
    type: "boolean",
    fallback: "true",
    documentation:
      "Whether this node puts its objects together; without it their number only grows.",
  },
  ownLong(
    "compaction.interval.ms",
    COMPACTION_INTERVAL_MS,
    [1_000, MAX],
    "How often it looks whether there is enough to do; nothing happens while nothing changed.",
  ),
  ownLong(
    "compaction.memory.bytes",
    COMPACTION_MEMORY_BYTES,
    [MIB, 1_024 * MIB],
    "Blocks in memory at once.",
  ),
  ownLong(
    "compaction.bytes.per.second",
    COMPACTION_BYTES_PER_S,
    [MIB, MAX],
    "Bytes that it may read per second in any case; more while uploads are fast.",
  ),
  ownLong(
    "compaction.objects.min",
    COMPACTION_OBJECTS_MIN,
    [2, 1_000],
    "Neighbouring objects from which on a rewrite is worth its requests.",
  ),
  ownLong(
    "compaction.split.bytes",
    COMPACTION_SPLIT_BYTES,
    [1, MAX],
    "More bytes of one stream than this leave the objects that streams share.",
  ),
  ownLong(
    "compaction.force.split.ms",
    COMPACTION_FORCE_SPLIT_MS,
    [60_000, MAX],
    "Age at which every stream in a shared object gets one of its own.",
  ),
  ownLong(
    "compaction.set.objects.max",
    COMPACTION_SET_OBJECTS_MAX,
    [2, 10_000],
    "Shared objects that one run puts together.",
  ),
  ownLong(
    "compaction.set.streams.max",
    COMPACTION_SET_STREAMS_MAX,
    [1, 100_000],
    "Streams of one shared object that a run makes.",
  ),
  ownLong(
    "compaction.stream.objects.max",
    COMPACTION_STREAM_OBJECTS_MAX,
    [1, COMPACTION_STREAM_OBJECTS_MAX],
    "Objects of single streams that one run makes.",
  ),
  ownLong(
    "compaction.merge.bytes.max",
    COMPACTION_MERGE_BYTES_MAX,
    [1, MAX],
    "Largest object that merging makes; larger ones are only linked.",
  ),
  ownLong(
    "compaction.link.bytes.min",
    COMPACTION_LINK_BYTES_MIN,
    [0, MAX],
    "Smaller objects wait to be merged before they are linked.",
  ),
  ownLong(
    "compaction.link.bytes.max",
    COMPACTION_LINK_BYTES_MAX,
    [1, MAX],
    "Bytes behind one composite object.",
  ),
  ownLong(
    "compaction.dead.bytes.max",
    COMPACTION_DEAD_BYTES_MAX,
    [1, MAX],
    "Deleted bytes that a composite object may hold on to.",
  ),
  ownLong(
    "compaction.cluster.objects.max",
    COMPACTION_CLUSTER_OBJECTS_MAX,
    [1, MAX],
    "Objects of the cluster past which any two neighbours are put together.",
  ),
];
