/**
 * The local copy of the metadata: it takes entries in order, checks their chain and tells what changed.
 * It never skips a position; a broken chain is a fault and leaves the copy as it was.
 */
import { position } from "../lib/brand.ts";
import { equalBytes } from "../lib/bytes.ts";
import { corrupt } from "../lib/corrupt.ts";
import { apply } from "./apply.ts";
import { decodeEntry, type Entry, entryHash, NO_HASH, type Writer } from "./entry.ts";
import type { Change } from "./metadata_store.ts";
import type { Snapshot } from "./snapshot.ts";
import { Draft, State } from "./state.ts";

export interface FeatureLevels {
  readonly first?: number | undefined;
  readonly known?: number | undefined;
}

export class Replica {
  #state: State;
  #lastHash: Uint8Array = NO_HASH;
  readonly #known: number | undefined;

  /** `first`: the level of a log that is empty; `known`: the highest that is read. */
  constructor(clusterId: string, { first, known }: FeatureLevels = {}) {
    this.#state = new State(clusterId, first);
    this.#known = known;
  }

  get state(): State {
    return this.#state;
  }
  get lastHash(): Uint8Array {
    return this.#lastHash;
  }

  draft(): Draft {
    return new Draft(this.#state);
  }

  /** Replaces everything by a snapshot; the change names all that was and all that is. */
  adopt({ state, lastHash }: Snapshot): Change {
    this.#check(state.clusterId === this.#state.clusterId, "snapshot is of another cluster");
    const before = this.#state;
    this.#state = state;
    this.#lastHash = lastHash;
    return {
      topics: new Set([...before.topics.keys(), ...state.topics.keys()]),
      partitions: new Set([...before.partitions.keys(), ...state.partitions.keys()]),
      nodes: true,
      objects: true,
    };
  }

  /** Applies the entry after the last one. Throws FaultError `corrupt` or `config`. */
  take(bytes: Uint8Array): { readonly entry: Entry; readonly change: Change } {
    const entry = decodeEntry(bytes, this.#known);
    this.#check(entry.clusterId === this.#state.clusterId, "entry is of another cluster");
    this.#check(entry.at === this.#state.at + 1, `entry says it is ${entry.at}`);
    this.#check(equalBytes(entry.previous, this.#lastHash), "entry does not follow the one before");
    const { featureLevel } = entry;
    this.#check(featureLevel >= this.#state.featureLevel, `feature level falls to ${featureLevel}`);
    const draft = this.draft();
    draft.featureLevel = featureLevel;
    for (const record of entry.records) apply(draft, record, entry.at);
    this.#check(draft.featureLevel === featureLevel, `a record says level ${draft.featureLevel}`);
    return { entry, change: this.fold(draft, entry.writer, bytes) };
  }

  /** Makes a draft whose entry is in the log the state. */
  fold(draft: Draft, writer: Writer, bytes: Uint8Array): Change {
    const { nodeId, epoch, incarnation, lastCommand } = writer;
    draft.writers.set(nodeId, { nodeId, epoch, incarnation, lastCommand });
    const change = {
      topics: draft.topics.changed,
      partitions: draft.partitions.changed,
      nodes: draft.nodes.changed.size > 0,
      objects: draft.objects.changed.size > 0,
    };
    draft.fold(position(this.#state.at + 1));
    this.#lastHash = entryHash(bytes);
    return change;
  }

  #check(condition: boolean, problem: string): void {
    if (!condition) throw corrupt(`Cannot apply metadata after ${this.#state.at}: ${problem}`);
  }
}
