/**
 * The load generator, a process of its own: prebuilt frames over plain sockets, or HTTP requests.
 * Prints one JSON line. Arguments: a Workload as JSON, and where the broker is.
 */
import { connect, type Socket } from "node:net";
import process from "node:process";
import { createCodecs } from "../../src/adapters/codecs.ts";
import { viewOf } from "../../src/lib/bytes.ts";
import { FrameDecoder } from "../../src/protocol/frame.ts";
import { produceApi } from "../../src/protocol/message/00_produce.ts";
import { fetchApi } from "../../src/protocol/message/01_fetch.ts";
import { buildBatch } from "../../src/protocol/record_batch.ts";
import { requestFrame } from "../support/wire.ts";
import type { Workload } from "./workloads.ts";

export interface Measured {
  readonly requests: number;
  readonly bytes: number;
  readonly seconds: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

const TOPIC = "bench";
const FRAME_BYTES_MAX = 1 << 28;
const FETCH_BYTES = 1 << 20;
export const PARTITIONS = 8;
/** Where a produce answer (version 9, one partition of our topic) has its error code. */
const ERROR_CODE_AT = 4 + 1 + 1 + (1 + TOPIC.length) + 1 + 4;

function batchOf({ records, valueBytes }: Workload): Uint8Array {
  const value = Uint8Array.from({ length: valueBytes }, (_, i) => (i * 31) & 0xff);
  return buildBatch({
    records: Array.from(
      { length: records },
      () => ({ key: null, value, headers: [], timestampMs: 1_700_000_000_000 }),
    ),
    codec: null,
    codecs: createCodecs(),
  });
}

function produceFrame(partition: number, batch: Uint8Array): Uint8Array {
  return requestFrame(produceApi, { version: 9, correlationId: 1 }, {
    transactionalId: null,
    acks: -1,
    timeoutMs: 30_000,
    topicData: [{ name: TOPIC, partitionData: [{ index: partition, records: batch }] }],
  });
}

function fetchFrame(partition: number, offset: number): Uint8Array {
  return requestFrame(fetchApi, { version: 11, correlationId: 1 }, {
    replicaId: -1,
    maxWaitMs: 500,
    minBytes: 1,
    maxBytes: FETCH_BYTES,
    isolationLevel: 0,
    sessionId: 0,
    sessionEpoch: -1,
    topics: [{
      topic: TOPIC,
      partitions: [{
        partition,
        currentLeaderEpoch: -1,
        fetchOffset: offset,
        logStartOffset: -1,
        partitionMaxBytes: FETCH_BYTES,
      }],
    }],
    forgottenTopicsData: [],
    rackId: "",
  });
}

class Samples {
  readonly ms: number[] = [];
  bytes = 0;
  measured(startedMs: number): Measured {
    const sorted = this.ms.toSorted((a, b) => a - b);
    const at = (part: number) =>
      sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
    return {
      requests: sorted.length,
      bytes: this.bytes,
      seconds: (performance.now() - startedMs) / 1000,
      p50Ms: at(0.5),
      p99Ms: at(0.99),
    };
  }
}

/** One connection that keeps `inFlight` requests going until its share is done. */
function pump(
  address: string,
  share: number,
  inFlight: number,
  frame: () => Uint8Array,
  onAnswer: (answer: Uint8Array, ms: number) => void,
): Promise<void> {
  const [host, port] = address.split(":") as [string, string];
  return new Promise((resolve, reject) => {
    const socket: Socket = connect(Number(port), host);
    socket.setNoDelay(true);
    const decoder = new FrameDecoder(FRAME_BYTES_MAX);
    const sentAtMs: number[] = [];
    let sent = 0;
    let answered = 0;
    const send = () => {
      if (sent >= share) return;
      sent += 1;
      sentAtMs.push(performance.now());
      socket.write(frame());
    };
    socket.on("error", reject);
    socket.on("connect", () => {
      for (let i = 0; i < inFlight; i++) send();
    });
    socket.on("data", (chunk: Uint8Array) => {
      for (const answer of decoder.push(new Uint8Array(chunk))) {
        onAnswer(answer, performance.now() - sentAtMs.shift()!);
        answered += 1;
        send();
      }
      if (answered < share) return;
      socket.destroy();
      resolve();
    });
  });
}

async function overTcp(workload: Workload, kafka: string, samples: Samples): Promise<void> {
  const share = Math.ceil(workload.requests / workload.connections);
  const batch = batchOf(workload);
  await Promise.all(Array.from({ length: workload.connections }, (_, i) => {
    const partition = i % PARTITIONS;
    const frame = workload.kind === "produce" ? produceFrame(partition, batch) : null;
    let offset = 0;
    return pump(
      kafka,
      share,
      workload.inFlight,
      () => frame ?? fetchFrame(partition, offset),
      (answer, ms) => {
        samples.ms.push(ms);
        if (frame !== null) {
          const code = viewOf(answer).getInt16(ERROR_CODE_AT);
          if (code !== 0) throw new Error(`produce was refused: ${code}`);
          samples.bytes += batch.length;
        } else {
          samples.bytes += answer.length;
          const batches = Math.floor(answer.length / batch.length);
          offset += batches * workload.records;
        }
      },
    );
  }));
}

async function overHttp(workload: Workload, http: string, samples: Samples): Promise<void> {
  const value = "x".repeat(workload.valueBytes);
  const body = JSON.stringify(Array.from({ length: workload.records }, () => ({ value })));
  const share = Math.ceil(workload.requests / workload.connections);
  const one = async (partition: number, i: number): Promise<void> => {
    const base = `${http}/v1/topics/${TOPIC}/partitions/${partition}/records`;
    const startedMs = performance.now();
    const response = workload.kind === "http-produce"
      ? await fetch(base, { method: "POST", body, headers: { "content-type": "application/json" } })
      : await fetch(`${base}?offset=${i * workload.records}&limit=${workload.records}`);
    const bytes = (await response.arrayBuffer()).byteLength;
    if (!response.ok) throw new Error(`HTTP ${response.status}`);
    samples.ms.push(performance.now() - startedMs);
    samples.bytes += workload.kind === "http-produce" ? body.length : bytes;
  };
  await Promise.all(Array.from({ length: workload.connections }, async (_, partition) => {
    for (let i = 0; i < share; i++) await one(partition, i);
  }));
}

async function run(workload: Workload, kafka: string, http: string): Promise<Measured> {
  const samples = new Samples();
  const startedMs = performance.now();
  if (workload.kind.startsWith("http")) await overHttp(workload, http, samples);
  else await overTcp(workload, kafka, samples);
  return samples.measured(startedMs);
}

async function main(): Promise<void> {
  const [text, kafka, http] = process.argv.slice(2) as [string, string, string];
  console.log(JSON.stringify(await run(JSON.parse(text) as Workload, kafka, http)));
}

if (import.meta.main) await main();
