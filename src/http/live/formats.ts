/** What a live stream looks like: server-sent events, or a line of JSON each. */
import type { RecordOutput } from "../port.ts";
import { type Encoding, recordJson } from "../record_json.ts";

/** Records that are gone before they were read: reading goes on at `to`. */
export interface Gap {
  readonly partition: number;
  readonly from: number;
  readonly to: number;
}

/** Why a stream ends. */
export type EndReason =
  | "server-stop"
  | "topic-deleted"
  | "topic-recreated"
  | "offset-out-of-range";

export interface StreamFormat {
  readonly contentType: string;
  /** The first bytes, and where the reader stands. */
  open(cursor: string): string;
  /** The cursor is that behind the record. */
  record(record: RecordOutput, partition: number, cursor: string): Iterable<string>;
  /** Where the reader stands, after records that it does not want. */
  cursor(cursor: string): string;
  gap(gap: Gap, cursor: string): string;
  /** Something that cannot be read, or not now. */
  problem(problem: Readonly<Record<string, unknown>>, cursor: string): string;
  readonly heartbeat: string;
  /** The stream has said all that it says, or for long enough; asked between records. */
  isOver?(): boolean;
  end(reason: EndReason): string;
}

/** How long a browser waits before it comes back. */
const RETRY_MS = 1_000;

/**
 * An id stands on everything that moves the reader on, and on nothing else: an empty one would reset it. It
 * stands last: there are clients that take it as soon as its line is there, and what is cut then would be lost.
 */
function event(name: string, cursor: string | null, data: unknown): string {
  const id = cursor === null ? "" : `id: ${cursor}\n`;
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n${id}\n`;
}

/** Comments and `retry` stand without an empty line behind them, which some clients take for an empty event. */
export function sseFormat(encoding: Encoding): StreamFormat {
  const shown = { encoding, isInLine: true };
  return {
    contentType: "text/event-stream",
    open: (cursor) => `retry: ${RETRY_MS}\n${event("cursor", cursor, { cursor })}`,
    *record(record, partition, cursor) {
      yield "data: ";
      yield* recordJson(record, partition, shown);
      yield `\nid: ${cursor}\n\n`;
    },
    cursor: (cursor) => event("cursor", cursor, { cursor }),
    gap: (gap, cursor) => event("gap", cursor, gap),
    problem: (problem, cursor) => event("problem", cursor, problem),
    heartbeat: ":\n",
    end: (reason) => event("end", null, { reason }),
  };
}

export function linesFormat(encoding: Encoding): StreamFormat {
  const shown = { encoding, isInLine: true };
  const line = (value: unknown) => `${JSON.stringify(value)}\n`;
  return {
    contentType: "application/x-ndjson",
    open: (cursor) => line({ cursor }),
    *record(record, partition, cursor) {
      yield `{"cursor":"${cursor}",`;
      let isFirst = true;
      for (const piece of recordJson(record, partition, shown)) {
        yield isFirst ? piece.slice(1) : piece;
        isFirst = false;
      }
      yield "\n";
    },
    cursor: (cursor) => line({ cursor }),
    gap: (gap, cursor) => line({ cursor, gap }),
    problem: (problem, cursor) => line({ cursor, problem }),
    heartbeat: "\n",
    end: (reason) => line({ end: { reason } }),
  };
}
