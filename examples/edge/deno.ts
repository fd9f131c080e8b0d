/**
 * Deno, on a machine or on Deploy.
 *
 *   BROKER=http://127.0.0.1:8080 deno run --allow-net --allow-env examples/edge/deno.ts
 */
import process from "node:process";
import { handle } from "./handler.ts";

type Serve = (
  options: { readonly port: number; onListen(address: { readonly port: number }): void },
  handler: (request: Request) => Promise<Response>,
) => void;
/** The one member used here, so that the file type-checks without Deno's types too. */
const { serve } = (globalThis as unknown as { Deno: { serve: Serve } }).Deno;

const broker = process.env["BROKER"] ?? "http://127.0.0.1:8080";
serve({
  port: Number(process.env["PORT"] ?? 0),
  onListen: ({ port }) => console.log(`listening on http://127.0.0.1:${port}`),
}, (request) => handle(request, broker));
