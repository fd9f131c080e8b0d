/**
 * Bun, with a page that shows orders as they come.
 *
 *   BROKER=http://127.0.0.1:8080 bun examples/edge/bun.ts
 */
import { handle } from "./handler.ts";

const broker = process.env["BROKER"] ?? "http://127.0.0.1:8080";
const server = Bun.serve({
  port: Number(process.env["PORT"] ?? 0),
  routes: { "/page": new Response(Bun.file(new URL("page.html", import.meta.url))) },
  fetch: (request) => handle(request, broker),
});
console.log(`listening on ${server.url.href}`);
