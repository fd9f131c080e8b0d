/** An idempotent producer of keys: one batch at a time, sent again unchanged until it is acknowledged. */
import { type Random, randomInt } from "../../../src/env/random.ts";
import { initProducerIdApi } from "../../../src/protocol/message/22_init_producer_id.ts";
import { buildBatch } from "../../../src/protocol/record_batch.ts";
import { identityHeader } from "../checker/log_view.ts";
import { KafkaClient, NoAnswer } from "../kafka_client.ts";
import { between, chance, pick } from "../world.ts";
import { isTransient, pauseOf, unexpected } from "./context.ts";
import { produce } from "./produce.ts";
import { historyOf, type Place, type Semantics } from "./semantics_context.ts";

const TIMEOUT_MS = 8_000;
const RECORDS_MAX = 3;
const KEYS = 6;

interface Keyed {
  readonly id: string;
  readonly key: string;
  readonly isDeletion: boolean;
}

export class KeyedWriter {
  readonly #play: Semantics;
  readonly #name: string;
  readonly #random: Random;
  readonly #client: KafkaClient;
  readonly #sequences = new Map<Place, number>();
  #producerId = -1;
  #producerEpoch = -1;
  #written = 0;
  #busy = false;

  constructor(play: Semantics, name: string) {
    const { world, cluster } = play.context;
    this.#play = play;
    this.#name = name;
    this.#random = world.random(name);
    this.#client = new KafkaClient(world, cluster, name);
  }

  get isIdle(): boolean {
    return !this.#busy;
  }

  async run(pauseMs: number): Promise<void> {
    const { context } = this.#play;
    const places = this.#play.places.filter(({ topic }) => topic.isCompacted);
    while (!context.over) {
      await context.world.sleep(pauseOf(context, this.#random, pauseMs));
      if (context.draining || context.over) continue;
      this.#busy = true;
      if (this.#producerId < 0) await this.#initialise();
      else await this.#write(pick(this.#random, places));
      this.#busy = false;
    }
  }

  async #initialise(): Promise<void> {
    const request = { transactionalId: null, transactionTimeoutMs: 60_000 };
    try {
      const { response } = await this.#client.call(initProducerIdApi, 4, request, TIMEOUT_MS);
      if (response.errorCode !== 0) return;
      this.#producerId = response.producerId!;
      this.#producerEpoch = response.producerEpoch;
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error;
    }
  }

  async #write(place: Place): Promise<void> {
    const { context, compacted } = this.#play;
    const { world, history: all } = context;
    const records: Keyed[] = Array.from(
      { length: 1 + randomInt(this.#random, RECORDS_MAX) },
      () => ({
        id: `${this.#name}.${this.#written++}`,
        key: `k${randomInt(this.#random, KEYS)}`,
        isDeletion: chance(this.#random, 0.2),
      }),
    );
    const sequence = this.#sequences.get(place) ?? 0;
    const batch = this.#batch(records, sequence);
    const history = historyOf(context, place);
    while (!context.over) {
      try {
        const { topic: { topicId }, partition } = place;
        const label = `${this.#name} sequence ${sequence}`;
        const answer = await produce(
          this.#client,
          topicId,
          partition,
          batch,
          TIMEOUT_MS,
          label,
        );
        if (answer.code === 0) {
          this.#sequences.set(place, sequence + records.length);
          for (const [i, record] of records.entries()) {
            const offset = answer.baseOffset + i;
            const { id, key, isDeletion } = record;
            all.know(history, offset, `${id} ${key}=${isDeletion ? "" : "v"}`, "acknowledged");
            compacted.acknowledged(history, key, { id, offset, isDeletion });
          }
          return;
        }
        if (!isTransient(answer.error) && !context.cluster.isReplaced(answer.by)) {
          return unexpected(context, label, answer.code);
        }
      } catch (error) {
        if (!(error instanceof NoAnswer)) throw error;
      }
      await world.sleep(between(this.#random, 20, 300));
    }
  }

  #batch(records: readonly Keyed[], baseSequence: number): Uint8Array {
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
      producerId: this.#producerId,
      producerEpoch: this.#producerEpoch,
      baseSequence,
    });
  }
}
