/**
 * A stock Kafka client where there are no TCP sockets, or only port 443: kafkajs over a WebSocket to the broker's
 * HTTP port. For Deno, Bun, Workers (with `nodejs_compat`) and whatever else has a WebSocket.
 *
 *   bun examples/kafka_over_websocket.ts ws://127.0.0.1:8080/v1/kafka
 *   deno run -A examples/kafka_over_websocket.ts ws://127.0.0.1:8080/v1/kafka
 */
import { Buffer } from "node:buffer";
import { EventEmitter } from "node:events";
import process from "node:process";
import { type ISocketFactory, Kafka, logLevel } from "kafkajs";

/** Largest piece of one message: the broker refuses messages above 1 MiB, and takes the stream in any pieces. */
const PIECE_BYTES = 256 * 1024;

/** As much of a socket as kafkajs touches. */
class KafkaSocket extends EventEmitter {
  readonly #ws: WebSocket;

  constructor(url: string, onConnect: () => void) {
    super();
    this.#ws = new WebSocket(url, ["kafka"]);
    this.#ws.binaryType = "arraybuffer";
    this.#ws.addEventListener("open", onConnect);
    this.#ws.addEventListener("message", ({ data }) => this.emit("data", Buffer.from(data)));
    this.#ws.addEventListener("error", () => this.emit("error", new Error(`Cannot use ${url}`)));
    this.#ws.addEventListener("close", () => this.emit("end"));
  }

  write(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
      this.#ws.send(bytes.slice(at, at + PIECE_BYTES));
    }
  }

  end(): void {
    this.#ws.close(1000);
  }

  unref(): void {}
}

/** Brokers have names and ports as ever, but behind the URL there is one address for all of them. */
export function webSocketFactory(url: string): ISocketFactory {
  return ({ onConnect }) =>
    new KafkaSocket(url, onConnect) as unknown as ReturnType<ISocketFactory>;
}

export function kafkaOver(url: string): Kafka {
  return new Kafka({
    brokers: ["over-websocket:443"],
    socketFactory: webSocketFactory(url),
    logLevel: logLevel.NOTHING,
  });
}

/** Writes the messages, and reads as many as a member of a new group. */
export async function roundTrip(
  kafka: Kafka,
  topic: string,
  messages: readonly { readonly key: string; readonly value: string }[],
): Promise<string[]> {
  const producer = kafka.producer();
  await producer.connect();
  await producer.send({ topic, messages: [...messages] });
  await producer.disconnect();

  const consumer = kafka.consumer({ groupId: `${topic}-readers` });
  await consumer.connect();
  await consumer.subscribe({ topic, fromBeginning: true });
  const got: string[] = [];
  await new Promise<void>((resolve, reject) => {
    consumer.run({
      eachMessage: ({ message }) => {
        got.push(`${message.key?.toString()}=${message.value?.toString()}`);
        if (got.length === messages.length) resolve();
        return Promise.resolve();
      },
    }).catch(reject);
  });
  await consumer.disconnect();
  return got;
}

if (import.meta.main) {
  const [url = "ws://127.0.0.1:8080/v1/kafka", topic = "orders"] = process.argv.slice(2);
  const messages = [{ key: "4711", value: "paid" }, { key: "4712", value: "open" }];
  for (const message of await roundTrip(kafkaOver(url), topic, messages)) console.log(message);
}
