import assert from "node:assert/strict";
import { test } from "node:test";
import { FakeTopics, topicIdOf } from "../../../../tests/support/consumer_topics.ts";
import { toUtf8 } from "../../../lib/bytes.ts";
import {
  consumerProtocolAssignment,
  consumerProtocolSubscription,
} from "../../../protocol/message/consumer_protocol.ts";
import { decodeGrowing, encodeVersioned } from "../../../protocol/versioned.ts";
import { createGroup, type Group, NO_BYTES } from "../group.ts";
import { type Assignment, assignmentOf, NOTHING } from "./assignment.ts";
import { toClassicGroup, toConsumerGroup } from "./convert.ts";

const topics = new FakeTopics({ t: 4 });

function named(partitions: readonly number[]) {
  return partitions.length === 0 ? [] : [{ topic: "t", partitions }];
}

function parts(...partitions: number[]): Assignment {
  return partitions.length === 0
    ? NOTHING
    : assignmentOf([{ topicId: topicIdOf("t"), partitions }]);
}

interface Had {
  /** What it was given last. */
  readonly assigned: readonly number[];
  /** What it held when it joined last. */
  readonly owned?: readonly number[];
}

function classicGroup(members: Readonly<Record<string, Had>>): Group {
  const group = createGroup("g", 0);
  group.generation = 7;
  group.protocolType = "consumer";
  group.protocolName = "cooperative-sticky";
  group.state = "Stable";
  for (const [memberId, { assigned, owned = [] }] of Object.entries(members)) {
    const metadata = encodeVersioned(consumerProtocolSubscription, 1, {
      topics: ["t"],
      ownedPartitions: named(owned),
    });
    group.members.set(memberId, {
      memberId,
      instanceId: null,
      clientId: "c",
      clientHost: "127.0.0.1",
      sessionTimeoutMs: 10_000,
      rebalanceTimeoutMs: 60_000,
      protocols: [{ name: "cooperative-sticky", metadata }],
      assignment: assigned.length === 0
        ? NO_BYTES
        : encodeVersioned(consumerProtocolAssignment, 1, {
          assignedPartitions: named(assigned),
        }),
      joining: null,
      syncing: null,
      deadlineMs: 0,
      isNew: false,
    });
  }
  return group;
}

function placesOf(group: Group) {
  const made = toConsumerGroup(group, topics);
  return Object.fromEntries(
    [...made?.members ?? []].map(([memberId, { place }]) => [memberId, place]),
  );
}

test("an upgrade keeps what members have, in the generation that they are in", () => {
  const { a, b } = placesOf(classicGroup({ a: { assigned: [0, 1] }, b: { assigned: [2, 3] } }));
  const stable = { epoch: 7, previousEpoch: 7, state: "stable", revoking: NOTHING };
  assert.deepEqual(a, { ...stable, assigned: parts(0, 1) });
  assert.deepEqual(b, { ...stable, assigned: parts(2, 3) });
});

test("an upgrade counts what a member held when it joined: it may not have heard of its new assignment", () => {
  const { a } = placesOf(classicGroup({ a: { assigned: [0], owned: [0, 1] } }));
  assert.deepEqual([a!.state, a!.assigned], ["stable", parts(0, 1)]);
});

test("an upgrade gives to nobody what two members may have, until both have let go", () => {
  const { a, b } = placesOf(
    classicGroup({ a: { assigned: [0], owned: [0, 1] }, b: { assigned: [1, 2] } }),
  );
  assert.deepEqual([a!.state, a!.assigned, a!.revoking], ["unrevoked", parts(0), parts(1)]);
  assert.deepEqual([b!.state, b!.assigned, b!.revoking], ["unrevoked", parts(2), parts(1)]);
});

test("what is no group of consumers, or cannot be read as one, is not upgraded", () => {
  const connect = classicGroup({ a: { assigned: [0] } });
  connect.protocolType = "connect";
  assert.equal(toConsumerGroup(connect, topics), null);
  const strange = classicGroup({ a: { assigned: [0] } });
  strange.members.get("a")!.assignment = toUtf8("x");
  assert.equal(toConsumerGroup(strange, topics), null);
});

test("a downgrade writes what members may own, not what they were to get", () => {
  const group = toConsumerGroup(classicGroup({ a: { assigned: [0, 1, 2] } }), topics)!;
  const a = group.members.get("a")!;
  const place = {
    ...a.place,
    state: "unrevoked" as const,
    assigned: parts(0),
    revoking: parts(1, 2),
  };
  const shrunk = {
    ...group,
    epoch: 9,
    members: new Map([["a", { ...a, place }]]),
    target: new Map([["a", parts(0, 3)]]),
  };
  const made = toClassicGroup(shrunk, topics, 0, 500);
  const member = made.members.get("a")!;
  const { assignedPartitions } = decodeGrowing(consumerProtocolAssignment, member.assignment);
  assert.deepEqual(assignedPartitions, [{ topic: "t", partitions: [0, 1, 2] }]);
  assert.deepEqual(
    [made.generation, made.protocolName, made.leader, member.clientHost, member.deadlineMs],
    [9, "cooperative-sticky", "a", "127.0.0.1", 10_500],
  );
});
