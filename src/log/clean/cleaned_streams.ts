/**
 * The streams of cleaned segments. Their names, `log.cleaned.N` and `tim.cleaned.N`, stand in the stream map
 * before anything is in them, so that what a crash leaves is found, and deleted once no segment names it.
 */
import type { Offset, StreamId } from "../../lib/brand.ts";
import type { Stream } from "../../stream/stream.ts";
import type { Segment } from "../segment.ts";

const CLEANED_NAME = /^(log|tim)(\.cleaned\.(\d+))$/;

/** The streams that one pass wrote. */
export class CleanedPart {
  /** `.cleaned.N`, as the segments' metadata says it. */
  readonly suffix: string;
  readonly log: Stream;
  /** Made when the log is long enough to need an index. */
  time: Stream | null;

  constructor(suffix: string, log: Stream, time: Stream | null) {
    this.suffix = suffix;
    this.log = log;
    this.time = time;
  }

  async close(): Promise<void> {
    await this.log.close();
    await this.time?.close();
  }
}

export interface CleanedStreamsOptions {
  /** The partition's own, shared with its checkpoints. */
  readonly streamMap: Map<string, StreamId>;
  readonly parts: Iterable<CleanedPart>;
  readonly createStream: () => Promise<Stream>;
  readonly deleteStream: (id: StreamId) => Promise<void>;
  /** Makes the stream map durable. */
  readonly save: () => Promise<void>;
}

export class CleanedStreams {
  readonly #options: CleanedStreamsOptions;
  /** Open ones, by suffix. */
  readonly #parts = new Map<string, CleanedPart>();
  /** Being written: no segment names it yet. */
  #begun: CleanedPart | null = null;

  constructor(options: CleanedStreamsOptions) {
    this.#options = options;
    for (const part of options.parts) this.#parts.set(part.suffix, part);
  }

  #suffixes(): ReadonlySet<string> {
    const found = new Set<string>();
    for (const name of this.#options.streamMap.keys()) {
      const suffix = CLEANED_NAME.exec(name)?.[2];
      if (suffix !== undefined) found.add(suffix);
    }
    return found;
  }

  #nextNumber(): number {
    const numbers = [...this.#suffixes()].map((suffix) => Number(suffix.split(".").at(-1)));
    return Math.max(0, ...numbers) + 1;
  }

  async begin(): Promise<CleanedPart> {
    const { streamMap, createStream, save } = this.#options;
    const suffix = `.cleaned.${this.#nextNumber()}`;
    const part = new CleanedPart(suffix, await createStream(), null);
    this.#parts.set(suffix, part);
    this.#begun = part;
    streamMap.set(`log${suffix}`, part.log.streamId);
    await save();
    return part;
  }

  async addTimeStream(part: CleanedPart): Promise<Stream> {
    const { streamMap, createStream, save } = this.#options;
    part.time = await createStream();
    streamMap.set(`tim${part.suffix}`, part.time.streamId);
    await save();
    return part.time;
  }

  /** The pass is over: what no segment names by now is left over. */
  end(): void {
    this.#begun = null;
  }

  #leftovers(segments: readonly Segment[]): readonly string[] {
    const suffixes = this.#suffixes();
    if (suffixes.size === 0) return [];
    const used = new Set(segments.map(({ cleaned }) => cleaned?.part.suffix));
    used.add(this.#begun?.suffix);
    return [...suffixes].filter((suffix) => !used.has(suffix));
  }

  hasLeftovers(segments: readonly Segment[]): boolean {
    return this.#leftovers(segments).length > 0;
  }

  /** Deletes what no segment names, and gives back what lies before the first segment of the others. */
  async tidy(segments: readonly Segment[]): Promise<void> {
    for (const suffix of this.#leftovers(segments)) await this.#delete(suffix);
    const seen = new Set<CleanedPart>();
    for (const { cleaned } of segments) {
      if (cleaned === null || seen.has(cleaned.part)) continue;
      seen.add(cleaned.part);
      await trimTo(cleaned.part.log, cleaned.start);
    }
  }

  /** A second delete of a stream is no error: so the name goes last. */
  async #delete(suffix: string): Promise<void> {
    const { streamMap, deleteStream, save } = this.#options;
    await this.#parts.get(suffix)?.close();
    this.#parts.delete(suffix);
    const names = [`log${suffix}`, `tim${suffix}`];
    for (const name of names) {
      const id = streamMap.get(name);
      if (id !== undefined) await deleteStream(id);
    }
    for (const name of names) streamMap.delete(name);
    await save();
  }

  async close(): Promise<void> {
    const closed = [...this.#parts.values()].map((part) => part.close());
    for (const outcome of await Promise.allSettled(closed)) {
      if (outcome.status === "rejected") throw outcome.reason;
    }
  }
}

async function trimTo(stream: Stream, start: Offset): Promise<void> {
  if (start > stream.startOffset) await stream.trim(start);
}
