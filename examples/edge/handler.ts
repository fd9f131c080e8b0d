/**
 * What all of these examples serve: orders come in by POST and are stored once; GET does the work on them, a few
 * at a time. Web APIs only, so that each platform adds no more than its door.
 */
import { createClient } from "../../src/client/mod.ts";

/** Reads up to ten orders that nobody has worked on; a crash before `ack` gives them to the next call. */
async function work(broker: string): Promise<readonly string[]> {
  const batch = await createClient({ url: broker }).group("mailer")
    .poll({ topics: ["orders"], max: 10, leaseMs: 30_000 });
  const done = batch.records.map(({ offset, value }) =>
    `mail for order ${offset}: ${String(value)}`
  );
  await batch.ack();
  return done;
}

async function accept(request: Request, broker: string): Promise<unknown> {
  // In Workers nothing may outlive its request. A client costs nothing, so each request has its own.
  const orders = createClient({ url: broker }).topic("orders");
  const delivery = request.headers.get("x-delivery-id");
  return await orders.produce(
    { key: request.headers.get("x-customer"), value: await request.text() },
    // Whoever sends a delivery again, to whichever machine, has it stored once.
    delivery === null ? {} : { idempotencyKey: delivery },
  );
}

export async function handle(request: Request, broker: string): Promise<Response> {
  return request.method === "POST"
    ? Response.json(await accept(request, broker), { status: 201 })
    : Response.json({ done: await work(broker) });
}
