/** A record that its handler did not take, for the dead-letter topic: as it was, with headers that say why. */
import { toUtf8 } from "../../lib/bytes.ts";
import type { RecordInput } from "../port.ts";
import type { Place } from "./delivery.ts";
import type { Held } from "./window.ts";

export interface DeadLetter {
  readonly subscription: string;
  readonly place: Place;
  readonly held: Held;
  readonly reason: string;
}

const PREFIX = "skerry-dead-letter-";

/** What was too large to be sent is too large here as well: then its place stands for it. */
export function deadLetterOf({ subscription, place, held, reason }: DeadLetter): RecordInput {
  const { record, offset, attempts, unsendable } = held;
  const facts: readonly (readonly [string, string])[] = [
    ["subscription", subscription],
    ["reason", reason],
    ["attempts", String(attempts)],
    ["topic", place.topic],
    ["topic-id", place.topicId],
    ["partition", String(place.partition)],
    ["offset", String(offset)],
    ...(unsendable === null ? [["timestamp", String(record?.timestampMs ?? 0)] as const] : []),
  ];
  return {
    key: record?.key ?? null,
    value: record?.value ?? null,
    headers: [
      ...record?.headers ?? [],
      ...facts.map(([name, text]) => ({ name: `${PREFIX}${name}`, value: toUtf8(text) })),
    ],
    timestampMs: null,
    partition: null,
  };
}
