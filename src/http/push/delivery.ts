/** One delivery as a request: what stands in its body, and what its headers say of it. */
import { toUtf8 } from "../../lib/bytes.ts";
import type { RecordOutput } from "../port.ts";
import { recordJson, renderedBytes, type Shown } from "../record_json.ts";
import { rawHeadersOf } from "../raw_record.ts";
import type { Held } from "./window.ts";
import type { Subscription } from "./subscription.ts";

export interface Place {
  readonly topic: string;
  readonly topicId: string;
  readonly partition: number;
}

export interface Delivery {
  readonly id: string;
  readonly body: Uint8Array;
  readonly headers: Readonly<Record<string, string>>;
}

/** Names, numbers and braces around the records. */
const AROUND_BYTES = 1_024;

/** The same record has the same one whenever it is delivered: a name that was used again has another topic id. */
export function deliveryId({ topicId, partition }: Place, offset: number): string {
  return `${topicId}-${partition}-${offset}`;
}

function shownIn({ encoding }: Subscription): Shown {
  return { encoding, isInLine: false };
}

function recordsOf(taken: readonly Held[]): RecordOutput[] {
  return taken.flatMap(({ record }) => record ?? []);
}

/** What the body takes in memory, never too little. */
export function bodyBytes(subscription: Subscription, taken: readonly Held[]): number {
  const records = recordsOf(taken);
  if (subscription.format === "raw") return records[0]?.value?.length ?? 0;
  const shown = shownIn(subscription);
  return records.reduce((sum, record) => sum + renderedBytes(record, shown) + 1, AROUND_BYTES);
}

function jsonBody(subscription: Subscription, place: Place, records: readonly RecordOutput[]) {
  const { id } = subscription;
  const { topic, topicId, partition } = place;
  const head = JSON.stringify({ subscription: id, topic, topicId }).slice(0, -1);
  const texts = records.map((record) =>
    [...recordJson(record, partition, shownIn(subscription))].join("")
  );
  return toUtf8(`${head},"records":[${texts.join(",")}]}`);
}

function rawBody(record: RecordOutput, { topic, topicId, partition }: Place) {
  const headers: Record<string, string> = { "kafka-topic": topic, "kafka-topic-id": topicId };
  rawHeadersOf(record, partition).forEach((value, name) => void (headers[name] = value));
  delete headers["x-content-type-options"];
  return { body: record.value ?? new Uint8Array(0), headers };
}

export function deliveryOf(
  subscription: Subscription,
  place: Place,
  taken: readonly Held[],
): Delivery {
  const records = recordsOf(taken);
  const first = records[0]!;
  const id = deliveryId(place, first.offset);
  const own = {
    "skerry-subscription": subscription.id,
    "skerry-delivery": id,
    "skerry-attempt": String(taken[0]!.attempts + 1),
  };
  if (subscription.format === "json") {
    const headers = { "content-type": "application/json", ...own };
    return { id, body: jsonBody(subscription, place, records), headers };
  }
  const { body, headers } = rawBody(first, place);
  return { id, body, headers: { ...headers, ...own } };
}

/** Delivers nothing: shows that the handler is there and checks signatures. */
export function testDelivery({ id: subscription }: Subscription): Delivery {
  const headers = {
    "content-type": "application/json",
    "skerry-subscription": subscription,
    "skerry-delivery": "test",
    "skerry-attempt": "1",
  };
  return { id: "test", body: toUtf8(JSON.stringify({ subscription, test: true })), headers };
}
