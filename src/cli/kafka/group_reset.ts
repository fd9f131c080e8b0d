/** `skerry group reset`: moves the offsets of a group without members. */
import { CLIENT_EXIT, notFoundFault } from "../client/fault.ts";
import { commitOffsets, type CommittedOffset, committedOffsets } from "../client/group_offsets.ts";
import { isShareGroup, moveShareOffsets, shareOffsets } from "../client/share_offsets.ts";
import { boundsOf, partitionsOf, PLACE_FORMS, placeIn } from "../client/place.ts";
import { table, writeJson } from "./answer.ts";
import type { Call, Command } from "./command.ts";
import { type OptionSpec, parsePartitions, WordFault, type Words } from "./syntax.ts";

export const PARTITIONS_OF_TOPICS: OptionSpec = {
  value: "TOPIC[:N,...]",
  repeats: true,
  help: "a topic or some of its partitions, may be repeated",
};

/** What --topic names; no partitions stands for all of them. */
export function topicsGiven(words: Words): { topic: string; partitions: number[] }[] {
  return words.all("topic").map((text) => {
    const colon = text.lastIndexOf(":");
    if (colon < 0) return { topic: text, partitions: [] };
    const partitions = parsePartitions(text.slice(colon + 1), `--topic ${text}:`);
    return { topic: text.slice(0, colon), partitions };
  });
}

interface Move {
  readonly topic: string;
  readonly partition: number;
  /** Null when nothing was committed. */
  readonly from: number | null;
  readonly to: number;
}

type Target = (topic: string, partitions: readonly number[]) => Promise<Map<number, number>>;

/** Where partitions go: to a place, or by some records from where they are. */
function targetOf({ words, cluster }: Call, committed: readonly CommittedOffset[]): Target {
  const shift = words.text("shift");
  if ((shift === null) === (words.text("to") === null)) {
    throw new WordFault("one of --to and --shift is needed");
  }
  if (shift === null) {
    const place = words.place("to");
    return (topic, partitions) => placeIn(cluster, topic, partitions, place);
  }
  const by = /^[+-]?\d{1,15}$/.test(shift) ? Number(shift) : NaN;
  if (Number.isNaN(by)) throw new WordFault(`--shift ${shift}: allowed is a whole number`);
  return async (topic, partitions) => {
    const bounds = await boundsOf(cluster, topic, partitions);
    return new Map(partitions.flatMap((partition) => {
      const now = committed.find((one) => one.topic === topic && one.partition === partition);
      const { start, end } = bounds.get(partition)!;
      // Where nothing was committed there is nothing to count from.
      return now === undefined
        ? []
        : [[partition, Math.min(end, Math.max(start, now.offset + by))] as const];
    }));
  };
}

async function movesOf(call: Call, committed: readonly CommittedOffset[]): Promise<Move[]> {
  const { words, cluster } = call;
  const given = topicsGiven(words);
  const target = targetOf(call, committed);
  const all = [...new Set(committed.map(({ topic }) => topic))]
    .map((topic) => ({ topic, partitions: [] as number[] }));
  const moves: Move[] = [];
  for (const { topic, partitions } of given.length > 0 ? given : all) {
    const view = await cluster.retrying((leftMs) => cluster.topic(topic, { leftMs }));
    const wanted = given.length > 0 ? partitionsOf(view, partitions) : committed
      .filter((one) => one.topic === topic).map(({ partition }) => partition);
    for (const [partition, to] of await target(topic, wanted)) {
      const now = committed.find((one) => one.topic === topic && one.partition === partition);
      moves.push({ topic, partition, from: now?.offset ?? null, to });
    }
  }
  return moves;
}

async function reset(call: Call): Promise<number> {
  const { words, cluster, io } = call;
  const group = words.operands[0]!;
  const isShare = await isShareGroup(cluster, group);
  const moves = await movesOf(
    call,
    await (isShare ? shareOffsets(cluster, group) : committedOffsets(cluster, group)),
  );
  if (moves.length === 0) {
    throw notFoundFault(`Cannot reset group ${group}: it has no offsets there, name a --topic`);
  }
  const isDry = words.isOn("dry-run");
  if (!isDry) {
    const offsets = moves.map(({ topic, partition, to }) => ({ topic, partition, offset: to }));
    await (isShare
      ? moveShareOffsets(cluster, group, offsets)
      : commitOffsets(cluster, group, offsets));
  }
  if (words.json) await writeJson(io, { group, applied: !isDry, offsets: moves });
  else {
    const rows = moves.map(({ topic, partition, from, to }) =>
      [topic, partition, from ?? "-", to].map(String)
    );
    await io.write(table(["TOPIC", "PARTITION", "FROM", "TO"], rows));
    if (isDry) io.note("Nothing was changed: --dry-run");
  }
  return CLIENT_EXIT.ok;
}

export const RESET: Command = {
  name: "group reset",
  operands: "GROUP",
  operandsMin: 1,
  operandsMax: 1,
  help: "Moves the offsets of a group that has no members.",
  options: {
    "to": { value: "PLACE", help: PLACE_FORMS },
    "shift": { value: "+N|-N", help: "by so many records instead" },
    "topic": PARTITIONS_OF_TOPICS,
    "dry-run": { value: null, help: "says what would move and moves nothing" },
  },
  run: reset,
};
