/**
 * A script that produces over HTTP: each body shape, sent again until it is answered or given up. HTTP has no
 * sequence numbers, so it may write a record twice; what was answered must stand where the answer said.
 */
import { type Random, randomInt } from "../../../src/env/random.ts";
import { type HttpAnswer, type HttpCall, HttpClient } from "../http_client.ts";
import { NoAnswer } from "../kafka_client.ts";
import { between, chance, pick } from "../world.ts";
import { type Context, pauseOf, type SimTopic } from "./context.ts";

const IN_FLIGHT_MAX = 4;
const ATTEMPTS_MAX = 3;
const TIMEOUT_MS = 40_000;

/** "Try again", in the words of HTTP. */
export const TRY_AGAIN: readonly number[] = [429, 503, 504];

interface Result {
  readonly partition: number;
  readonly offset?: number;
  readonly timestamp?: number;
  readonly error?: { readonly name: string; readonly retriable: boolean };
}

const SHAPES = ["array", "records", "lines", "bare", "raw"] as const;

export class HttpProducer {
  readonly #context: Context;
  readonly #name: string;
  readonly #random: Random;
  readonly #client: HttpClient;
  #next = 0;
  #inFlight = 0;

  constructor(context: Context, name: string) {
    this.#context = context;
    this.#name = name;
    this.#random = context.world.random(name);
    this.#client = new HttpClient(context.world, context.cluster, name);
  }

  get isIdle(): boolean {
    return this.#inFlight === 0;
  }

  async run(pauseMs: number): Promise<void> {
    const { world } = this.#context;
    while (!this.#context.over) {
      await world.sleep(pauseOf(this.#context, this.#random, pauseMs));
      if (this.#context.draining || this.#inFlight >= IN_FLIGHT_MAX) continue;
      void this.#send();
    }
  }

  async #send(): Promise<void> {
    const { steady } = this.#context;
    const partition = randomInt(this.#random, steady.partitions);
    const shape = pick(this.#random, SHAPES);
    const count = shape === "raw" ? 1 : 1 + randomInt(this.#random, 4);
    const values = Array.from({ length: count }, () => `${this.#name}:${this.#next++}`);
    const call = callOf(steady, partition, shape, values, chance(this.#random, 0.5));
    this.#inFlight++;
    try {
      for (let attempt = 0; attempt < ATTEMPTS_MAX && !this.#context.over; attempt++) {
        if (await this.#attempt(call, steady, partition, values)) return;
        await this.#context.world.sleep(between(this.#random, 50, 2_000));
      }
    } finally {
      this.#inFlight--;
    }
  }

  /** True when it is answered for good. */
  async #attempt(
    call: HttpCall,
    topic: SimTopic,
    partition: number,
    values: readonly string[],
  ): Promise<boolean> {
    try {
      const answer = await this.#client.call(call, TIMEOUT_MS);
      if (answer.status === 200) {
        this.#acknowledged(answer, topic, partition, values);
        return true;
      }
      if (!TRY_AGAIN.includes(answer.status)) {
        this.#context.world.violated(`${this.#name} is answered ${answer.status}: ${answer.text}`);
      }
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error;
    }
    return false;
  }

  #acknowledged(
    { text }: HttpAnswer,
    topic: SimTopic,
    partition: number,
    values: readonly string[],
  ): void {
    const { history, world } = this.#context;
    const { results } = JSON.parse(text) as { readonly results: readonly Result[] };
    const past = history.of(topic.topicId, partition);
    if (results.length !== values.length) {
      world.violated(`${this.#name}: ${results.length} results for ${values.length} records`);
    }
    for (const [i, result] of results.entries()) {
      const { offset, timestamp } = result;
      if (result.partition !== partition || offset === undefined || timestamp === undefined) {
        return world.violated(`${this.#name}: result ${JSON.stringify(result)}`);
      }
      const before = results[i - 1]?.offset;
      if (before !== undefined && offset !== before + 1) {
        world.violated(`${this.#name}: one request at offsets ${before} and ${offset}`);
      }
      history.acknowledge(past, offset, [values[i]!]);
      history.date(past, offset, timestamp);
    }
  }
}

function callOf(
  { name }: SimTopic,
  partition: number,
  shape: typeof SHAPES[number],
  values: readonly string[],
  isDeclared: boolean,
): HttpCall {
  const envelopes = values.map((value) => ({ value, headers: [["from", "http"]] }));
  const bodies = {
    array: ["application/json", JSON.stringify(envelopes)],
    records: ["application/json", JSON.stringify({ records: envelopes })],
    lines: ["application/x-ndjson", envelopes.map((one) => JSON.stringify(one)).join("\n")],
    bare: ["application/json", JSON.stringify(values)],
    raw: ["text/plain", values[0]!],
  } as const;
  const [type, body] = bodies[shape];
  // A body of known length is read at once, one of unknown length piece by piece.
  const length = isDeclared ? { "content-length": String(body.length) } : {};
  return {
    method: "POST",
    path: `/v1/topics/${name}/partitions/${partition}/records${shape === "bare" ? "?bare=1" : ""}`,
    headers: { "content-type": type, ...length },
    body,
  };
}
