/**
 * Reads committed records and writes each into an output, with its offset in the same transaction. Some of its
 * incarnations stop before the end, and go on once their successor is at work.
 */
import { randomInt } from "../../src/env/random.ts";
import { errorName } from "../../src/protocol/error_code.ts";
import { offsetFetchApi } from "../../src/protocol/message/09_offset_fetch.ts";
import { Hangup, pause, WireClient } from "../soak/cluster.ts";
import { Reader } from "./reading.ts";
import { Incarnation, Over } from "./wire_transactions.ts";
import { RETRIABLE } from "./wire_idempotent.ts";
import { again, breathe, INPUT, partitionName, type World } from "./world.ts";

/** Of one transaction, while records still come. */
const RECORDS_MAX = 40;
const ABORTED = 0.15;
const LEFT = 0.1;
/** A zombie goes on within this, while its successor has a transaction open. */
const LATE_MS_MAX = 200;

export interface CopyPlan {
  readonly id: string;
  readonly group: string;
  readonly output: string;
  readonly isV2: boolean;
}

/** By partition; 0 where nothing was committed. Null: out of time. */
export async function committedPositions(world: World, group: string): Promise<number[] | null> {
  const wire = new WireClient(world.soak.address);
  const partitionIndexes = Array.from({ length: INPUT.partitions }, (_, i) => i);
  try {
    return await again(world, async () => {
      const request = {
        groupId: group,
        topics: [{ name: INPUT.name, partitionIndexes }],
        requireStable: true,
      };
      const answer = await wire.call(offsetFetchApi, 7, request);
      const found = answer.topics[0]?.partitions ?? [];
      const errors = [answer.errorCode, ...found.map(({ errorCode }) => errorCode)].map(errorName);
      if (errors.some((error) => RETRIABLE.has(error))) return null;
      const bad = errors.find((error) => error !== "NONE");
      if (bad !== undefined) throw new Error(`OffsetFetch: ${bad}`);
      return partitionIndexes.map((index) =>
        Math.max(
          0,
          Number(found.find(({ partitionIndex }) => partitionIndex === index)?.committedOffset),
        )
      );
    });
  } finally {
    wire.close();
  }
}

export function isCopied({ inputEnds }: World, positions: readonly number[]): boolean {
  if (inputEnds === null) return false;
  return positions.every((at, i) => at >= (inputEnds.get(partitionName(INPUT.name, i)) ?? 0));
}

async function tryLate(world: World, old: Incarnation): Promise<void> {
  await breathe(world, LATE_MS_MAX);
  try {
    await old.end(true);
  } catch (error) {
    if (!(error instanceof Over || error instanceof Hangup)) throw error;
  } finally {
    old.close();
  }
}

export async function wireCopier(world: World, plan: CopyPlan): Promise<void> {
  const { soak } = world;
  const reader = new Reader(world, `reader of ${plan.id}`, "committed");
  const copies = { count: 0 };
  let left: Incarnation | null = null;
  for (let number = 1; performance.now() < world.deadlineMs; number++) {
    const own: Incarnation = new Incarnation(world, { ...plan, number });
    try {
      await own.init();
      const positions = await committedPositions(world, plan.group);
      if (positions === null) break;
      if (left !== null) {
        void tryLate(world, left).catch((error: unknown) => soak.guard(plan.id, error));
      }
      left = null;
      const outcome = await copy(world, plan, { own, reader, positions, copies });
      if (outcome === "done") return;
      left = own;
    } catch (error) {
      if (!(error instanceof Over || error instanceof Hangup)) soak.guard(plan.id, error);
      soak.count(`${plan.id}: ${error instanceof Error ? error.message : "error"}`);
      await pause(100);
    } finally {
      if (left !== own) own.close();
    }
  }
  soak.violation(`${plan.id} did not come to the end of its input`);
}

interface Copying {
  readonly own: Incarnation;
  readonly reader: Reader;
  readonly positions: number[];
  readonly copies: { count: number };
}

/** Until all is copied, or a transaction is left as it is. */
async function copy(
  world: World,
  { id, group, output }: CopyPlan,
  { own, reader, positions, copies }: Copying,
): Promise<"done" | "left"> {
  while (!isCopied(world, positions)) {
    const partition = randomInt(world.random, INPUT.partitions);
    const place = { topic: INPUT.name, partition };
    const from = positions[partition]!;
    const found = (await reader.read([{ place, from }], { maxWaitMs: 50 }))
      .get(partitionName(INPUT.name, partition));
    const most = world.soak.writing ? 1 + randomInt(world.random, RECORDS_MAX) : undefined;
    const rows = (found?.rows ?? []).slice(0, most);
    if (rows.length === 0) {
      positions[partition] = found?.next ?? from;
      await breathe(world);
      continue;
    }
    own.begin();
    const next = rows.at(-1)![0] + 1;
    const steps = [
      () =>
        own.produce({
          topic: output,
          partition: 0,
          values: rows.map(([, value]) => `${id}/${++copies.count} of ${value}`),
          sources: rows.map(([offset]) => `${partitionName(INPUT.name, partition)}@${offset}`),
        }),
      () => own.commitOffset(group, INPUT.name, partition, next),
    ];
    // Either may be what begins the transaction.
    for (const step of world.random.float() < 0.5 ? steps : steps.toReversed()) await step();
    const choice = world.random.float();
    if (choice < LEFT && world.soak.writing) return "left";
    const commits = choice >= LEFT + ABORTED || !world.soak.writing;
    await own.end(commits);
    world.soak.count(`${id}: ${commits ? "committed" : "aborted"}`);
    if (commits) positions[partition] = next;
  }
  return "done";
}
