/** Where a node can be broken from outside, and how what lies behind its ports is replaced in part. */
import type { Auditor, AuditorOptions } from "../../../src/controller/auditor.ts";
import type { Command, Decided } from "../../../src/controller/command.ts";
import type { Managers } from "../../../src/controller/managers.ts";
import type { MetadataStore } from "../../../src/controller/metadata_store.ts";
import type { ObjectStore } from "../../../src/object/object_store.ts";
import type { Stream } from "../../../src/stream/stream.ts";
import type { SimProcess } from "../process.ts";
import type { SimStore } from "../sim_store.ts";
import type { World } from "../world.ts";

export interface SabotageParts {
  readonly world: World;
  readonly store: SimStore;
  readonly process: SimProcess;
}

export interface Sabotage {
  store?(line: ObjectStore, parts: SabotageParts): ObjectStore;
  metadata?(
    inner: MetadataStore,
    parts: SabotageParts & { readonly line: ObjectStore },
  ): MetadataStore;
  stream?(inner: Stream, managers: Managers): Stream;
  audit?(options: AuditorOptions): Auditor;
}

type SubmitOne = (command: Command) => Promise<Decided<Command["type"]>>;

/** A metadata store whose `submit` is another one. */
export function submitting(inner: MetadataStore, submit: SubmitOne): MetadataStore {
  return {
    view: () => inner.view(),
    fresh: () => inner.fresh(),
    onChange: (listener) => inner.onChange(listener),
    close: () => inner.close(),
    // What a command answers belongs to its type.
    submit: <C extends Command>(command: C) => submit(command) as Promise<Decided<C["type"]>>,
  };
}

/** Its methods instead of those of the stream. */
export function overlaid(
  inner: Stream,
  methods: Partial<Pick<Stream, "append" | "fetch" | "trim" | "close">>,
): Stream {
  return {
    streamId: inner.streamId,
    epoch: inner.epoch,
    get startOffset() {
      return inner.startOffset;
    },
    get confirmOffset() {
      return inner.confirmOffset;
    },
    get nextOffset() {
      return inner.nextOffset;
    },
    append: (count, payload) => inner.append(count, payload),
    fetch: (start, end, options) => inner.fetch(start, end, options),
    trim: (start) => inner.trim(start),
    close: () => inner.close(),
    ...methods,
  };
}
