/**
 * Offsets of a stream as text that sorts: 16 digits, and the beginning of the topic's id, so that a place in a stream
 * that was deleted is not taken for one in a later stream of its name. And cursors, which only keep caches from
 * answering a reader the same for ever: the number of an interval, moved on where the client has it already.
 */
import type { Clock } from "../../../env/clock.ts";
import { type Random, randomInt } from "../../../env/random.ts";
import { badRequest, ProblemError } from "../../problem.ts";
import type { StreamTopic } from "./port.ts";

const DIGITS = 16;
const ID_CHARS = 8;
const OFFSET = /^(\d{16})_([0-9a-f]{8})$/;
/** The beginning as the protocol's own servers write it. */
const ZERO = "0000000000000000_0000000000000000";
const CURSOR = /^\d{1,12}$/;
const CURSOR_EPOCH_MS = Date.UTC(2024, 9, 9);
const CURSOR_INTERVAL_MS = 20_000;
/** An hour: readers that were together part. */
const CURSOR_JITTER_MAX = 180;

export type StreamStart = number | "earliest" | "latest";

export function offsetText(topicId: string, offset: number): string {
  return `${String(offset).padStart(DIGITS, "0")}_${topicId.slice(0, ID_CHARS)}`;
}

type OffsetsOf = Pick<StreamTopic, "topicId" | "fork">;

/** Whether an id in an offset stands for the stream, or for a forebear of a fork where both are the same. */
function isOwn(id: string, offset: number, { topicId, fork }: OffsetsOf): boolean {
  if (topicId.startsWith(id)) return true;
  return fork?.inherited.some((one) => one.topicId.startsWith(id) && offset <= one.to) === true;
}

/** `-1` is the beginning, `now` the end. Throws ProblemError. */
export function parseOffset(text: string, stream: OffsetsOf): StreamStart {
  if (text === "-1" || text === ZERO) return "earliest";
  if (text === "now") return "latest";
  const [, digits, id] = OFFSET.exec(text) ?? [];
  const offset = Number(digits);
  if (!Number.isSafeInteger(offset)) {
    throw badRequest("Cannot use offset: not -1, now, or what Stream-Next-Offset said");
  }
  if (isOwn(id!, offset, stream)) return offset;
  throw new ProblemError({
    status: 410,
    title: "Gone",
    detail: "Cannot use offset: its stream was deleted, and this is another one of its name",
  });
}

export function currentCursor(clock: Clock): number {
  return Math.max(0, Math.floor((clock.nowMs() - CURSOR_EPOCH_MS) / CURSOR_INTERVAL_MS));
}

/** Above that of the client, so that it asks under another URL next. */
export function cursorAfter(
  asked: string | null,
  { clock, random }: { readonly clock: Clock; readonly random: Random },
): number {
  const current = currentCursor(clock);
  const known = asked !== null && CURSOR.test(asked) ? Number(asked) : -1;
  return known < current ? current : known + 1 + randomInt(random, CURSOR_JITTER_MAX);
}
