/**
 * One side of a scenario: the requests go out, what came back is written down under its label. The
 * same function runs against both brokers; what it captures from one answer goes into its next request.
 */
import { ByteReader, ByteWriter, DecodeError, toUtf8, viewOf } from "../../src/lib/bytes.ts";
import { crc32c } from "../../src/lib/crc32c.ts";
import type { CodecName } from "../../src/env/codecs.ts";
import { createCodecs } from "../../src/adapters/codecs.ts";
import type { Api } from "../../src/protocol/api.ts";
import { listOffsetsApi } from "../../src/protocol/message/02_list_offsets.ts";
import { metadataApi } from "../../src/protocol/message/03_metadata.ts";
import { createTopicsApi } from "../../src/protocol/message/19_create_topics.ts";
import { buildBatch } from "../../src/protocol/record_batch.ts";
import { RawClient } from "../e2e/raw_client.ts";
import { within } from "../support/broker_process.ts";
import { readResponse, requestFrame } from "../support/wire.ts";

/**
 * The times of records are fixed and old: nothing may go by age. Kafka also rolls by the time of a
 * record, and a fetch of it ends where a segment does.
 */
const KEEPING = { "retention.ms": "-1", "segment.ms": "9000000000000000" };

export interface Entry {
  readonly label: string;
  readonly value: unknown;
}

export interface Scenario {
  readonly name: string;
  /** APIs without which it is left out, since it could only hang up. */
  readonly needs?: readonly number[];
  run(script: Script): Promise<void>;
}

export interface CallOptions {
  /** Name of the connection; "main" by default. */
  readonly on?: string;
  readonly clientId?: string;
}

/** Asked again until `good`, for what a broker does behind an answer. */
const PATIENCE_MS = 15_000;
const LOOK_MS = 25;
/** Kafka never answers some requests that it cannot understand. */
const ANSWER_MS_MAX = 3_000;
/** How long nothing must come for "no answer". */
const SILENCE_MS = 300;
/** Kafka's broker hears from its controller after the client has. */
const SETTLE_MS = 60;
const MUTATING = new Set([19, 20, 33, 37, 44, 45, 49, 57]);

export function pause(ms: number): Promise<void> {
  return new Promise((done) => setTimeout(done, ms));
}

/** The scenario cannot go on: there is no answer to go on with. */
export class NoAnswer extends Error {}

export class Script {
  readonly #address: string;
  readonly #clients = new Map<string, RawClient>();
  readonly entries: Entry[] = [];
  /** The same on both sides: record timestamps of both logs are equal. */
  readonly nowMs: number;
  #lastId = 0;

  constructor(address: string, nowMs: number) {
    this.#address = address;
    this.nowMs = nowMs;
  }

  async #client(name: string): Promise<RawClient> {
    const known = this.#clients.get(name);
    if (known !== undefined && !known.isClosed) return known;
    const client = await RawClient.connect(this.#address);
    this.#clients.set(name, client);
    return client;
  }

  note(label: string, value: unknown): void {
    if (this.entries.some((entry) => entry.label === label)) throw new Error(`${label}: twice`);
    this.entries.push({ label, value });
  }

