/** The control plane as the rest of the node sees it: submit commands, look at the image, listen. */
import type { Command, Decided } from "./command.ts";
import type { Image } from "./image.ts";

export type CommandOf<T extends Command["type"]> = Extract<Command, { readonly type: T }>;

/** What an applied entry touched. */
export interface Change {
  readonly topics: ReadonlySet<string>;
  readonly partitions: ReadonlySet<string>;
  readonly nodes: boolean;
  readonly objects: boolean;
}

export interface MetadataStore {
  /**
   * Decides, commits and applies exactly once; commands that wait together share one log entry.
   * Throws FaultError `store-unavailable` or `timeout` when the outcome is not known in time.
   */
  submit<C extends Command>(command: C): Promise<Decided<C["type"]>>;
  /** The local replica; may be stale. */
  view(): Image;
  /**
   * After catching up with the end of the log. When in doubt about the own clocks, the end is also looked for in
   * a listing: behind a trim every name is free, and a free name alone says nothing about time.
   */
  fresh(inDoubt?: boolean): Promise<Image>;
  /** Called synchronously after each applied entry; returns the unsubscribe. */
  onChange(listener: (change: Change) => void): () => void;
  close(): Promise<void>;
}
