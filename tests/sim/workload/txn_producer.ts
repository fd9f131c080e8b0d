/**
 * One instance of a transactional id, by the rules before or of KIP-890 part 2: transactions over several
 * partitions, some with an offset of its group, committed, aborted, or left open: then its time-out ends it, or the
 * instance that begins anew, or another one of the same id. One that was followed tries to go on for a while.
 */
import { type Random, randomInt } from "../../../src/env/random.ts";
import type { ErrorName } from "../../../src/protocol/error_code.ts";
import { buildBatch } from "../../../src/protocol/record_batch.ts";
import { identityHeader } from "../checker/log_view.ts";
import type { Given, Txn, TxnRecord } from "../checker/transactions.ts";
import { between, chance, pick } from "../world.ts";
import { pauseOf } from "./context.ts";
import { historyOf, type Place, type Semantics } from "./semantics_context.ts";
import { type Told, TxnClient } from "./txn_client.ts";

/** What a producer is told that was fenced, or whose transaction somebody else has ended. */
const REFUSALS: readonly ErrorName[] = [
  "PRODUCER_FENCED",
  "INVALID_PRODUCER_EPOCH",
  "INVALID_TXN_STATE",
  "TRANSACTION_ABORTABLE",
  "OUT_OF_ORDER_SEQUENCE_NUMBER",
];
const BATCHES_MAX = 4;
const RECORDS_MAX = 3;
const KEYS = 4;

/** It has to begin anew, or the run is over. */
class GivenUp extends Error {
  /** Its epoch is over: whatever it tries in it is refused. */
  readonly isFenced: boolean;

  constructor(error: ErrorName | null) {
    super(error ?? "the run is over");
    this.isFenced = error === "PRODUCER_FENCED" || error === "INVALID_PRODUCER_EPOCH";
  }
}

export interface TxnProducerOptions {
  readonly name: string;
  readonly transactionalId: string;
  readonly timeoutMs: number;
  readonly isV2: boolean;
}

export class TxnProducer {
  readonly #play: Semantics;
  readonly #options: TxnProducerOptions;
  readonly #random: Random;
  readonly #client: TxnClient;
  /** Next sequence by partition, for the epoch of now. */
  readonly #sequences = new Map<Place, number>();
  #busy = false;
  #hasId = false;
  #isFenced = false;

  constructor(play: Semantics, options: TxnProducerOptions) {
    const { context } = play;
    this.#play = play;
    this.#options = options;
    this.#random = context.world.random(options.name);
    this.#client = new TxnClient({ context, ...options });
  }

  get isIdle(): boolean {
    return !this.#busy;
  }

