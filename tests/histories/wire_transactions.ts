/**
 * Transactions over the wire, by the old rules and by those of KIP-890 part 2: committed, aborted, or left open
 * until a successor fences their producer, which then tries to go on.
 */
import { randomInt } from "../../src/env/random.ts";
import type { ErrorName } from "../../src/protocol/error_code.ts";
import { Hangup, pause, WireClient } from "../soak/cluster.ts";
import { TxnClient } from "../support/txn_client.ts";
import {
  again,
  breathe,
  INPUT,
  LOG,
  partitionName,
  placesOf,
  valueOf,
  type World,
} from "./world.ts";
import { RETRIABLE } from "./wire_idempotent.ts";

const TIMEOUT_MS = 5_000;
const BATCHES_MAX = 4;
const RECORDS_MAX = 4;
/** Shares of the transactions. */
const COMMITTED = 0.6;
const ABORTED = 0.2;
/** What a producer may be told that is fenced or whose time ran out; anything else ends nothing for no reason. */
const FENCED: ReadonlySet<ErrorName> = new Set(["INVALID_PRODUCER_EPOCH", "PRODUCER_FENCED"]);
/** The successor waits that long at most before it goes on beside it. */
const ZOMBIE_MS_MAX = 200;

/** Thrown when the producer cannot go on: the next incarnation does. */
export class Over extends Error {}

export interface Batch {
  readonly topic: string;
  readonly partition: number;
  readonly values: readonly string[];
  readonly sources?: readonly string[];
}

/** One incarnation; what it does is written into the history. */
export class Incarnation {
  readonly #world: World;
  readonly #wire: WireClient;
  readonly #client: TxnClient;
  readonly name: string;
  #added = new Set<string>();
  #txn = "";
  #txns = 0;

  constructor(
    world: World,
    { id, number, isV2 }: { readonly id: string; readonly number: number; readonly isV2: boolean },
  ) {
    this.#world = world;
    this.name = `${id}#${number}`;
    this.#wire = new WireClient(world.soak.address);
    this.#client = new TxnClient(this.#wire, id, { isV2, timeoutMs: TIMEOUT_MS });
  }

  async init(): Promise<void> {
    const id = this.#client.transactionalId;
    await this.#do(
      this.#world.history.invoke({ f: "init", producer: this.name, id }),
      () => this.#client.init(),
      () => null,
    );
  }

  begin(): void {
    this.#txns += 1;
    this.#txn = `${this.name}.${this.#txns}`;
    this.#added = new Set();
    this.#world.history.note({
      kind: "txn",
      txn: this.#txn,
      id: this.#client.transactionalId,
      producer: this.name,
      timeoutMs: TIMEOUT_MS,
    });
  }

  async produce({ topic, partition, values, sources }: Batch): Promise<void> {
    const place = partitionName(topic, partition);
    if (!this.#client.isV2 && !this.#added.has(place)) {
      await this.#do(null, () => this.#client.add(topic, [partition]), () => null);
      this.#added.add(place);
    }
    await this.#do(
      this.#world.history.invoke({
        f: "produce",
        producer: this.name,
        partition: place,
        values,
        txn: this.#txn,
        ...(sources === undefined ? {} : { sources }),
      }),
      () => this.#client.produce(topic, values, { partition }),
      () => ({ offset: this.#client.lastOffset }),
    );
  }

  async commitOffset(group: string, topic: string, partition: number, offset: number) {
    if (!this.#client.isV2) {
      await this.#do(null, () => this.#client.addOffsets(group), () => null);
    }
    await this.#do(
      null,
      () => this.#client.commitOffset(group, topic, offset, { partition }),
      () => null,
    );
  }

  async end(commit: boolean): Promise<void> {
    await this.#do(
      this.#world.history.invoke({ f: "end", producer: this.name, txn: this.#txn, commit }),
      () => this.#client.end(commit),
      () => null,
    );
  }

  close(): void {
    this.#wire.close();
  }

  /** Until it is answered; an error is certain only if nothing was tried before without an answer. */
  async #do(
    op: number | null,
    attempt: () => Promise<ErrorName>,
    result: () => { readonly offset: number } | null,
  ): Promise<void> {
    const { history, soak } = this.#world;
    let certain = true;
    const error = await again(this.#world, async () => {
      const wasCertain = certain;
      certain = false;
      const answer = await attempt();
      if (!RETRIABLE.has(answer)) {
        certain = wasCertain;
        return answer;
      }
      certain = wasCertain && answer !== "REQUEST_TIMED_OUT" && answer !== "KAFKA_STORAGE_ERROR";
      return null;
    });
    if (error === "NONE") {
      if (op !== null) history.ok(op, result());
      return;
    }
    if (error !== null && !FENCED.has(error)) soak.violation(`${this.name} got ${error}`);
    if (op !== null) history.failed(op, error ?? "out of time", certain && error !== null);
    throw new Over(error ?? "out of time");
  }
}

async function zombie(world: World, old: Incarnation, name: string): Promise<void> {
  const attempts = [
    ...[0, 1].map((partition) => () =>
      old.produce({ topic: LOG.name, partition, values: [valueOf(`${name}-late`, partition)] })
    ),
    () => old.end(true),
  ];
  for (const attempt of attempts) {
    await breathe(world, ZOMBIE_MS_MAX);
    try {
      await attempt();
    } catch (error) {
      if (!(error instanceof Over)) throw error;
      world.soak.count(`zombie: ${error.message}`);
    }
  }
  old.close();
}

export async function wireTransactions(
  world: World,
  { id, isV2, input }: {
    readonly id: string;
    readonly isV2: boolean;
    /** Its partition of INPUT, where no other transactions are. */
    readonly input: number;
  },
): Promise<void> {
  const { random, soak } = world;
  const places = [...placesOf([LOG]), { topic: INPUT.name, partition: input }];
  let written = 0;
  let old: Incarnation | null = null;
  for (let number = 1; soak.writing || old !== null; number++) {
    const own: Incarnation = new Incarnation(world, { id, number, isV2 });
    try {
      await own.init();
      if (old !== null) {
        // Beside the successor, which is at work meanwhile.
        const late = zombie(world, old, old.name);
        old = null;
        await Promise.race([late, pause(randomInt(random, ZOMBIE_MS_MAX))]);
        late.catch((error: unknown) => soak.guard(id, error));
      }
      while (soak.writing) {
        own.begin();
        for (let i = randomInt(random, BATCHES_MAX); i >= 0; i--) {
          const count = 1 + randomInt(random, RECORDS_MAX);
          const place = places[randomInt(random, places.length)]!;
          const values = Array.from({ length: count }, () => valueOf(id, ++written));
          await own.produce({ ...place, values });
        }
        const choice = random.float();
        if (choice >= COMMITTED + ABORTED) {
          old = own;
          soak.count(`${id}: left open`);
          break;
        }
        await own.end(choice < COMMITTED);
        soak.count(`${id}: ${choice < COMMITTED ? "committed" : "aborted"}`);
        await breathe(world);
      }
    } catch (error) {
      if (!(error instanceof Over || error instanceof Hangup)) soak.guard(id, error);
      soak.count(`${id}: ${error instanceof Error ? error.message : "error"}`);
      if (performance.now() > world.deadlineMs) return;
    }
    if (old !== own) own.close();
  }
}