  /** Sends now; `answer` waits for it and writes it down. */
  async begin<Q, S, QIn, SOut>(
    label: string,
    api: Api<Q, S, QIn, SOut>,
    version: number,
    request: QIn,
    { on = "main", clientId = "test" }: CallOptions = {},
  ): Promise<{ answer(): Promise<SOut> }> {
    const client = await this.#client(on);
    const call = { version, correlationId: ++this.#lastId, clientId };
    client.send(requestFrame(api, call, request));
    return {
      answer: async () => {
        const got = await within(client.next().then((frame) => ({ frame })), ANSWER_MS_MAX);
        if (got?.frame === null || got === null) {
          this.note(label, got === null ? "no answer" : "hung up");
          client.close();
          this.#clients.delete(on);
          throw new NoAnswer(label);
        }
        const { frame } = got;
        try {
          const answer = readResponse(api, call, frame);
          this.note(label, answer);
          return answer;
        } catch (error) {
          if (!(error instanceof DecodeError)) throw error;
          this.note(label, `does not decode: ${error.message}`);
          throw new NoAnswer(label, { cause: error });
        }
      },
    };
  }

  async call<Q, S, QIn, SOut>(
    label: string,
    api: Api<Q, S, QIn, SOut>,
    version: number,
    request: QIn,
    options: CallOptions = {},
  ): Promise<SOut> {
    const begun = await this.begin(label, api, version, request, options);
    const answer = await begun.answer();
    if (MUTATING.has(api.key)) await pause(SETTLE_MS);
    return answer;
  }

  /** A call whose answer nobody needs: the scenario goes on without one. */
  async check<Q, S, QIn, SOut>(
    label: string,
    api: Api<Q, S, QIn, SOut>,
    version: number,
    request: QIn,
    options: CallOptions = {},
  ): Promise<void> {
    try {
      await this.call(label, api, version, request, options);
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error;
    }
  }

  /** Every version of an API with the same request. */
  async versions<Q, S, QIn, SOut>(
    label: string,
    api: Api<Q, S, QIn, SOut>,
    request: QIn | ((version: number) => QIn),
    { from = api.min, to = api.max, ...options }: CallOptions & {
      readonly from?: number;
      readonly to?: number;
    } = {},
  ): Promise<void> {
    for (let version = from; version <= to; version++) {
      const one = typeof request === "function"
        ? (request as (version: number) => QIn)(version)
        : request;
      await this.check(`${label} v${version}`, api, version, one, options);
    }
  }

  /** Not written down: asks until the answer is good. */
  async until<Q, S, QIn, SOut>(
    api: Api<Q, S, QIn, SOut>,
    version: number,
    request: QIn,
    good: (answer: SOut) => boolean,
  ): Promise<SOut> {
    const endMs = performance.now() + PATIENCE_MS;
    for (;;) {
      const client = await this.#client("main");
      const answer = await client.call(api, version, request);
      if (good(answer)) return answer;
      if (performance.now() > endMs) {
        throw new Error(`${api.name} does not settle: ${JSON.stringify(answer)}`);
      }
      await pause(LOOK_MS);
    }
  }

  /** Bytes as they are; writes down whether the broker answers, hangs up or does nothing. */
  async raw(label: string, bytes: Uint8Array, on = "raw"): Promise<Uint8Array | null> {
    const client = await this.#client(on);
    client.send(bytes);
    const got = await within(client.next().then((frame) => ({ frame })), SILENCE_MS).catch(() =>
      null
    );
    if (got === null) {
      this.note(label, "no answer");
      client.close();
      return null;
    }
    this.note(label, got.frame === null ? "hung up" : "answers");
    return got.frame;
  }

  /** Sends a request that gets no answer; writes down whether the connection outlives it. */
  async silent<Q, S, QIn, SOut>(
    label: string,
    api: Api<Q, S, QIn, SOut>,
    version: number,
    request: QIn,
  ): Promise<void> {
    const call = { version, correlationId: ++this.#lastId };
    await this.raw(label, requestFrame(api, call, request), "silent");
  }

  /** A topic that is there, with leaders; its id. Not written down. */
  async topic(
    name: string,
    { partitions = 1, configs = {} }: {
      readonly partitions?: number;
      readonly configs?: Readonly<Record<string, string>>;
    } = {},
  ): Promise<string> {
    const client = await this.#client("main");
    const made = await client.call(createTopicsApi, 7, {
      topics: [{
        name,
        numPartitions: partitions,
        replicationFactor: 1,
        assignments: [],
        configs: Object.entries({ ...KEEPING, ...configs }).map(([key, value]) => ({
          name: key,
          value,
        })),
      }],
    });
    if (made.topics[0]?.errorCode !== 0) throw new Error(JSON.stringify(made.topics));
    return (await this.settled(name, partitions)).topicId;
  }

  /** Waits until all partitions of a topic have leaders. */
  async settled(name: string, partitions = 1): Promise<{ readonly topicId: string }> {
    const request = { topics: [{ name }], allowAutoTopicCreation: false };
    const { topics } = await this.until(
      metadataApi,
      12,
      request,
      ({ topics: [topic] }) =>
        topic?.errorCode === 0 && topic.partitions.length === partitions &&
        topic.partitions.every(({ leaderId }) => leaderId === 1),
    );
    // Kafka shows a leader before it has opened its log.
    const indexes = Array.from({ length: partitions }, (_, partitionIndex) => partitionIndex);
    const ends = {
      replicaId: -1,
      topics: [{
        name,
        partitions: indexes.map((partitionIndex) => ({ partitionIndex, timestamp: -1 })),
      }],
    };
    await this.until(
      listOffsetsApi,
      1,
      ends,
      (answer) => answer.topics[0]!.partitions.every(({ errorCode }) => errorCode === 0),
    );
    return topics[0]!;
  }

  close(): void {
    for (const client of this.#clients.values()) client.close();
  }
}

export interface BatchOptions {
  readonly codec?: CodecName | null;
  readonly timestampMs?: number;
  readonly producerId?: number;
  readonly producerEpoch?: number;
  readonly baseSequence?: number;
  readonly transactional?: boolean;
  readonly control?: boolean;
}

const codecs = createCodecs();

/** A batch of records without keys; "key=value" has one. */
export function batch(values: readonly string[], options: BatchOptions = {}): Uint8Array {
  const { timestampMs = 1_700_000_000_000, codec = null, ...rest } = options;
  return buildBatch({
    ...rest,
    codec,
    codecs,
    records: values.map((text, index) => {
      const at = text.indexOf("=");
      return {
        key: at < 0 ? null : toUtf8(text.slice(0, at)),
        value: toUtf8(text.slice(at + 1)),
        headers: [],
        timestampMs: timestampMs + index,
      };
    }),
  });
}

const CRC_AT = 17;
const CRC_FROM = 21;

/** A copy with some of it changed and, unless told otherwise, the CRC made right again. */
export function changed(
  bytes: Uint8Array,
  change: (view: DataView) => void,
  { sealed = true } = {},
): Uint8Array {
  const copy = bytes.slice();
  change(viewOf(copy));
  if (sealed) viewOf(copy).setUint32(CRC_AT, crc32c(copy.subarray(CRC_FROM)));
  return copy;
}

/** A request frame of any key and version around a body. */
export function anyFrame(
  apiKey: number,
  version: number,
  body: Uint8Array,
  clientId: string | null = "test",
): Uint8Array {
  const writer = new ByteWriter();
  const id = clientId === null ? null : toUtf8(clientId);
  writer.i32(8 + 2 + (id?.length ?? 0) + body.length);
  writer.i16(apiKey);
  writer.i16(version);
  writer.i32(77);
  writer.i16(id?.length ?? -1);
  if (id !== null) writer.bytes(id);
  writer.bytes(body);
  return writer.view();
}

export function readerOf(frame: Uint8Array): ByteReader {
  return new ByteReader(frame);
}
