/** What a client says on the WebSocket of a topic: JSON with one of three fields. Nothing else is taken. */
import * as v from "valibot";
import { toUtf8 } from "../../lib/bytes.ts";
import { HTTP_IDEMPOTENCY_KEY_CHARS_MAX, HTTP_SOCKET_CREDIT_MAX } from "../../lib/limits.ts";
import { parsed } from "../api/read_json.ts";
import { recordOfElement } from "../body.ts";
import { uniqueFields } from "../json_record.ts";
import { elementsOf, type Sourced, sourced } from "../json_source.ts";
import { jsonText, parseJson } from "../json_text.ts";
import { streamQuery } from "../live/stream.ts";
import type { RecordInput } from "../port.ts";
import { badRequest, ProblemError } from "../problem.ts";

const ID_CHARS_MAX = 100;

const idField = v.optional(
  v.union(
    [v.pipe(v.number(), v.safeInteger()), v.pipe(v.string(), v.maxLength(ID_CHARS_MAX))],
    `not an integer or a string of up to ${ID_CHARS_MAX} characters`,
  ),
);
const produceMessage = v.strictObject({
  produce: v.pipe(v.array(v.unknown()), v.minLength(1, "it holds no record")),
  id: idField,
  idempotencyKey: v.optional(
    v.pipe(
      v.string(),
      v.regex(/^[\x20-\x7e]+$/, "not a string of ASCII characters"),
      v.maxLength(HTTP_IDEMPOTENCY_KEY_CHARS_MAX),
    ),
  ),
});
const creditMessage = v.strictObject({
  credit: v.pipe(
    v.number(),
    v.safeInteger(),
    v.minValue(1),
    v.maxValue(HTTP_SOCKET_CREDIT_MAX),
  ),
});
const subscribeMessage = v.strictObject({ subscribe: streamQuery });

export type MessageId = v.InferOutput<typeof idField>;
export type Subscription = v.InferOutput<typeof streamQuery>;

export interface ProduceMessage {
  readonly kind: "produce";
  readonly id: MessageId;
  readonly idempotencyKey: string | undefined;
  readonly records: readonly RecordInput[];
}

export type TopicMessage =
  | ProduceMessage
  | { readonly kind: "credit"; readonly credit: number }
  | { readonly kind: "subscribe"; readonly query: Subscription };

/** What is wrong with a message, and the id that it came with. */
export interface Refusal {
  readonly kind: "refused";
  readonly id: MessageId;
  readonly error: ProblemError;
}

function recordsOf(json: Sourced): RecordInput[] {
  const array = uniqueFields(json, "the message").get("produce")!;
  return [...elementsOf(array)].map((element, i) =>
    recordOfElement({ json: element, where: `record ${i}` }, false)
  );
}

function idOf(value: unknown): MessageId {
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, "id")) return undefined;
  const result = v.safeParse(idField, (value as { readonly id: unknown }).id);
  return result.success ? result.output : undefined;
}

function messageOf(json: Sourced): TopicMessage {
  const { value } = json;
  if (typeof value === "object" && value !== null) {
    if (Object.hasOwn(value, "produce")) {
      const { id, idempotencyKey } = parsed(produceMessage, value, "the message");
      return { kind: "produce", id, idempotencyKey, records: recordsOf(json) };
    }
    if (Object.hasOwn(value, "credit")) {
      return { kind: "credit", ...parsed(creditMessage, value, "the message") };
    }
    if (Object.hasOwn(value, "subscribe")) {
      const { subscribe } = parsed(subscribeMessage, value, "the message");
      return { kind: "subscribe", query: subscribe };
    }
  }
  throw badRequest("Cannot use the message: it has none of produce, credit and subscribe");
}

export function readMessage(text: string): TopicMessage | Refusal {
  let value: unknown;
  try {
    const json = jsonText(toUtf8(text));
    value = parseJson(json, "the message");
    return messageOf(sourced(json, value));
  } catch (error) {
    if (!(error instanceof ProblemError)) throw error;
    return { kind: "refused", id: idOf(value), error };
  }
}
