/**
 * A record that is a CloudEvent as Kafka's binding has it, read as one of HTTP's: `ce_x` is `ce-x`, percent-encoded,
 * and its content type is that of the answer. Whoever may write chooses it, so the answer has to keep a browser from
 * running what it gets, whatever else has room.
 */
import { textOfBytes } from "./record_json.ts";
import type { RecordHeader, RecordOutput } from "./port.ts";

const ATTRIBUTE = /^ce_([a-z0-9]+)$/;
const STRUCTURED = "application/cloudevents+json";
const TYPE = /^[\x20-\x7e]+$/;

function textIn(headers: readonly RecordHeader[], name: string): string | null {
  const value = headers.find((header) => header.name === name)?.value ?? null;
  return value === null ? null : textOfBytes(value);
}

/** As the binding asks: space, quotes, percent signs and what is not visible ASCII. */
function encoded(text: string): string {
  return text.replace(/[^\x21\x23\x24\x26-\x7e]+/gu, encodeURIComponent);
}

/** The name of an attribute; null for other headers, and for what is no text. */
function attributeOf({ name, value }: RecordHeader): readonly [string, string] | null {
  const attribute = ATTRIBUTE.exec(name)?.[1];
  const text = attribute === undefined || value === null ? null : textOfBytes(value);
  return text === null || !text.isWellFormed() ? null : [`ce-${attribute}`, encoded(text)];
}

export interface EventHeaders {
  readonly headers: readonly (readonly [name: string, text: string])[];
  /** What is left of the record's own. */
  readonly others: readonly RecordHeader[];
}

/** Null for a record that is no event. */
export function eventHeaders({ headers, value }: RecordOutput): EventHeaders | null {
  const type = textIn(headers, "content-type");
  const isBinary = textIn(headers, "ce_specversion") !== null;
  if (!isBinary && type?.startsWith(STRUCTURED) !== true) return null;
  const isTyped = type !== null && TYPE.test(type) && value !== null;
  const attributes = headers.map(attributeOf);
  return {
    headers: [
      ...attributes.filter((attribute) => attribute !== null),
      ...(isTyped ? [["content-type", type] as const] : []),
    ],
    others: headers.filter((header, i) =>
      attributes[i] === null && !(isTyped && header.name === "content-type")
    ),
  };
}
