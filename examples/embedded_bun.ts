/**
 * A Bun server with the broker inside: its own routes, and the gateway under the same port.
 *
 *   bun examples/embedded_bun.ts
 */
import { createBroker } from "../mod.ts";

const broker = await createBroker({ store: process.argv[2] ?? "memory:", httpListen: "off" });

const server = Bun.serve({
  port: Number(process.env["PORT"] ?? 0),
  fetch(request) {
    const { pathname } = new URL(request.url);
    return pathname === "/"
      ? new Response("an application with a broker inside\n")
      : broker.fetch(request);
  },
});
console.log(`listening on ${server.url.href}, Kafka on ${broker.kafka.host}:${broker.kafka.port}`);

process.on("SIGTERM", () => {
  void server.stop()
    .then(() => broker.close())
    .then(() => process.exit(0));
});
