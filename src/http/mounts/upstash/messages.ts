/** Records as messages: all of it text, with nothing where a key or a value is missing. */
import type { Clock } from "../../../env/clock.ts";
import { answerOf, chunksOf } from "../../answer.ts";
import type { RecordOutput } from "../../port.ts";
import type { TopicPartition } from "../group_port.ts";
import { lossyText } from "../shown.ts";

export interface Message {
  readonly place: TopicPartition;
  readonly record: RecordOutput;
}

function messageJson({ place: { topic, partition }, record }: Message): string {
  const { offset, timestampMs: timestamp, key, value, headers } = record;
  return JSON.stringify({
    topic,
    partition,
    offset,
    timestamp,
    key: lossyText(key) ?? "",
    value: lossyText(value) ?? "",
    headers: headers.map((one) => ({ key: one.name, value: lossyText(one.value) ?? "" })),
  });
}

function* listOf(messages: readonly Message[]): Generator<string, void> {
  yield "[";
  for (const [i, message] of messages.entries()) {
    yield `${i === 0 ? "" : ","}${messageJson(message)}`;
  }
  yield "]";
}

export function answerMessages(
  messages: readonly Message[],
  how: { readonly request: Request; readonly clock: Clock; readonly release: () => void },
): Response {
  return answerOf(chunksOf(listOf(messages)), {
    ...how,
    headers: { "content-type": "application/json", "cache-control": "no-store" },
  });
}
