/**
 * Every command against every check that it must pass, as one table: command × violated check → refusal. A new
 * command without rows fails the test. Sequences and effects are in decide.test.ts.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  by,
  close,
  open,
  range,
  register,
  streamObject,
  streamSet,
  TOPIC,
  trim,
  upload,
  World,
} from "../../tests/support/controller_world.ts";
import {
  nodeEpoch,
  nodeId,
  objectId,
  position,
  streamEpoch,
  type StreamId,
  streamId,
} from "../lib/brand.ts";
import { OBJECT_IDS_RESERVED_MAX, PRODUCER_IDS_MAX, TOPIC_PARTITIONS_MAX } from "../lib/limits.ts";
import type { Command, RefusalReason, Requester } from "./command.ts";

const NOBODY = "f".repeat(32);

/**
 * Node 1 holds an open stream with an object (0), a partition and unused ids; node 2 is alive and holds a
 * stream; node 3 is being recovered by node 2 and holds a stream, ids and a WAL; epoch 1 of node 1 is superseded.
 */
class Scene {
  readonly world = new World();
  readonly stale: Requester;
  readonly a: Requester;
  readonly b: Requester;
  readonly gone: Requester;
  readonly recovery;
  readonly own: StreamId;
  readonly foreign: StreamId;
  readonly dead: StreamId;
  readonly closed: StreamId;

  constructor() {
    const { world } = this;
    this.stale = world.node(1, 10);
    this.a = world.node(1, 11);
    this.b = world.node(2);
    this.gone = world.node(3);
    world.topic();
    this.own = world.stream(this.a, 0);
    this.foreign = world.stream(this.b, 0);
    this.dead = world.stream(this.gone, 0);
    this.closed = world.stream(this.a, 0);
    assert.equal(world.ids(this.a, 8), 0);
    assert.equal(world.ids(this.b, 8), 8);
    assert.equal(world.ids(this.gone, 8), 16);
    world.ok(upload(this.a, streamSet(0, range(this.own, 0, 10)), [], 4));
    world.ok(upload(this.b, null, [streamObject(8, range(this.foreign, 0, 10))]));
    world.ok(close(this.a, this.closed, 0, 0));
    const { nodeId: node, epoch } = this.gone;
    const begun = { type: "begin-recovery", by: this.b, nodeId: node, epoch } as const;
    this.recovery = world.ok(begun).recovery;
  }
}

type Row = readonly [
  command: Command["type"],
  check: string,
  wanted: RefusalReason,
  (s: Scene) => Command,
];

/** The checks of the requester stand before all others: its epoch, its registration, its life. */
const WITH_REQUESTER:
  readonly (readonly [Command["type"], (s: Scene, by: Requester) => Command])[] = [
    ["begin-recovery", ({ gone }, who) => ({ type: "begin-recovery", ...gone, by: who })],
    ["finish-recovery", (s, who) => finish(s, { by: who })],
    ["assign-leaders", (_, who) => ({ type: "assign-leaders", by: who })],
    ["move-partition", (s, who) => move(s, { by: who })],
    ["set-meta-stream", (s, who) => metaStream(s, { by: who })],
    ["create-stream", (_, who) => ({ type: "create-stream", by: who, epoch: streamEpoch(0) })],
    ["open-stream", ({ closed }, who) => open(who, closed, 1)],
    ["close-stream", ({ own }, who) => close(who, own, 0, 10)],
    ["trim-stream", ({ own }, who) => trim(who, own, 0, 5)],
    ["delete-stream", ({ closed }, who) => ({ type: "delete-stream", by: who, streamId: closed })],
    ["reserve-ids", (_, who) => ({ type: "reserve-ids", by: who, count: 1 })],
    ["commit-upload", ({ own }, who) => upload(who, streamSet(1, range(own, 10, 20)), [], 4)],
    ["commit-compaction", (s, who) => compact(s, { by: who })],
    ["sweep-epoch", ({ stale }, who) => ({ type: "sweep-epoch", ...stale, by: who })],
    ["purge", (_, who) => ({ type: "purge", by: who, objectIds: [objectId(1)] })],
    ["forget-wal", ({ stale }, who) => ({ type: "forget-wal", ...stale, by: who })],
    ["alloc-producer-ids", (_, who) => ({ type: "alloc-producer-ids", by: who, count: 1 })],
    ["raise-feature-level", (_, who) => ({ type: "raise-feature-level", by: who, level: 1 })],
  ];

