/** One topic: writing to it, and following it. */
import { Batcher, type ProducerOptions } from "./batcher.ts";
import { SkerryError } from "./errors.ts";
import { type ConsumedRecord, type ConsumeOptions, follow } from "./follow.ts";
import { type Http, segment } from "./http.ts";
import { type Outcome, type ProducedRecord, send } from "./produce.ts";
import { lineOf, type NewRecord } from "./records.ts";

export interface ProduceOptions {
  /**
   * Sends the records in a request of their own under this Idempotency-Key: whoever sends the same records again
   * under it, also another program, stores them once. 1 to 255 visible ASCII characters.
   */
  readonly idempotencyKey?: string;
}

const DELIVERY_TIMEOUT_MS = 120_000;

/** Of several records that were not all stored: what became of each, in order. */
export class ProduceError extends SkerryError {
  readonly outcomes: readonly Outcome[];

  constructor(first: SkerryError, outcomes: readonly Outcome[]) {
    const failed = outcomes.filter((outcome) => outcome instanceof SkerryError);
    const isNothingIn = failed.length === outcomes.length &&
      failed.every(({ sideEffects }) => sideEffects === "none");
    const { code, problem, retriable } = first;
    super(`${failed.length} of ${outcomes.length} records failed: ${first.message}`, {
      code,
      status: first.status ?? 207,
      problem,
      retriable,
      sideEffects: isNothingIn ? "none" : "unknown",
      cause: first,
    });
    this.outcomes = outcomes;
  }
}

export class Topic {
  readonly name: string;
  readonly #http: Http;
  readonly #path: string;
  readonly #options: ProducerOptions;
  readonly #batcher: Batcher;

  constructor(http: Http, name: string, options: ProducerOptions) {
    this.name = name;
    this.#http = http;
    this.#path = `topics/${segment(name)}`;
    this.#options = options;
    this.#batcher = new Batcher(http, `${this.#path}/records`, options);
  }

  /**
   * Resolves once the record is durable, or all of them are; each is stored once, however often it was sent.
   * Throws SkerryError, for several records ProduceError, and TypeError for what is no record.
   */
  produce(record: NewRecord, options?: ProduceOptions): Promise<ProducedRecord>;
  produce(
    records: readonly NewRecord[],
    options?: ProduceOptions,
  ): Promise<readonly ProducedRecord[]>;
  async produce(
    given: NewRecord | readonly NewRecord[],
    options: ProduceOptions = {},
  ): Promise<ProducedRecord | readonly ProducedRecord[]> {
    if (!isList(given)) return stored(await this.#send([given], options))[0]!;
    return given.length === 0 ? [] : stored(await this.#send(given, options));
  }

  async #send(
    records: readonly NewRecord[],
    { idempotencyKey: key }: ProduceOptions,
  ): Promise<readonly Outcome[]> {
    const lines = records.map(lineOf);
    if (key === undefined) return await this.#batcher.add(lines);
    const { deliveryTimeoutMs = DELIVERY_TIMEOUT_MS } = this.#options;
    return await send(this.#http, `${this.#path}/records`, lines, { deliveryTimeoutMs, key });
  }

  /** Resolves when all records that were given to `produce` before are stored or have failed. */
  async flush(): Promise<void> {
    await this.#batcher.flush();
  }

  /**
   * Records as they come, for ever, each once and in the order of its partition, whatever happens to the
   * connection. Ends when the signal aborts; throws SkerryError where going on would lose records.
   */
  consume<V = unknown>(
    options: ConsumeOptions & { readonly encoding: "json" },
  ): AsyncGenerator<ConsumedRecord<V>, void, void>;
  consume(options?: ConsumeOptions): AsyncGenerator<ConsumedRecord, void, void>;
  consume(options: ConsumeOptions = {}): AsyncGenerator<ConsumedRecord, void, void> {
    return follow(this.#http, this.#path, options);
  }
}

function isList(given: NewRecord | readonly NewRecord[]): given is readonly NewRecord[] {
  return Array.isArray(given);
}

function stored(outcomes: readonly Outcome[]): readonly ProducedRecord[] {
  const first = outcomes.find((outcome) => outcome instanceof SkerryError);
  if (first === undefined) return outcomes as readonly ProducedRecord[];
  throw outcomes.length === 1 ? first : new ProduceError(first, outcomes);
}
