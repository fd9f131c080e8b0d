/** The assignor `range`: of each topic, every subscribed member gets a run of neighbouring partitions. Pure. */

export interface Subscriber {
  readonly memberId: string;
  /** Of a static member: it keeps its place across restarts. */
  readonly instanceId: string | null;
  readonly topics: readonly string[];
}

export type Assignment = ReadonlyMap<string, readonly number[]>;

function byText(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

/** Static members first, by name, then the others: the order of Kafka's own assignor. */
function byPlace(a: Subscriber, b: Subscriber): number {
  if (a.instanceId !== null && b.instanceId !== null) return byText(a.instanceId, b.instanceId);
  if (a.instanceId !== null) return -1;
  if (b.instanceId !== null) return 1;
  return byText(a.memberId, b.memberId);
}

/** Partitions by topic for every member; `partitions` counts those of each topic that is there. */
export function assignRanges(
  members: readonly Subscriber[],
  partitions: ReadonlyMap<string, number>,
): Map<string, Assignment> {
  const assigned = new Map(members.map(({ memberId }) => [memberId, new Map<string, number[]>()]));
  for (const [topic, count] of partitions) {
    const readers = members.filter(({ topics }) => topics.includes(topic)).toSorted(byPlace);
    const each = Math.floor(count / readers.length);
    const more = count % readers.length;
    let next = 0;
    for (const [i, { memberId }] of readers.entries()) {
      const size = each + (i < more ? 1 : 0);
      if (size > 0) {
        assigned.get(memberId)!.set(topic, Array.from({ length: size }, (_, at) => next + at));
      }
      next += size;
    }
  }
  return assigned;
}
