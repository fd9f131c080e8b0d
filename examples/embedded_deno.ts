/**
 * A Deno program with the broker inside, which also serves Kafka clients on a socket of its own.
 *
 *   deno run -A examples/embedded_deno.ts
 */
import process from "node:process";
import { createBroker } from "../mod.ts";

interface DenoConn {
  readonly readable: ReadableStream<Uint8Array>;
  readonly writable: WritableStream<Uint8Array>;
}
interface DenoListener extends AsyncIterable<DenoConn> {
  readonly addr: { readonly hostname: string; readonly port: number };
  close(): void;
}
/** The few members used here, so that the file type-checks without Deno's types too. */
const host = (globalThis as unknown as {
  Deno: { listen(options: { hostname: string; port: number }): DenoListener };
}).Deno;

const broker = await createBroker({ store: "memory:" });
const extra = host.listen({ hostname: "127.0.0.1", port: 0 });
console.log(`listening on ${broker.http.url}, Kafka on ${broker.kafka.host}:${broker.kafka.port}`);
console.log(`and over Web streams on ${extra.addr.hostname}:${extra.addr.port}`);

process.on("SIGTERM", () => {
  extra.close();
  void broker.close().then(() => process.exit(0));
});

for await (const connection of extra) void broker.serve(connection);
