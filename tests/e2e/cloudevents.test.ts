/** The CloudEvents SDK as it is: what it sends in each of its forms is what it reads back from Kafka's records. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { CloudEvent, emitterFor, HTTP, httpTransport, Kafka, type Message } from "cloudevents";
import { type Broker, createBroker } from "../../mod.ts";

const EVENT = new CloudEvent({
  id: "1",
  type: "com.example.order",
  source: "/orders",
  subject: "café",
  partitionkey: "customer-7",
  data: { state: "paid", note: "grüße" },
});

interface Page {
  readonly records: readonly {
    readonly key: string;
    readonly value: unknown;
    readonly timestamp: number;
    readonly headers: readonly (readonly [string, string])[];
  }[];
}

async function send({ http }: Broker, path: string, { headers, body }: Message): Promise<void> {
  const init = { method: "POST", headers: headers as Record<string, string>, body: String(body) };
  const answer = await fetch(`${http.url}${path}`, init);
  assert.ok(answer.ok, await answer.text());
}

test("cloudevents: binary, structured, batch and its emitter", async () => {
  const broker = await createBroker({ store: "memory:" });
  try {
    await send(broker, "/v1/topics/events/records", HTTP.binary(EVENT));
    await send(broker, "/v1/topics/events/records", HTTP.structured(EVENT));
    await send(broker, "/ce/events", {
      headers: { "content-type": "application/cloudevents-batch+json" },
      body: JSON.stringify([EVENT, EVENT.cloneWith({ id: "2" })]),
    });
    await emitterFor(httpTransport(`${broker.http.url}/ce/events`))(EVENT);
    const page = await fetch(`${broker.http.url}/v1/topics/events/partitions/0/records`);
    const { records } = await page.json() as Page;
    const events = records.map(({ key, value, timestamp, headers }) => {
      const message = { key, value, body: value, timestamp: String(timestamp) };
      return Kafka.toEvent({ ...message, headers: Object.fromEntries(headers) });
    });
    assert.deepEqual(
      events.map((event) => {
        assert.ok(!Array.isArray(event));
        const { id, type, source, subject, data } = event as CloudEvent<unknown>;
        return { id, type, source, subject, data };
      }),
      ["1", "1", "1", "2", "1"].map((id) => {
        const { type, source, subject, data } = EVENT;
        return { id, type, source, subject, data };
      }),
    );
    assert.deepEqual(records.map(({ key }) => key), Array(5).fill("customer-7"));
  } finally {
    await broker.close();
  }
});