function finish(
  { b, gone, recovery, dead }: Scene,
  change: Partial<Extract<Command, { type: "finish-recovery" }>>,
): Command {
  const { nodeId: node, epoch } = gone;
  return {
    type: "finish-recovery",
    by: b,
    nodeId: node,
    epoch,
    recovery,
    streamSetObject: null,
    streamObjects: [],
    ends: [{ streamId: dead, end: 0 }],
    sealedSlot: 0,
    ...change,
  };
}

function move(
  { a }: Scene,
  change: Partial<Extract<Command, { type: "move-partition" }>>,
): Command {
  return {
    type: "move-partition",
    by: a,
    topicId: TOPIC,
    partition: 0,
    to: nodeId(2),
    expectedLeaderEpoch: streamEpoch(0),
    ...change,
  };
}

function metaStream(
  { a, own, world }: Scene,
  change: Partial<Extract<Command, { type: "set-meta-stream" }>>,
): Command {
  const partition = world.state.partitions.get(`${TOPIC}/0`)!;
  const leader = world.state.nodes.get(partition.leader!)!;
  const base = { by: partition.leader === 1 ? a : leader, leaderEpoch: partition.leaderEpoch };
  return {
    type: "set-meta-stream",
    topicId: TOPIC,
    partition: 0,
    streamId: own,
    ...base,
    ...change,
  };
}

function compact(
  { a, own }: Scene,
  change: Partial<Extract<Command, { type: "commit-compaction" }>>,
): Command {
  return {
    type: "commit-compaction",
    by: a,
    streamSetObject: streamSet(1, range(own, 0, 10)),
    streamObjects: [],
    replaces: [{ objectId: objectId(0), ranges: [range(own, 0, 10)] }],
    ...change,
  };
}

function topic(change: Partial<Extract<Command, { type: "create-topic" }>>): Command {
  const base = { partitions: 1, replicationFactor: 1, configs: {}, internal: false };
  return { type: "create-topic", topicId: NOBODY, name: "u", ...base, ...change };
}

const UNKNOWN = streamId(77);
const NO_TAG = `${NOBODY}/0`;