  async run(pauseMs: number): Promise<void> {
    const { context } = this.#play;
    while (!context.over) {
      await context.world.sleep(pauseOf(context, this.#random, pauseMs));
      if (context.draining || context.over) continue;
      this.#busy = true;
      await this.#transact();
      this.#busy = false;
    }
  }

  /** Whatever its id has open is ended: for nodes whose clocks cannot be trusted with a time-out. */
  async takeOver(): Promise<void> {
    this.#busy = true;
    await this.#begin(false).catch(ignoreGivenUp);
    this.#busy = false;
  }

  /** At rest, and alone: nothing may stop it. */
  async commitOnce(): Promise<void> {
    const { transactions, places } = this.#play;
    const { transactionalId, name, timeoutMs } = this.#options;
    await this.#begin(false);
    const txn = transactions.begin(transactionalId, name, this.#client.epoch, timeoutMs);
    for (const place of places) await this.#write(txn, place);
    await this.#end(txn, true);
  }

  async #transact(): Promise<void> {
    const { transactions } = this.#play;
    const { transactionalId, name, timeoutMs } = this.#options;
    try {
      if (!this.#hasId) await this.#begin(false);
    } catch (error) {
      return ignoreGivenUp(error);
    }
    const txn = transactions.begin(transactionalId, name, this.#client.epoch, timeoutMs);
    if (this.#isFenced) txn.mayBeEnded = true;
    try {
      await this.#one(txn);
    } catch (error) {
      if (!(error instanceof GivenUp)) throw error;
      transactions.givenUp(txn);
      // Sometimes one that is fenced tries to go on as who it was. Of another refusal its transaction may still be open.
      this.#isFenced = error.isFenced;
      this.#hasId = error.isFenced && chance(this.#random, 0.3);
    }
  }

  async #one(txn: Txn): Promise<void> {
    const { context: { world } } = this.#play;
    const batches = 1 + randomInt(this.#random, BATCHES_MAX);
    for (let i = 0; i < batches; i++) {
      await this.#write(txn, pick(this.#random, this.#play.places));
      if (chance(this.#random, 0.2)) await world.sleep(between(this.#random, 0, 2_000));
    }
    if (chance(this.#random, 0.4)) await this.#sendOffset(txn);
    const choice = this.#random.float();
    if (choice < 0.15) return await this.#leaveOpen(txn);
    await this.#end(txn, choice < 0.75);
  }

  /** Left to its time-out, or to whoever begins next; or it goes on, and may come too late. */
  async #leaveOpen(txn: Txn): Promise<void> {
    const { context: { world }, transactions, places } = this.#play;
    const isLeftToTime = chance(this.#random, 0.6);
    if (isLeftToTime) await world.sleep(between(this.#random, 0.5, 2) * this.#options.timeoutMs);
    if (isLeftToTime && chance(this.#random, 0.5)) {
      await this.#write(txn, pick(this.#random, places));
      return await this.#end(txn, true);
    }
    transactions.givenUp(txn);
    await this.#begin(chance(this.#random, 0.5));
  }

  #told<T>(told: Told<T> | null, txn: Txn | null, what: string): T {
    if (told === null) throw new GivenUp(null);
    if (told.error === "NONE") return told.value;
    const isExplained = txn === null || !this.#play.transactions.mustWork(txn);
    if (!REFUSALS.includes(told.error) || !isExplained) {
      this.#play.context.world.violated(
        `${this.#options.name} (${this.#client.producerId}, epoch ${this.#client.epoch}) ` +
          `${what} in ${txn?.name}: ${told.error}`,
      );
    }
    throw new GivenUp(told.error);
  }

  async #begin(keep: boolean): Promise<void> {
    const { transactions, context: { world } } = this.#play;
    const { transactionalId, name } = this.#options;
    this.#hasId = false;
    let before: Given | null = null;
    const told = await this.#client.init(keep, () => {
      const attempt = transactions.initialising(transactionalId, name);
      before = attempt.before;
      return () => void (attempt.answeredMs = world.nowMs);
    });
    const given = this.#told(told, null, "InitProducerId");
    transactions.given(transactionalId, name, given, before);
    this.#become(given);
  }

  #become({ producerId, epoch }: { readonly producerId: number; readonly epoch: number }): void {
    if (producerId !== this.#client.producerId || epoch !== this.#client.epoch) {
      this.#sequences.clear();
    }
    this.#client.become(producerId, epoch);
    this.#hasId = true;
    this.#isFenced = false;
  }

  async #write(txn: Txn, place: Place): Promise<void> {
    const { context, transactions } = this.#play;
    const { isCompacted } = place.topic;
    const history = historyOf(context, place);
    if (!this.#options.isV2) this.#told(await this.#client.add(place), txn, "AddPartitionsToTxn");
    const records: TxnRecord[] = [];
    for (let i = 0; i < 1 + randomInt(this.#random, RECORDS_MAX); i++) {
      const key = `k${randomInt(this.#random, KEYS)}`;
      const isDeletion = isCompacted && chance(this.#random, 0.2);
      records.push(transactions.sending(txn, history, { key, isDeletion, isCompacted }));
    }
    const sequence = this.#sequences.get(place) ?? 0;
    const batch = this.#batch(records, sequence);
    const label = `${txn.name} sequence ${sequence}`;
    const offset = this.#told(
      await this.#client.produce(place, batch, label),
      txn,
      `Produce of ${label} to ${place.topic.name}-${place.partition}`,
    );
    this.#sequences.set(place, sequence + records.length);
    if (offset < 0) return;
    for (const [i, record] of records.entries()) transactions.acknowledged(record, offset + i);
  }

  #batch(records: readonly TxnRecord[], baseSequence: number): Uint8Array {
    const { world, codecs } = this.#play.context;
    const encoder = new TextEncoder();
    return buildBatch({
      records: records.map(({ id, key, isDeletion }) => ({
        key: encoder.encode(key),
        value: isDeletion ? null : encoder.encode("v"),
        headers: identityHeader(id),
        timestampMs: world.wallMs,
      })),
      codec: null,
      codecs,
      producerId: this.#client.producerId,
      producerEpoch: this.#client.epoch,
      baseSequence,
      transactional: true,
    });
  }

  async #sendOffset(txn: Txn): Promise<void> {
    const { places } = this.#play;
    const group = groupOf(this.#options.transactionalId);
    if (!this.#options.isV2) {
      this.#told(await this.#client.addOffsets(group), txn, "AddOffsetsToTxn");
    }
    const told = await this.#client.commitOffset(group, places[0]!, txn.order);
    this.#told(told, txn, "TxnOffsetCommit");
    txn.offset = txn.order;
  }

  async #end(txn: Txn, commit: boolean): Promise<void> {
    const { transactions } = this.#play;
    transactions.asksEnd(txn, commit);
    this.#play.onEnding();
    const told = await this.#client.end(commit);
    if (told?.error === "NONE") {
      transactions.ended(txn, commit);
      const { transactionalId, name } = this.#options;
      if (this.#options.isV2) transactions.given(transactionalId, name, told.value, null);
      return this.#become(told.value);
    }
    if (told !== null && commit && !told.isRepeat) transactions.refused(txn);
    this.#told(told, txn, commit ? "EndTxn commit" : "EndTxn abort");
  }
}

export function groupOf(transactionalId: string): string {
  return `g-${transactionalId}`;
}

function ignoreGivenUp(error: unknown): void {
  if (!(error instanceof GivenUp)) throw error;
}
