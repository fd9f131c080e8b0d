/** Searches a log that changes meanwhile: what retention or compaction took away is searched again as it is now. */
import type { Codecs } from "../env/codecs.ts";
import type { Stream } from "../stream/stream.ts";
import type { LogState } from "./log_state.ts";
import { LogView } from "./log_view.ts";
import type { TimestampedOffset } from "./partition_log.ts";
import type { TimeLookupInput } from "./time_lookup.ts";

export interface SearchedLog {
  readonly log: Stream;
  readonly state: LogState;
  /** Null while nothing was indexed. */
  readonly time: Stream | null;
  readonly codecs: Codecs;
}

function inputOf(
  { log, state, time, codecs }: SearchedLog,
  signal: AbortSignal | undefined,
): TimeLookupInput {
  const segments = [...state.segments];
  return {
    ...(signal === undefined ? {} : { signal }),
    segments,
    log: new LogView(log, segments),
    time,
    codecs,
    logStartOffset: state.logStartOffset,
    end: log.confirmOffset,
  };
}

export async function searchTimes(
  source: SearchedLog,
  find: (input: TimeLookupInput) => Promise<TimestampedOffset | null>,
  signal: AbortSignal | undefined,
): Promise<TimestampedOffset | null> {
  const { state } = source;
  for (;;) {
    const { cleanings, logStartOffset } = state;
    try {
      const found = await find(inputOf(source, signal));
      if (found === null || found.offset >= state.logStartOffset) return found;
    } catch (error) {
      const isSame = state.logStartOffset === logStartOffset && state.cleanings === cleanings;
      if (isSame || signal?.aborted === true) throw error;
    }
  }
}