const ROWS: readonly Row[] = [
  ["register-node", "goes on after another process took the node id", "fenced", () => ({
    ...(register(1, 10) as Extract<Command, { type: "register-node" }>),
    again: true,
  })],
  ["begin-recovery", "the requester's own epoch", "invalid", ({ a }) => ({
    type: "begin-recovery",
    ...a,
    by: a,
  })],
  ["begin-recovery", "no such WAL", "not-found", ({ a }) => ({
    type: "begin-recovery",
    by: a,
    nodeId: nodeId(3),
    epoch: nodeEpoch(99),
  })],
  ["finish-recovery", "no such WAL", "not-found", (s) => finish(s, { epoch: nodeEpoch(99) })],
  [
    "finish-recovery",
    "the WAL is not being recovered",
    "conflict",
    (s) => finish(s, { nodeId: s.stale.nodeId, epoch: s.stale.epoch }),
  ],
  [
    "finish-recovery",
    "the token R is another one",
    "fenced",
    (s) => finish(s, { recovery: position(1) }),
  ],
  ["finish-recovery", "another node's recovery", "fenced", (s) => finish(s, { by: s.a })],
  ["finish-recovery", "a held stream without an end", "invalid", (s) => finish(s, { ends: [] })],
  [
    "finish-recovery",
    "an end that no object has",
    "not-continuous",
    (s) => finish(s, { ends: [{ streamId: s.dead, end: 5 }] }),
  ],
  [
    "finish-recovery",
    "records do not go on at the end",
    "not-continuous",
    (s) => finish(s, { streamSetObject: streamSet(9, range(s.dead, 1, 2)) }),
  ],
  [
    "finish-recovery",
    "a stream that the dead node does not hold",
    "fenced",
    (s) => finish(s, { streamSetObject: streamSet(9, range(s.own, 10, 12)) }),
  ],
  [
    "finish-recovery",
    "ids of somebody else",
    "conflict",
    (s) => finish(s, { streamSetObject: streamSet(16, range(s.dead, 0, 2)) }),
  ],
  ["finish-recovery", "a slot below the trim", "invalid", (s) => finish(s, { sealedSlot: -1 })],
  ["move-partition", "no such partition", "not-found", (s) => move(s, { partition: 9 })],
  ["move-partition", "to a node that is gone", "invalid", (s) => move(s, { to: nodeId(3) })],
  ["move-partition", "to a node that never was", "invalid", (s) => move(s, { to: nodeId(9) })],
  [
    "move-partition",
    "the leader epoch went on",
    "conflict",
    (s) => move(s, { expectedLeaderEpoch: streamEpoch(4) }),
  ],
  ["create-topic", "the name is taken", "exists", () => topic({ name: "t" })],
  ["create-topic", "the id is taken", "exists", () => topic({ topicId: TOPIC })],
  ["create-topic", "no partitions", "invalid", () => topic({ partitions: 0 })],
  [
    "create-topic",
    "too many partitions",
    "invalid",
    () => topic({ partitions: TOPIC_PARTITIONS_MAX + 1 }),
  ],
  ["create-partitions", "no such topic", "not-found", () => ({
    type: "create-partitions",
    topicId: NOBODY,
    partitions: 2,
  })],
  ["create-partitions", "not more than there are", "invalid", () => ({
    type: "create-partitions",
    topicId: TOPIC,
    partitions: 1,
  })],
  ["delete-topic", "no such topic", "not-found", () => ({ type: "delete-topic", topicId: NOBODY })],
  ["alter-topic-configs", "no such topic", "not-found", () => ({
    type: "alter-topic-configs",
    topicId: NOBODY,
    changes: {},
  })],
  ["set-meta-stream", "no such partition", "not-found", (s) => metaStream(s, { partition: 9 })],
  [
    "set-meta-stream",
    "led with another epoch",
    "fenced",
    (s) => metaStream(s, { leaderEpoch: streamEpoch(9) }),
  ],
  ["set-meta-stream", "no such stream", "not-found", (s) => metaStream(s, { streamId: UNKNOWN })],
  ["create-stream", "no such partition", "not-found", ({ a }) => ({
    type: "create-stream",
    by: a,
    epoch: streamEpoch(0),
    tag: NO_TAG,
  })],
  ["open-stream", "no such stream", "not-found", ({ a }) => open(a, UNKNOWN, 1)],
  ["open-stream", "still open", "not-closed", ({ a, own }) => open(a, own, 1)],
  ["open-stream", "open, of another node", "not-closed", ({ a, foreign }) => open(a, foreign, 1)],
  ["open-stream", "equal epoch of another node", "fenced", ({ a, foreign }) => open(a, foreign, 0)],
  ["open-stream", "an older epoch", "fenced", ({ a, own, world }) => {
    world.ok(close(a, own, 0, 10));
    world.ok(open(a, own, 3));
    return open(a, own, 2);
  }],
  ["close-stream", "no such stream", "not-found", ({ a }) => close(a, UNKNOWN, 0, 0)],
  ["close-stream", "another node's", "fenced", ({ a, foreign }) => close(a, foreign, 0, 10)],
  [
    "close-stream",
    "an epoch that was never opened",
    "invalid",
    ({ a, own }) => close(a, own, 1, 10),
  ],
  [
    "close-stream",
    "records that are only in the WAL",
    "not-continuous",
    ({ a, own }) => close(a, own, 0, 12),
  ],
  ["trim-stream", "no such stream", "not-found", ({ a }) => trim(a, UNKNOWN, 0, 0)],
  ["trim-stream", "another node's", "fenced", ({ a, foreign }) => trim(a, foreign, 0, 1)],
  ["trim-stream", "closed", "not-open", ({ a, closed }) => trim(a, closed, 0, 1)],
  ["trim-stream", "back", "invalid", ({ a, own }) => trim(a, own, 0, -1)],
  ["delete-stream", "open", "not-closed", ({ a, own }) => ({
    type: "delete-stream",
    by: a,
    streamId: own,
  })],
  ["reserve-ids", "none", "invalid", ({ a }) => ({ type: "reserve-ids", by: a, count: 0 })],
  ["reserve-ids", "too many", "invalid", ({ a }) => ({
    type: "reserve-ids",
    by: a,
    count: OBJECT_IDS_RESERVED_MAX + 1,
  })],
  [
    "commit-upload",
    "an id that is not its own",
    "conflict",
    ({ a, own }) => upload(a, streamSet(9, range(own, 10, 20)), [], 4),
  ],
  [
    "commit-upload",
    "an id that was never reserved",
    "conflict",
    ({ a, own }) => upload(a, streamSet(99, range(own, 10, 20)), [], 4),
  ],
  [
    "commit-upload",
    "an id that has an object",
    "conflict",
    ({ a, own }) => upload(a, { ...streamSet(0, range(own, 10, 20)), size: 11 }, [], 4),
  ],
  ["commit-upload", "an id that was purged", "conflict", ({ a, own, world }) => {
    world.ok({ type: "purge", by: a, objectIds: [objectId(1)] });
    return upload(a, streamSet(1, range(own, 10, 20)), [], 4);
  }],
  [
    "commit-upload",
    "an id twice",
    "invalid",
    ({ a, own }) =>
      upload(a, streamSet(1, range(own, 10, 20)), [streamObject(1, range(own, 20, 30))], 4),
  ],
  [
    "commit-upload",
    "a gap",
    "not-continuous",
    ({ a, own }) => upload(a, streamSet(1, range(own, 11, 20)), [], 4),
  ],
  [
    "commit-upload",
    "an overlap",
    "not-continuous",
    ({ a, own }) => upload(a, streamSet(1, range(own, 9, 20)), [], 4),
  ],
  [
    "commit-upload",
    "an empty range",
    "invalid",
    ({ a, own }) => upload(a, streamSet(1, range(own, 10, 10)), [], 4),
  ],
  [
    "commit-upload",
    "a stream of another node",
    "fenced",
    ({ a, foreign }) => upload(a, streamSet(1, range(foreign, 10, 20)), [], 4),
  ],
  [
    "commit-upload",
    "a closed stream",
    "not-open",
    ({ a, closed }) => upload(a, streamSet(1, range(closed, 0, 1)), [], 4),
  ],
  [
    "commit-upload",
    "a stream that never was",
    "not-found",
    ({ a }) => upload(a, streamSet(1, range(UNKNOWN, 0, 1)), [], 4),
  ],
  [
    "commit-upload",
    "the WAL trim goes back",
    "invalid",
    ({ a, own }) => upload(a, streamSet(1, range(own, 10, 20)), [], 3),
  ],
  ["commit-compaction", "no inputs", "invalid", (s) => compact(s, { replaces: [] })],
  ["commit-compaction", "an input twice", "invalid", (s) => {
    const one = { objectId: objectId(0), ranges: [range(s.own, 0, 10)] };
    return compact(s, { replaces: [one, one] });
  }],
  [
    "commit-compaction",
    "an input that is missing",
    "conflict",
    (s) => compact(s, { replaces: [{ objectId: objectId(5), ranges: [range(s.own, 0, 10)] }] }),
  ],
  [
    "commit-compaction",
    "ranges that are not the input's",
    "conflict",
    (s) => compact(s, { replaces: [{ objectId: objectId(0), ranges: [range(s.own, 0, 9)] }] }),
  ],
  ["commit-compaction", "a stream set object of a live node", "conflict", (s) => {
    s.world.ok(upload(s.b, streamSet(9, range(s.foreign, 10, 20))));
    const ranges = [range(s.foreign, 10, 20)];
    const streamSetObject = streamSet(1, ...ranges);
    return compact(s, { streamSetObject, replaces: [{ objectId: objectId(9), ranges }] });
  }],
  [
    "commit-compaction",
    "live records left out",
    "conflict",
    (s) => compact(s, { streamSetObject: streamSet(1, range(s.own, 0, 9)) }),
  ],
  [
    "commit-compaction",
    "records that no input has",
    "conflict",
    (s) => compact(s, { streamSetObject: streamSet(1, range(s.own, 0, 11)) }),
  ],
  [
    "commit-compaction",
    "an id that is not its own",
    "conflict",
    (s) => compact(s, { streamSetObject: streamSet(9, range(s.own, 0, 10)) }),
  ],
  ["commit-compaction", "links of an object that is no composite", "invalid", (s) =>
    compact(s, {
      streamSetObject: null,
      streamObjects: [streamObject(1, range(s.own, 0, 10))],
      composites: [{ objectId: objectId(1), links: [objectId(0)] }],
    })],
  [
    "sweep-epoch",
    "the current epoch",
    "invalid",
    ({ a }) => ({ type: "sweep-epoch", ...a, by: a }),
  ],
  ["sweep-epoch", "not recovered yet", "conflict", ({ a, stale }) => ({
    type: "sweep-epoch",
    ...stale,
    by: a,
  })],
  ["sweep-epoch", "no such node", "not-found", ({ a }) => ({
    type: "sweep-epoch",
    by: a,
    nodeId: nodeId(9),
    epoch: nodeEpoch(1),
  })],
  [
    "purge",
    "committed",
    "conflict",
    ({ a }) => ({ type: "purge", by: a, objectIds: [objectId(0)] }),
  ],
  ["purge", "reserved by a node that lives", "conflict", ({ a }) => ({
    type: "purge",
    by: a,
    objectIds: [objectId(9)],
  })],
  ["purge", "never reserved", "not-found", ({ a }) => ({
    type: "purge",
    by: a,
    objectIds: [objectId(99)],
  })],
  ["purge", "a block that is not swept", "conflict", ({ a, gone }) => ({
    type: "purge",
    by: a,
    objectIds: [],
    blocks: [{ ...gone, from: objectId(16) }],
  })],
  ["forget-wal", "not sealed", "conflict", ({ a, stale }) => ({
    type: "forget-wal",
    ...stale,
    by: a,
  })],
  ["put-kv", "another version", "conflict", () => ({
    type: "put-kv",
    key: "k",
    value: "v",
    expectedVersion: 3,
  })],
  ["put-kv", "too long", "invalid", () => ({
    type: "put-kv",
    key: "k".repeat(1_000_000),
    value: "v",
    expectedVersion: 0,
  })],
  ["delete-kv", "no such key", "not-found", () => ({
    type: "delete-kv",
    key: "k",
    expectedVersion: 1,
  })],
  ["delete-kv", "another version", "conflict", ({ world }) => {
    world.ok({ type: "put-kv", key: "k", value: "v", expectedVersion: 0 });
    return { type: "delete-kv", key: "k", expectedVersion: 9 };
  }],
  ["alloc-producer-ids", "none", "invalid", ({ a }) => ({
    type: "alloc-producer-ids",
    by: a,
    count: 0,
  })],
  ["alloc-producer-ids", "too many", "invalid", ({ a }) => ({
    type: "alloc-producer-ids",
    by: a,
    count: PRODUCER_IDS_MAX + 1,
  })],
  ["raise-feature-level", "falls", "invalid", ({ a }) => ({
    type: "raise-feature-level",
    by: a,
    level: 0,
  })],
];

