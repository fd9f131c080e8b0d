/** Finds streams whose objects are worth a rewrite, and remembers those in which there is nothing to do. */
import type { ObjectId, Offset, StreamId } from "../../lib/brand.ts";
import { Lru } from "../../lib/lru.ts";
import type { CompactionManager, ObjectManager, StreamManager } from "../ports.ts";
import type { CompactionOptions } from "./options.ts";
import type { StreamWork } from "./stream_batch.ts";
import { planStream, type StreamJob } from "./stream_plan.ts";

const CLEAN_FROM_MAX = 1_000;

export interface StreamPlannerOptions {
  readonly objects: Pick<ObjectManager, "viewObjects">;
  readonly streams: Pick<StreamManager, "viewStream">;
  readonly compaction: Pick<CompactionManager, "heldStreams" | "objectCount">;
  readonly settings: CompactionOptions;
  /** Objects that must not be asked for. */
  readonly isUnreadable: (id: ObjectId) => boolean;
}

export class StreamPlanner {
  readonly #options: StreamPlannerOptions;
  /** Start of the stream from which on a composite has a dead link. */
  readonly #cleanFrom = new Lru<ObjectId, Offset>(CLEAN_FROM_MAX, () => 1);
  /** Streams in which there is nothing to do until they change; most of them, in most looks. */
  #idle = new WeakSet<object>();
  #wasPressing = false;

  constructor(options: StreamPlannerOptions) {
    this.#options = options;
  }

  onNothingDead(composite: ObjectId, until: Offset): void {
    this.#cleanFrom.set(composite, until);
  }

  /** One per stream: the next one is planned with what this one made. Each is planned when it is asked for. */
  *works(): Generator<StreamWork> {
    if (this.#isPressing() !== this.#wasPressing) {
      this.#wasPressing = !this.#wasPressing;
      this.#idle = new WeakSet();
    }
    const held = [...this.#options.compaction.heldStreams()]
      .filter(({ objects, version }) => objects > 0 && !this.#idle.has(version));
    for (const { streamId, version } of held) {
      const job = this.#plan(streamId);
      if (job === null) this.#idle.add(version);
      else yield { streamId, job };
    }
  }

  #plan(streamId: StreamId): StreamJob | null {
    const { streams, objects, settings, isUnreadable } = this.#options;
    const start: Offset | undefined = streams.viewStream(streamId)?.start;
    const view = objects.viewObjects(streamId);
    if (start === undefined || view === null) return null;
    const sound = view.streamObjects.filter(({ objectId }) => !isUnreadable(objectId));
    const first = sound[0]?.objectId;
    const cleanFrom = first === undefined ? 0 : this.#cleanFrom.get(first) ?? 0;
    const isPressing = this.#isPressing();
    return planStream({ start, objects: sound, cleanFrom, isPressing }, settings);
  }

  #isPressing(): boolean {
    const { compaction, settings } = this.#options;
    return compaction.objectCount() >= settings.clusterObjectsMax;
  }
}
