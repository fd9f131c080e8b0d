/** Topics for consumer groups, from the metadata; the version counts the changes that were seen. */
import type { Uuid } from "../../../lib/uuid.ts";
import type { TopicRow } from "../../../controller/image.ts";
import type { MetadataStore } from "../../../controller/metadata_store.ts";
import type { SubscribedTopic, TopicView } from "./group.ts";

export class MetadataTopics implements TopicView {
  readonly #metadata: MetadataStore;
  readonly #unsubscribe: () => void;
  #version = 0;

  constructor(metadata: MetadataStore) {
    this.#metadata = metadata;
    this.#unsubscribe = metadata.onChange(({ topics }) => {
      if (topics.size > 0) this.#version += 1;
    });
  }

  get version(): number {
    return this.#version;
  }

  find(name: string): SubscribedTopic | undefined {
    const topicId = this.#metadata.view().topicIds.get(name);
    return topicId === undefined ? undefined : this.findById(topicId);
  }

  findById(topicId: Uuid): TopicRow | undefined {
    return this.#metadata.view().topics.get(topicId);
  }

  /** A regular expression never means internal topics: a consumer of all would read its own commits. */
  *names(): Generator<string, void> {
    for (const { name, internal } of this.#metadata.view().topics.values()) {
      if (!internal) yield name;
    }
  }

  close(): void {
    this.#unsubscribe();
  }
}
