/** Where an instance reads: the partitions that it has, and how far it is in each. */
import type { OffsetAt, Place } from "../group_port.ts";

export function placeKey({ topicId, partition }: Place): string {
  return `${topicId}/${partition}`;
}

interface Standing {
  readonly place: Place;
  /** Null until it is looked up: a jump, a committed offset, or where the instance begins. */
  next: number | null;
  /** Behind what its client has been given; null before anything was. */
  given: number | null;
  /** Of `given`: what the group knows. */
  committed: number | null;
}

export class Places {
  readonly #standing = new Map<string, Standing>();
  /** Which of them is read first, so that none waits for ever. */
  #turn = 0;

  get list(): readonly Place[] {
    return [...this.#standing.values()].map(({ place }) => place);
  }

  get size(): number {
    return this.#standing.size;
  }

  has(place: Place): boolean {
    return this.#standing.has(placeKey(place));
  }

  /** Those that are new are looked up before they are read. */
  become(places: readonly Place[]): void {
    const wanted = new Set(places.map(placeKey));
    for (const key of this.#standing.keys()) if (!wanted.has(key)) this.#standing.delete(key);
    for (const place of places) {
      const key = placeKey(place);
      if (this.#standing.has(key)) continue;
      this.#standing.set(key, { place, next: null, given: null, committed: null });
    }
  }

  /** In the order in which they are read now. */
  inTurn(): readonly Place[] {
    const all = this.list;
    if (all.length === 0) return all;
    this.#turn = (this.#turn + 1) % all.length;
    return [...all.slice(this.#turn), ...all.slice(0, this.#turn)];
  }

  nextOf(place: Place): number | null {
    return this.#standing.get(placeKey(place))?.next ?? null;
  }

  unknown(): readonly Place[] {
    return [...this.#standing.values()].filter(({ next }) => next === null)
      .map(({ place }) => place);
  }

  setNext(place: Place, next: number): void {
    const standing = this.#standing.get(placeKey(place));
    if (standing !== undefined) standing.next = next;
  }

  /** The client has what lies before. */
  give(place: Place, next: number): void {
    const standing = this.#standing.get(placeKey(place));
    if (standing === undefined) return;
    standing.next = next;
    standing.given = next;
  }

  /** A jump: what was given before it is not what a commit means any more. */
  jump(topic: string, partition: number, offset: number | null): void {
    for (const standing of this.#standing.values()) {
      const { place } = standing;
      if (place.topic !== topic || place.partition !== partition) continue;
      standing.next = offset;
      standing.given = null;
      standing.committed = null;
    }
  }

  /** What was given and is not committed, of these places, or of all. */
  toCommit(of?: readonly Place[]): readonly (OffsetAt & { readonly place: Place })[] {
    const keys = of === undefined ? null : new Set(of.map(placeKey));
    return [...this.#standing.values()]
      .filter(({ place, given, committed }) =>
        given !== null && given !== committed && keys?.has(placeKey(place)) !== false
      )
      .map(({ place, given }) => {
        const { topic, partition } = place;
        return { place, topic, partition, offset: given!, metadata: "" };
      });
  }

  /** Its client has said itself what is done: what it was given does not count beside that. */
  chosen(topic: string, partition: number): void {
    for (const standing of this.#standing.values()) {
      const { place, given } = standing;
      if (place.topic !== topic || place.partition !== partition) continue;
      standing.committed = given;
    }
  }

  setCommitted(place: Place, offset: number): void {
    const standing = this.#standing.get(placeKey(place));
    if (standing !== undefined) standing.committed = offset;
  }
}
