/**
 * A stream as server-sent events: each record with a value is a `data` event, and a `control` event behind it says
 * where to go on. Text and JSON stand as they are, a line each; all else as base64.
 */
import { textPieces } from "../../record_json.ts";
import { base64Pieces, valueJson } from "../../record_json.ts";
import type { RecordOutput } from "../../port.ts";
import { type ContentKind, SHOWN } from "./content.ts";

const BREAK = /(\r\n|\r|\n)( ?)/g;
const LAST_BREAK = /(?:\r\n|\r|\n)$/;

/** A first space of a line is doubled: readers take one away. */
function asLines(text: string): string {
  return text.replaceAll(BREAK, (_, _break, space: string) => `\ndata:${space}${space}`);
}

/** Text whose lines each stand behind `data:`, so that nothing in it ends the event. */
function* linedPieces(pieces: Iterable<string>): Generator<string, void> {
  let held = "";
  let isFirst = true;
  for (const piece of pieces) {
    const text = held + piece;
    // A break at the end is not whole yet, nor is it known what follows it.
    held = LAST_BREAK.exec(text)?.[0] ?? "";
    const whole = text.slice(0, text.length - held.length);
    if (whole === "") continue;
    yield `${isFirst && whole.startsWith(" ") ? " " : ""}${asLines(whole)}`;
    isFirst = false;
  }
  if (held !== "") yield asLines(held);
}

function* contentOf(value: Uint8Array, kind: ContentKind): Generator<string, void> {
  if (kind === "binary") return yield* base64Pieces(value);
  if (kind === "text") return yield* linedPieces(textPieces(value, true));
  yield "[";
  yield* valueJson(value, SHOWN);
  yield "]";
}

/** The last piece ends the record, with its control event. */
export function* recordEvents(
  { value }: RecordOutput,
  kind: ContentKind,
  control: () => string,
): Generator<string, void> {
  if (value === null) return yield control();
  yield "event: data\ndata:";
  yield* contentOf(value, kind);
  yield `\n\n${control()}`;
}
