/** An edge function of Vercel, as `api/orders.ts`. `BROKER` is an environment variable. */
import { handle } from "./handler.ts";

export const config = { runtime: "edge" };

// What Vercel calls.
// oxlint-disable-next-line import/no-default-export
export default function orders(request: Request): Promise<Response> {
  return handle(request, process.env.BROKER ?? "http://127.0.0.1:8080");
}
