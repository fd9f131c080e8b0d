/**
 * Partitions whose share state a group has made, is making, or is taking away (ShareGroupStatePartitionMetadata).
 * Only what is made is given to members. What is being made or taken away stands in the log before it is begun,
 * so that after a crash it is done again. Pure; without a change the very same value comes back.
 */
import type { Uuid } from "../../../lib/uuid.ts";
import {
  type Assignment,
  difference,
  NOTHING,
  partOf,
  sizeOf,
  union,
} from "../consumer/assignment.ts";
import type { SubscribedTopic, TopicView } from "../consumer/group.ts";

export interface StatePartitions {
  readonly initializing: Assignment;
  readonly initialized: Assignment;
  readonly deleting: ReadonlySet<Uuid>;
  /** Of all topics above, as they were called when they were taken in. */
  readonly names: ReadonlyMap<Uuid, string>;
}

export const NO_STATES: StatePartitions = {
  initializing: NOTHING,
  initialized: NOTHING,
  deleting: new Set(),
  names: new Map(),
};

export function allPartitionsOf({ topicId, partitions }: SubscribedTopic): Assignment {
  return partitions === 0
    ? NOTHING
    : new Map([[topicId, new Set(Array.from({ length: partitions }, (_, at) => at))]]);
}

/** Partitions of a topic for which there is nothing yet. */
export function missingOf(states: StatePartitions, topic: SubscribedTopic): Assignment {
  const known = (of: Assignment): number => of.get(topic.topicId)?.size ?? 0;
  if (known(states.initialized) >= topic.partitions) return NOTHING;
  return difference(
    difference(allPartitionsOf(topic), states.initialized),
    states.initializing,
  );
}

/** What members may be given of a topic. */
export function assignableOf(
  { initialized }: StatePartitions,
  { topicId, partitions }: SubscribedTopic,
): ReadonlySet<number> {
  return new Set([...initialized.get(topicId) ?? []].filter((partition) => partition < partitions));
}

function withoutNames(states: StatePartitions): StatePartitions {
  const { initializing, initialized, deleting } = states;
  const names = new Map(
    [...states.names].filter(([topicId]) =>
      initializing.has(topicId) || initialized.has(topicId) || deleting.has(topicId)
    ),
  );
  return { ...states, names };
}

/** A topic that is being taken away and comes back is not taken away any more. */
export function withInitializing(
  states: StatePartitions,
  partitions: Assignment,
  nameOf: (topicId: Uuid) => string,
): StatePartitions {
  if (sizeOf(partitions) === 0) return states;
  const names = new Map(states.names);
  const deleting = new Set(states.deleting);
  for (const topicId of partitions.keys()) {
    names.set(topicId, nameOf(topicId));
    deleting.delete(topicId);
  }
  return { ...states, initializing: union(states.initializing, partitions), deleting, names };
}

/** Only what still is being made: a topic may have been taken away meanwhile. */
export function withInitialized(states: StatePartitions, partitions: Assignment): StatePartitions {
  const made = partOf(
    partitions,
    (topicId, partition) => states.initializing.get(topicId)?.has(partition) === true,
  );
  if (sizeOf(made) === 0) return states;
  return {
    ...states,
    initializing: difference(states.initializing, made),
    initialized: union(states.initialized, made),
  };
}

export function withDeleting(states: StatePartitions, topicIds: Iterable<Uuid>): StatePartitions {
  const gone = new Set(topicIds);
  if (gone.size === 0) return states;
  const others = (of: Assignment) => partOf(of, (topicId) => !gone.has(topicId));
  return {
    ...states,
    initializing: others(states.initializing),
    initialized: others(states.initialized),
    deleting: new Set([...states.deleting, ...gone]),
  };
}

export function withDeleted(states: StatePartitions, topicIds: Iterable<Uuid>): StatePartitions {
  const deleting = new Set(states.deleting);
  for (const topicId of topicIds) deleting.delete(topicId);
  if (deleting.size === states.deleting.size) return states;
  return withoutNames({ ...states, deleting });
}

/** Without topics that are gone: nobody has to take away their states one by one. */
export function pruned(states: StatePartitions, topics: TopicView): StatePartitions {
  const isThere = (topicId: Uuid): boolean => topics.findById(topicId) !== undefined;
  if ([...states.names.keys()].every(isThere)) return states;
  return withoutNames({
    ...states,
    initializing: partOf(states.initializing, isThere),
    initialized: partOf(states.initialized, isThere),
    deleting: new Set([...states.deleting].filter(isThere)),
  });
}
