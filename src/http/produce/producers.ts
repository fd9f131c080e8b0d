/** POST /v1/producers: an id for a producer that numbers its records. */
import type { Gateway } from "../port.ts";
import { problemOf, problemResponse } from "../problem.ts";

export async function createProducer(gateway: Gateway): Promise<Response> {
  const created = await gateway.createProducer();
  if (!created.ok) return problemResponse(problemOf(created));
  const { producerId, producerEpoch } = created;
  return Response.json({ producerId, producerEpoch }, {
    status: 201,
    headers: { "producer-id": String(producerId), "producer-epoch": String(producerEpoch) },
  });
}
