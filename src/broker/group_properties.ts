/** The table of what a group may set for itself; all else it has from the broker. */
import { INT_MAX, type Property } from "./property.ts";

export interface GroupProperty extends Property {
  /** The broker's property of the same meaning, which holds while the group sets nothing. */
  readonly broker: string | null;
  /** Broker properties that bound a value of the group's own. */
  readonly bounds: { readonly min: string; readonly max: string } | null;
}

/** `group.` + kind + name for the broker is kind + name for the group. */
function int(
  kind: "consumer" | "share",
  name: string,
  [fallback, min]: readonly [fallback: number, min: number],
  documentation: string,
): GroupProperty {
  return {
    name: `${kind}.${name}`,
    type: "int",
    fallback: String(fallback),
    min: BigInt(min),
    max: INT_MAX,
    documentation,
    broker: `group.${kind}.${name}`,
    bounds: { min: `group.${kind}.min.${name}`, max: `group.${kind}.max.${name}` },
  };
}

/** The durations that Java reads, without signs: a negative one is refused there as well. */
const RESETS =
  /^(?:earliest|latest|by_duration:[Pp](?!$)(?:\d{1,9}[Dd])?(?:[Tt](?=\d)(?:\d{1,9}[Hh])?(?:\d{1,9}[Mm])?(?:\d{1,9}(?:[.,]\d{0,9})?[Ss])?)?)$/;

const ROWS: readonly GroupProperty[] = [
  int(
    "consumer",
    "heartbeat.interval.ms",
    [5000, 1],
    "How often members of this consumer group are told to send heartbeats.",
  ),
  int(
    "consumer",
    "session.timeout.ms",
    [45_000, 1],
    "Silence after which a member of this consumer group is fenced.",
  ),
  {
    name: "share.auto.offset.reset",
    type: "string",
    fallback: "latest",
    like: {
      like: RESETS,
      words: "either 'earliest', 'latest' or of the format 'by_duration:<PnDTnHnMn.nS>'.",
    },
    documentation: "Where this share group begins in a partition that it has not read before.",
    broker: null,
    bounds: null,
  },
  int(
    "share",
    "heartbeat.interval.ms",
    [5000, 1],
    "How often members of this share group are told to send heartbeats.",
  ),
  {
    name: "share.isolation.level",
    type: "string",
    fallback: "read_uncommitted",
    words: ["read_committed", "read_uncommitted"],
    documentation:
      "Whether this share group reads records of transactions that were not committed.",
    broker: null,
    bounds: null,
  },
  int(
    "share",
    "record.lock.duration.ms",
    [30_000, 1000],
    "How long a member of this share group has a record for itself.",
  ),
  int(
    "share",
    "session.timeout.ms",
    [45_000, 1],
    "Silence after which a member of this share group is fenced.",
  ),
];

export const GROUP_PROPERTIES: ReadonlyMap<string, GroupProperty> = new Map(
  ROWS.map((property) => [property.name, property]),
);
