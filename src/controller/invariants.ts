/**
 * The control plane's invariants as predicates: null, or what is broken. Tests and the simulator check
 * them after every entry; nothing here runs in a serving node.
 */
import type { ObjectId, Offset, StreamId } from "../lib/brand.ts";
import { equalBytes, toHex } from "../lib/bytes.ts";
import type { StreamRange } from "../storage/ports.ts";
import { decodeEntry, entryHash, NO_HASH } from "./entry.ts";
import type { StreamRow } from "./image.ts";
import { clipBelow, overlaps, rangesByStream, sameSpans, type Span } from "./ranges.ts";
import type { StateImage } from "./state.ts";

export type Problem = string | null;

/** A commit that a writer was told of. */
export interface Report {
  readonly at: number;
  readonly bytes: Uint8Array;
}

/** I1: what was reported committed is what stands at its position. */
export function reportsHold(
  reports: readonly Report[],
  log: ReadonlyMap<number, Uint8Array>,
): Problem {
  for (const { at, bytes } of reports) {
    const stored = log.get(at);
    if (stored === undefined || !equalBytes(stored, bytes)) {
      return `I1: report at ${at} is not there`;
    }
  }
  return null;
}

/** I2: entries form a chain without gaps. `log` starts with the first entry. */
export function chainHolds(log: readonly Uint8Array[]): Problem {
  let previous = NO_HASH;
  for (const [i, bytes] of log.entries()) {
    const entry = decodeEntry(bytes);
    if (entry.at !== i + 1) return `I2: entry ${i + 1} says it is ${entry.at}`;
    if (!equalBytes(entry.previous, previous)) {
      return `I2: entry ${entry.at} follows ${toHex(entry.previous)}, not ${toHex(previous)}`;
    }
    previous = entryHash(bytes);
  }
  return null;
}

/** I3: a command of an incarnation stands in one entry at most. */
export function commandsAppliedOnce(log: readonly Uint8Array[]): Problem {
  const last = new Map<string, number>();
  for (const bytes of log) {
    const { at, writer } = decodeEntry(bytes);
    const before = last.get(writer.incarnation) ?? 0;
    if (writer.firstCommand <= before || writer.lastCommand < writer.firstCommand) {
      return `I3: entry ${at} repeats command ${writer.firstCommand} of ${writer.incarnation}`;
    }
    last.set(writer.incarnation, writer.lastCommand);
  }
  return null;
}

type Stage = "reserved" | "committed" | "destroyed" | "purged";
const NEXT: Readonly<Record<Stage, readonly Stage[]>> = {
  reserved: ["reserved", "committed", "destroyed", "purged"],
  committed: ["committed", "destroyed"],
  destroyed: ["destroyed", "purged"],
  purged: ["purged"],
};

/** Of every id that was ever handed out, in one pass: this runs after each entry of a simulation. */
function stagesOf(image: StateImage): Stage[] {
  const stages = Array.from<Stage>({ length: image.nextObjectId }).fill("purged");
  for (const { from, to, purged, sweptAt } of image.idBlocks.values()) {
    stages.fill(sweptAt === null ? "reserved" : "destroyed", from, to);
    for (const { start, end } of purged) {
      stages.fill("purged", Math.max(start, from), Math.min(end, to));
    }
  }
  for (const { objectId, state } of image.objects.values()) stages[objectId] = state;
  return stages;
}

/** What two images are compared by; taken before an entry is applied. */
export interface Summary {
  readonly nodeEpochs: ReadonlyMap<number, number>;
  readonly leaderEpochs: ReadonlyMap<string, number>;
  readonly stages: readonly Stage[];
}

export function summaryOf(image: StateImage): Summary {
  return {
    nodeEpochs: new Map([...image.nodes.values()].map(({ nodeId, epoch }) => [nodeId, epoch])),
    leaderEpochs: new Map(
      [...image.partitions.entries()].map(([key, { leaderEpoch }]) => [key, leaderEpoch]),
    ),
    stages: stagesOf(image),
  };
}

/** I4 and I13: epochs of nodes and leaders never go back. */
export function epochsIncrease(before: Summary, image: StateImage): Problem {
  for (const [node, epoch] of before.nodeEpochs) {
    const now = image.nodes.get(node as never)?.epoch ?? -1;
    if (now < epoch) return `I4: node ${node} fell from epoch ${epoch} to ${now}`;
  }
  for (const [key, epoch] of before.leaderEpochs) {
    const now = image.partitions.get(key)?.leaderEpoch ?? Infinity;
    if (now < epoch) return `I13: partition ${key} fell from epoch ${epoch} to ${now}`;
  }
  return null;
}

/** I10: an id moves forward only. Ids that were not reserved before may be anywhere. */
export function idsMoveForward(before: Summary, image: StateImage): Problem {
  const after = stagesOf(image);
  for (const [id, stage] of before.stages.entries()) {
    const now = after[id]!;
    if (now !== stage && !NEXT[stage].includes(now)) {
      return `I10: object ${id} went from ${stage} to ${now}`;
    }
  }
  return null;
}

export function rangeProblem({ streamId, open, start, end, ranges }: StreamRow): Problem {
  const name = `I7: stream ${streamId}`;
  if (ranges.length === 0) return `${name} has no range`;
  for (const [i, range] of ranges.entries()) {
    const next = ranges[i + 1];
    if (next === undefined) {
      if ((range.end === null) !== open) return `${name}: open is ${open}, its end ${range.end}`;
      if (range.end !== null && range.end !== end) {
        return `${name} ends at ${end}, not ${range.end}`;
      }
      continue;
    }
    if (range.end !== next.start) return `${name}: ${range.end} is followed by ${next.start}`;
    if (range.end <= range.start) return `${name}: an empty range inside`;
    if (next.epoch <= range.epoch) return `${name}: epoch ${next.epoch} after ${range.epoch}`;
  }
  const first = ranges[0]!.start;
  return first <= start ? null : `${name} starts at ${start}, its ranges at ${first}`;
}

/** I7: ranges are contiguous and disjoint, epochs increase. */
export function rangesHold(image: StateImage): Problem {
  for (const row of image.streams.values()) {
    const problem = rangeProblem(row);
    if (problem !== null) return problem;
  }
  return null;
}

function clipped(spans: readonly Span[], start: Offset, end: Offset): Span[] {
  return clipBelow(spans, start).filter((span) => span.start < end)
    .map((span) => ({ start: span.start, end: Math.min(span.end, end) }));
}

/**
 * I8: committed objects cover [start, end) of every stream exactly once. `streamSets` holds the range
 * lists that metadata only keeps digests of.
 */
export function objectsCover(
  image: StateImage,
  streamSets: ReadonlyMap<ObjectId, readonly StreamRange[]>,
): Problem {
  const spans = new Map<StreamId, Span[]>();
  for (const ids of image.streamSets.values()) {
    for (const id of ids) {
      for (const [stream, list] of rangesByStream(streamSets.get(id) ?? [])) {
        spans.set(stream, [...(spans.get(stream) ?? []), ...list]);
      }
    }
  }
  for (const row of image.streams.values()) {
    const own = row.objects.map((id) => image.objects.get(id)!.stream!);
    const all = clipped([...own, ...(spans.get(row.streamId) ?? [])], row.start, row.end);
    const whole = row.start < row.end ? [{ start: row.start, end: row.end }] : [];
    if (overlaps(all)) return `I8: stream ${row.streamId}: objects overlap`;
    if (!sameSpans(all, whole)) return `I8: stream ${row.streamId}: objects leave a gap`;
  }
  return null;
}
