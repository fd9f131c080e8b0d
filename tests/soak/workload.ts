/** Everybody who writes and reads: 200 partitions, at rates that go up and down. */
import { type Random, randomInt, seededRandom } from "../../src/env/random.ts";
import { createTopic, passTopics } from "./admin.ts";
import type { PartitionBook } from "./book.ts";
import { pause, type Soak, WireClient } from "./cluster.ts";
import {
  GroupBook,
  kafkajsGroup,
  kafkajsWriter,
  platformaticGroup,
  platformaticWriter,
} from "./groups.ts";
import { followTail, readCold } from "./readers.ts";
import { AGED, GROUPED, KEPT, SIZED } from "./settings.ts";
import { Writer } from "./writer.ts";

const TAIL_READERS = 4;
const COLD_READERS = 3;
/** Pauses are multiplied by one of these, for some seconds. */
const TEMPERS = [0.3, 1, 1, 1, 3, 10];
const TEMPER_MS = 5_000;
const PASSING_MS = 12_000;

export interface Workload {
  readonly groups: readonly GroupBook[];
  readonly grouped: readonly PartitionBook[];
  /** Resolves when all writers are done, which `soak.writing` asks for. */
  readonly written: Promise<unknown>;
  readonly read: Promise<unknown>;
}

class Temper {
  #factor = 1;

  async run(soak: Soak, random: Random): Promise<void> {
    while (soak.writing) {
      this.#factor = TEMPERS[randomInt(random, TEMPERS.length)]!;
      await pause(TEMPER_MS);
    }
  }

  times(ms: number): () => number {
    return () => ms * this.#factor;
  }
}

/** A part that fails is a violation, and its end is awaited like any other. */
function part(soak: Soak, name: string, done: Promise<unknown>): Promise<unknown> {
  return done.catch((error: unknown) => {
    soak.violation(`${name}: ${error instanceof Error ? error.stack : String(error)}`);
  });
}

interface Crew {
  readonly topic: PartitionBook[];
  readonly name: string;
  readonly idempotent: boolean;
  readonly pauseMs: number;
  readonly recordsMax: number;
}

export async function startWorkload(soak: Soak, seed: number): Promise<Workload> {
  const admin = new WireClient(soak.address);
  const kept = await createTopic(soak, admin, KEPT);
  const aged = await createTopic(soak, admin, AGED);
  const sized = await createTopic(soak, admin, SIZED);
  const grouped = await createTopic(soak, admin, GROUPED);
  admin.close();
  const temper = new Temper();
  let seeds = seed * 1_000;
  const random = () => seededRandom(seeds++);
  const crews: Crew[] = [
    { topic: kept, name: "once-kept-0", idempotent: true, pauseMs: 150, recordsMax: 4 },
    { topic: kept, name: "once-kept-1", idempotent: true, pauseMs: 400, recordsMax: 20 },
    { topic: kept, name: "plain-kept", idempotent: false, pauseMs: 300, recordsMax: 4 },
    { topic: aged, name: "once-aged-0", idempotent: true, pauseMs: 60, recordsMax: 8 },
    { topic: aged, name: "once-aged-1", idempotent: true, pauseMs: 60, recordsMax: 8 },
    { topic: aged, name: "plain-aged", idempotent: false, pauseMs: 60, recordsMax: 8 },
    { topic: sized, name: "once-sized-0", idempotent: true, pauseMs: 150, recordsMax: 12 },
    { topic: sized, name: "once-sized-1", idempotent: true, pauseMs: 150, recordsMax: 12 },
    { topic: sized, name: "plain-sized", idempotent: false, pauseMs: 150, recordsMax: 8 },
    { topic: grouped, name: "once-grouped", idempotent: true, pauseMs: 200, recordsMax: 5 },
  ];
  const writers = crews.map(({ topic, pauseMs, ...rest }) => {
    const pace = temper.times(pauseMs);
    return new Writer(soak, { ...rest, books: topic, random: random(), pauseMs: pace }).done;
  });
  const passing = { random: random(), everyMs: PASSING_MS, pauseMs: temper.times(200) };
  const groups = [new GroupBook("group-kafkajs"), new GroupBook("group-platformatic")];
  return {
    groups,
    grouped,
    written: Promise.all([
      ...writers.map((done, i) => part(soak, crews[i]!.name, done)),
      part(soak, "temper", temper.run(soak, random())),
      part(soak, "topics that pass", passTopics(soak, passing)),
      part(soak, "kafkajs writer", kafkajsWriter(soak, grouped, temper.times(30))),
      part(soak, "platformatic writer", platformaticWriter(soak, grouped, temper.times(30))),
    ]),
    read: Promise.all([
      ...Array.from(
        { length: TAIL_READERS },
        (_, i) => part(soak, `tail reader ${i}`, followTail(soak, i, TAIL_READERS)),
      ),
      ...Array.from(
        { length: COLD_READERS },
        (_, i) => part(soak, `cold reader ${i}`, readCold(soak, `cold reader ${i}`, random())),
      ),
      part(soak, "kafkajs group", kafkajsGroup(soak, groups[0]!, random())),
      part(soak, "platformatic group", platformaticGroup(soak, groups[1]!)),
    ]),
  };
}
