/** What the clients of one run share: the address, the history, the topics, and when to end. */
import { type Random, randomInt } from "../../src/env/random.ts";
import { Hangup, pause, type Soak } from "../soak/cluster.ts";
import type { History } from "./history.ts";

export interface Topic {
  readonly name: string;
  readonly partitions: number;
}

/** Written by everybody. */
export const LOG = { name: "log", partitions: 3 } as const;
/** Copied by those who read and write in one transaction, each into an output of its own. */
export const INPUT = { name: "in", partitions: 2 } as const;

export const FOR_EVER = 1_000_000;
const RETRY_PAUSE_MS = 50;

export interface World {
  readonly soak: Soak;
  readonly history: History;
  readonly random: Random;
  /** Whole name of a partition to the offset behind its last record; null until nobody writes any more. */
  inputEnds: ReadonlyMap<string, number> | null;
  /** Operations that are tried again end then, whatever came of them. */
  deadlineMs: number;
}

export function partitionName(topic: string, partition: number): string {
  return `${topic}/${partition}`;
}

export interface Place {
  readonly topic: string;
  readonly partition: number;
}

export function placesOf(topics: readonly Topic[]): Place[] {
  return topics.flatMap(({ name, partitions }) =>
    Array.from({ length: partitions }, (_, partition) => ({ topic: name, partition }))
  );
}

/** No two records have the same bytes; some are long enough for more than one block. */
export function valueOf(name: string, n: number): string {
  const length = n % 50 === 0 ? 3_000 : n * 37 % 150;
  return `${name}/${n}:${String.fromCharCode(97 + n % 26).repeat(length)}`;
}

/** Between two requests, so that the machine is not what is tested. */
export async function breathe({ random }: World, ms = 40): Promise<void> {
  await pause(randomInt(random, ms));
}

/** Tries until something else than null comes back; a lost connection is another try. Null: out of time. */
export async function again<T>(
  { deadlineMs }: World,
  attempt: (isFirst: boolean) => Promise<T | null>,
): Promise<T | null> {
  for (let isFirst = true; performance.now() < deadlineMs; isFirst = false) {
    try {
      const found = await attempt(isFirst);
      if (found !== null) return found;
    } catch (error) {
      if (!(error instanceof Hangup)) throw error;
    }
    await pause(RETRY_PAUSE_MS);
  }
  return null;
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? `${error.name}: ${error.message}` : String(error);
}

/** Session after session until writing is over; what a session throws is part of the game. */
export async function sessions(
  { soak }: World,
  { name, goesOn }: { readonly name: string; goesOn(): boolean },
  session: (number: number) => Promise<void>,
): Promise<void> {
  for (let number = 1; goesOn(); number++) {
    try {
      await session(number);
      soak.count(`${name}: sessions that ended`);
    } catch (error) {
      soak.count(`${name}: ${messageOf(error).slice(0, 80)}`);
      await pause(RETRY_PAUSE_MS * 4);
    }
  }
}
