/** What a group's epoch and its target follow from: the topics that members subscribe to, as they are. Pure. */
import { toUtf8 } from "../../../lib/bytes.ts";
import { crc32c } from "../../../lib/crc32c.ts";
import type { Uuid } from "../../../lib/uuid.ts";
import { xxhash32 } from "../../../lib/xxhash32.ts";
import { type Assignment, isSame, NOTHING } from "./assignment.ts";
import { type AssignorMember, assignorOf, ASSIGNORS } from "./assignors.ts";
import {
  type ConsumerGroup,
  type ConsumerMember,
  namesOf,
  oneOfEach,
  type Resolved,
  type SubscribedTopic,
  type TopicView,
} from "./group.ts";

/** What decisions look at beside the group. */
export interface World {
  readonly topics: TopicView;
  /** The newest known topics of an expression. */
  readonly resolved: (pattern: string) => Resolved | undefined;
  /** Allowed ones, the default first. */
  readonly assignors: readonly string[];
  readonly membersMax: number;
  /** A new target could not be stored: what was assigned stays, and topics are not looked at. */
  readonly isFrozen: boolean;
}

const TWO_32 = 2 ** 32;
/** Leaves a safe integer of 52 bits. */
const HIGH_BITS = 20;

/** 0 for no topics; equal for equal topics, whatever their order. */
export function hashOf(topics: Iterable<SubscribedTopic>): number {
  const lines = [...topics].map(({ topicId, name, partitions }) =>
    `${topicId} ${name} ${partitions}`
  );
  if (lines.length === 0) return 0;
  const bytes = toUtf8(lines.toSorted().join("\n"));
  return (xxhash32(bytes) >>> (32 - HIGH_BITS)) * TWO_32 + (crc32c(bytes) >>> 0);
}

function subscribedTopics(group: ConsumerGroup, topics: TopicView): Map<string, SubscribedTopic> {
  const found = new Map<string, SubscribedTopic>();
  for (const member of oneOfEach(group)) {
    for (const name of namesOf(group, member)) {
      const topic = found.has(name) ? undefined : topics.find(name);
      if (topic !== undefined) found.set(name, topic);
    }
  }
  return found;
}

function sameTopics(a: Resolved | undefined, b: Resolved | undefined): boolean {
  if (a === undefined || b === undefined) return a === b;
  return a.topics.length === b.topics.length && a.topics.every((name, at) => b.topics[at] === name);
}

/** Of the expressions in use, each as it is known now; what means the same stays the same value. */
function regexesOf(group: ConsumerGroup, world: World): ReadonlyMap<string, Resolved> {
  const made = new Map<string, Resolved>();
  for (const { profile } of oneOfEach(group)) {
    const pattern = profile.topicRegex;
    if (pattern === null || pattern === "" || made.has(pattern)) continue;
    const known = group.regexes.get(pattern);
    const fresh = world.resolved(pattern) ?? known;
    const resolved = sameTopics(known, fresh) ? known : fresh;
    if (resolved !== undefined) made.set(pattern, resolved);
  }
  return made;
}

/** Looks at the topics again; the epoch rises if they changed, or if the caller knows of another reason. */
export function refreshed(group: ConsumerGroup, world: World, changed: boolean): ConsumerGroup {
  if (world.isFrozen) return changed ? { ...group, epoch: group.epoch + 1 } : group;
  const regexes = regexesOf(group, world);
  const moved = [...regexes].some(([pattern, topics]) => {
    const known = group.regexes.get(pattern);
    return known !== undefined && known !== topics;
  });
  const next = { ...group, regexes };
  const metadataHash = hashOf(subscribedTopics(next, world.topics).values());
  const isNew = changed || moved || metadataHash !== group.metadataHash;
  return isNew ? { ...next, metadataHash, epoch: group.epoch + 1 } : group;
}

/** What members want of the topics; those who say the same get the same set. */
function subscriptions(
  group: ConsumerGroup,
  topics: ReadonlyMap<string, SubscribedTopic>,
): (member: ConsumerMember) => ReadonlySet<Uuid> {
  const known = new Map<readonly string[], Map<string | null, ReadonlySet<Uuid>>>();
  return (member) => {
    const { topicNames, topicRegex } = member.profile;
    const byRegex = known.get(topicNames) ?? new Map<string | null, ReadonlySet<Uuid>>();
    known.set(topicNames, byRegex);
    const made = byRegex.get(topicRegex);
    if (made !== undefined) return made;
    const wanted = new Set<Uuid>();
    for (const name of namesOf(group, member)) {
      const topic = topics.get(name);
      if (topic !== undefined) wanted.add(topic.topicId);
    }
    byRegex.set(topicRegex, wanted);
    return wanted;
  };
}

/** The group with a target for its epoch. Members that take another's place take its part as well. */
export function withTarget(group: ConsumerGroup, world: World): ConsumerGroup {
  const topics = subscribedTopics(group, world.topics);
  const wantedBy = subscriptions(group, topics);
  const members = [...group.members.values()].map((member): AssignorMember => {
    const { memberId, profile: { instanceId } } = member;
    const current = group.target.get(memberId) ?? NOTHING;
    return { memberId, instanceId, topics: wantedBy(member), current };
  });
  const sizes = new Map(
    [...topics.values()].map(({ topicId, partitions }) => [topicId, partitions]),
  );
  const assign = ASSIGNORS.get(assignorOf(group, world.assignors))!;
  const made = assign({ members, topics: sizes });
  return { ...group, target: keepingSame(group.target, made), targetEpoch: group.epoch };
}

export function keepingSame(
  known: ReadonlyMap<string, Assignment>,
  made: ReadonlyMap<string, Assignment>,
): ReadonlyMap<string, Assignment> {
  return new Map([...made].map(([memberId, assignment]) => {
    const before = known.get(memberId);
    return [memberId, before !== undefined && isSame(before, assignment) ? before : assignment];
  }));
}
