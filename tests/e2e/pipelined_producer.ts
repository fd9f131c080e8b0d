/**
 * An idempotent producer in raw frames, as Kafka's own behaves: five requests in flight, and after every
 * lost connection all that was not acknowledged goes out again, in order and with its old sequences.
 */
import { createCodecs } from "../../src/adapters/codecs.ts";
import { toUtf8 } from "../../src/lib/bytes.ts";
import { produceApi } from "../../src/protocol/message/00_produce.ts";
import { initProducerIdApi } from "../../src/protocol/message/22_init_producer_id.ts";
import { buildBatch } from "../../src/protocol/record_batch.ts";
import { readResponse, requestFrame } from "../support/wire.ts";
import { RawClient } from "./raw_client.ts";

const IN_FLIGHT = 5;
const RECORDS = 3;
const VERSION = 9;
const OUT_OF_ORDER = 45;
const DUPLICATE = 46;
const codecs = createCodecs();

interface Batch {
  readonly sequence: number;
  readonly records: Uint8Array;
}

export interface PipelinedOptions {
  readonly address: string;
  readonly topic: string;
  readonly partition: number;
  /** The key of all its records; their values count from 0. */
  readonly name: string;
}

function pause(): Promise<void> {
  return new Promise((done) => setTimeout(done, 20));
}

export class PipelinedProducer {
  readonly name: string;
  readonly partition: number;
  /** Base offset of each acknowledged batch, by its first value. */
  readonly acknowledged = new Map<number, number>();
  readonly #options: PipelinedOptions;
  readonly #done: Promise<void>;
  readonly #unacknowledged: Batch[] = [];
  #producerId = -1;
  #nextSequence = 0;
  #stopped = false;
  #resent = 0;

  constructor(options: PipelinedOptions) {
    this.#options = options;
    this.name = options.name;
    this.partition = options.partition;
    this.#done = this.#run();
    this.#done.catch(() => {});
  }

  /** How many records it has sent; after `stop` all of them are acknowledged. */
  get sent(): number {
    return this.#nextSequence;
  }
  get resentBatches(): number {
    return this.#resent;
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#done;
  }

  async #run(): Promise<void> {
    while (!this.#stopped || this.#unacknowledged.length > 0) {
      const client = await RawClient.connect(this.#options.address).catch(() => null);
      if (client !== null) {
        await this.#session(client);
        client.close();
      }
      await pause();
    }
  }

  /** Ends when the connection does, or at the first refusal. */
  async #session(client: RawClient): Promise<void> {
    if (this.#producerId < 0 && !await this.#init(client)) return;
    this.#resent += this.#unacknowledged.length;
    for (let inFlight = 0;;) {
      for (; inFlight < IN_FLIGHT; inFlight++) {
        const batch = this.#unacknowledged[inFlight] ?? this.#newBatch();
        if (batch === null) break;
        client.send(this.#frame(batch));
      }
      if (inFlight === 0) return;
      const frame = await client.next();
      if (frame === null || !this.#take(frame)) return;
      inFlight -= 1;
    }
  }

  async #init(client: RawClient): Promise<boolean> {
    const request = { transactionalId: null, transactionTimeoutMs: 60_000 };
    const answer = await client.call(initProducerIdApi, 2, request).catch(() => null);
    if (answer === null || answer.errorCode !== 0) return false;
    this.#producerId = Number(answer.producerId);
    return true;
  }

  #newBatch(): Batch | null {
    if (this.#stopped) return null;
    const sequence = this.#nextSequence;
    this.#nextSequence += RECORDS;
    const batch = {
      sequence,
      records: buildBatch({
        records: Array.from({ length: RECORDS }, (_, i) => ({
          key: toUtf8(this.name),
          value: toUtf8(String(sequence + i)),
          headers: [],
          timestampMs: 1_700_000_000_000,
        })),
        codec: null,
        codecs,
        producerId: this.#producerId,
        producerEpoch: 0,
        baseSequence: sequence,
      }),
    };
    this.#unacknowledged.push(batch);
    return batch;
  }

  #frame({ records }: Batch): Uint8Array {
    const { topic, partition } = this.#options;
    return requestFrame(produceApi, { version: VERSION, correlationId: 1 }, {
      transactionalId: null,
      acks: -1,
      timeoutMs: 10_000,
      topicData: [{ name: topic, partitionData: [{ index: partition, records }] }],
    });
  }

  /** False when all that is not acknowledged has to go out again. */
  #take(frame: Uint8Array): boolean {
    const answer = readResponse(produceApi, { version: VERSION, correlationId: 1 }, frame);
    const { errorCode, baseOffset } = answer.responses[0]!.partitionResponses[0]!;
    const { sequence } = this.#unacknowledged[0]!;
    if (errorCode === OUT_OF_ORDER) {
      throw new Error(`${this.name}: the broker has lost what is before sequence ${sequence}`);
    }
    if (errorCode !== 0 && errorCode !== DUPLICATE) return false;
    this.#unacknowledged.shift();
    if (errorCode === 0) this.acknowledged.set(sequence, Number(baseOffset));
    return true;
  }
}