function refusalOf({ world }: Scene, command: Command): RefusalReason | null {
  const before = world.state.at;
  const verdict = world.run(command);
  assert.equal(world.state.at === before || verdict.ok, true, "a refusal writes nothing");
  return verdict.ok ? null : verdict.reason;
}

describe("who asks", () => {
  for (const [type, command] of WITH_REQUESTER) {
    test(`${type} of a stale epoch, of a node that is gone, of one that never was: fenced`, () => {
      const scene = new Scene();
      const future = by(1, scene.a.epoch + 1);
      for (const who of [scene.stale, future, scene.gone, by(9, 1)]) {
        const asked = command(scene, who);
        assert.equal(asked.type, type);
        assert.equal(refusalOf(scene, asked), "fenced", JSON.stringify(who));
      }
    });
  }
});

describe("what is asked", () => {
  for (const [type, check, wanted, command] of ROWS) {
    test(`${type}, ${check}: ${wanted}`, () => {
      const scene = new Scene();
      const asked = command(scene);
      assert.equal(asked.type, type);
      assert.equal(refusalOf(scene, asked), wanted);
    });
  }
});

test("the commands of both tables are all right when no check is violated", () => {
  for (const [type, command] of WITH_REQUESTER) {
    // These need a state of their own; decide.test.ts has them.
    if (type === "sweep-epoch" || type === "forget-wal") continue;
    const scene = new Scene();
    const recovers = type === "finish-recovery" || type === "begin-recovery";
    const who = recovers ? scene.b : scene.a;
    if (type === "set-meta-stream") assert.equal(refusalOf(scene, metaStream(scene, {})), null);
    else assert.equal(refusalOf(scene, command(scene, who)), null, type);
  }
});

test("no command is without a row", () => {
  // The compiler refuses a missing or a surplus name.
  const all: Readonly<Record<Command["type"], true>> = {
    "register-node": true,
    "begin-recovery": true,
    "finish-recovery": true,
    "assign-leaders": true,
    "move-partition": true,
    "create-topic": true,
    "create-partitions": true,
    "delete-topic": true,
    "alter-topic-configs": true,
    "set-meta-stream": true,
    "create-stream": true,
    "open-stream": true,
    "close-stream": true,
    "trim-stream": true,
    "delete-stream": true,
    "reserve-ids": true,
    "commit-upload": true,
    "commit-compaction": true,
    "sweep-epoch": true,
    "purge": true,
    "forget-wal": true,
    "put-kv": true,
    "delete-kv": true,
    "alloc-producer-ids": true,
    "raise-feature-level": true,
  };
  const seen = new Set([...ROWS, ...WITH_REQUESTER].map(([type]) => type));
  assert.deepEqual([...seen].toSorted(), Object.keys(all).toSorted());
});
