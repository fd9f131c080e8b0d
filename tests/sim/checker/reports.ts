/**
 * I1: what a writer is told is committed stands in the log, as the first at its position: the checker's own
 * replica holds the writer's command by the moment in which the answer arrives.
 */
import type { Command, Decided } from "../../../src/controller/command.ts";
import type { MetadataStore } from "../../../src/controller/metadata_store.ts";
import type { Uuid } from "../../../src/lib/uuid.ts";
import type { SimProcess } from "../process.ts";
import type { World } from "../world.ts";
import type { MetadataChecker } from "./metadata.ts";

/** They always write an entry when they succeed; others may find nothing to do. */
const WRITE: ReadonlySet<Command["type"]> = new Set([
  "register-node",
  "create-stream",
  "reserve-ids",
  "commit-upload",
  "commit-compaction",
]);

export class ReportChecker {
  readonly #world: World;
  readonly #metadata: MetadataChecker;

  constructor(world: World, metadata: MetadataChecker) {
    this.#world = world;
    this.#metadata = metadata;
  }

  /** The same store; it numbers commands as the node's own does, in the order in which they are submitted. */
  watch(inner: MetadataStore, process: SimProcess, incarnation: Uuid): MetadataStore {
    let last = 0;
    const submit = async (command: Command): Promise<Decided<Command["type"]>> => {
      const number = ++last;
      const decided = await inner.submit(command);
      if (decided.ok && WRITE.has(command.type)) this.#told(process, incarnation, number, command);
      return decided;
    };
    return {
      view: () => inner.view(),
      fresh: (inDoubt) => inner.fresh(inDoubt),
      onChange: (listener) => inner.onChange(listener),
      close: () => inner.close(),
      // What a command answers belongs to its type.
      submit: <C extends Command>(command: C) => submit(command) as Promise<Decided<C["type"]>>,
    };
  }

  #told(process: SimProcess, incarnation: Uuid, number: number, command: Command): void {
    if ((this.#metadata.lastCommand(incarnation) ?? 0) >= number) return;
    if (this.#isRepeated(command)) return;
    this.#world.violated(
      `I1: ${process.name} is told that its command ${number}, ${command.type}, is committed; ` +
        "the log has another entry",
    );
  }

  /** After a lost answer an upload is committed once more, which writes nothing. */
  #isRepeated(command: Command): boolean {
    if (command.type !== "commit-upload") return false;
    const { streamSetObject, streamObjects } = command.commit;
    const ids = [...streamObjects, ...(streamSetObject === null ? [] : [streamSetObject])]
      .map(({ objectId }) => objectId);
    return ids.length > 0 && ids.every((id) => this.#metadata.state.objects.has(id));
  }
}
