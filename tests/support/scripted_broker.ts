/** A broker that answers as a test says: for what a client does when answers are late, wrong or missing. */
import { createServer, type Socket } from "node:net";
import { ByteReader, ByteWriter } from "../../src/lib/bytes.ts";
import { type Api, hasTaggedResponseHeader } from "../../src/protocol/api.ts";
import { FrameDecoder } from "../../src/protocol/frame.ts";
import {
  endRequestHeader,
  readRequestHeader,
  writeResponseHeader,
} from "../../src/protocol/header.ts";
import { metadataApi } from "../../src/protocol/message/03_metadata.ts";
import { apiVersionsApi } from "../../src/protocol/message/18_api_versions.ts";
import { decode, isFlexible } from "../../src/protocol/schema.ts";

/** Hangs up instead of an answer. */
export const HANG_UP = Symbol("hang up");
/** Never answers. */
export const SILENT = Symbol("silent");

export interface Script {
  readonly api: Api;
  readonly answer: (request: unknown) => object | typeof HANG_UP | typeof SILENT;
}

/** Binds an API to what it answers. */
export function script<Q, S, QIn, SOut>(
  api: Api<Q, S, QIn, SOut>,
  answer: (request: Q) => (S & object) | typeof HANG_UP | typeof SILENT,
): Script {
  return { api: api as unknown as Api, answer: answer as Script["answer"] };
}

export interface ScriptedBroker {
  readonly address: string;
  readonly port: number;
  close(): Promise<void>;
}

/** One topic `t` of one partition, led by this broker; the rest is the script's. */
export async function startScriptedBroker(scripts: readonly Script[]): Promise<ScriptedBroker> {
  const sockets = new Set<Socket>();
  let port = 0;
  const partition = {
    errorCode: 0,
    partitionIndex: 0,
    leaderId: 1,
    replicaNodes: [1],
    isrNodes: [1],
  };
  const base = [
    script(apiVersionsApi, () => ({
      errorCode: 0,
      apiKeys: all.map(({ api: { key, min, max } }) => (
        { apiKey: key, minVersion: min, maxVersion: max }
      )),
    })),
    script(metadataApi, () => ({
      brokers: [{ nodeId: 1, host: "127.0.0.1", port }],
      topics: [{ errorCode: 0, name: "t", partitions: [partition] }],
    })),
  ];
  const all: readonly Script[] = [...scripts, ...base];
  function answer(frame: Uint8Array, socket: Socket): void {
    const reader = new ByteReader(frame);
    const { apiKey, apiVersion, correlationId } = readRequestHeader(reader);
    const { api, answer: answerOf } = all.find((one) => one.api.key === apiKey)!;
    endRequestHeader(reader, isFlexible(api, apiVersion));
    const value = answerOf(decode(api.request, apiVersion, reader));
    if (value === SILENT) return;
    if (value === HANG_UP) return void socket.destroy();
    const writer = new ByteWriter();
    writer.i32(0);
    writeResponseHeader(writer, correlationId, hasTaggedResponseHeader(api, apiVersion));
    api.response.codec(apiVersion).write(writer, value);
    writer.patchI32(0, writer.length - 4);
    socket.write(writer.view());
  }
  const server = createServer((socket) => {
    sockets.add(socket);
    const decoder = new FrameDecoder(1 << 27);
    socket.on("error", () => {});
    socket.on("data", (chunk: Uint8Array) => {
      for (const frame of decoder.push(new Uint8Array(chunk))) answer(frame, socket);
    });
  });
  await new Promise<void>((done) => void server.listen(0, "127.0.0.1", done));
  const address = server.address();
  port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    address: `127.0.0.1:${port}`,
    port,
    async close() {
      for (const socket of sockets) socket.destroy();
      await new Promise<void>((done) => void server.close(() => done()));
    },
  };
}
