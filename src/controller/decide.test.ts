/** Every command with every refusal, as tables over a small world; invariants hold after each entry. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  by,
  close,
  incarnationOf,
  open,
  OTHER_TOPIC,
  outcome,
  range,
  register,
  streamObject,
  streamSet,
  TOPIC,
  trim,
  upload,
  World,
} from "../../tests/support/controller_world.ts";
import { nodeId, objectId, position, streamEpoch, streamId } from "../lib/brand.ts";
import { LOG_CACHE_BLOCK_STREAMS_MAX, METADATA_ENTRY_BYTES_MAX } from "../lib/limits.ts";
import type { Command, Requester } from "./command.ts";
import { decide } from "./decide.ts";
import { partitionKey, walKey } from "./image.ts";
import { encodeRecord } from "./record.ts";

type Row = readonly [name: string, command: Command, wanted: ReturnType<typeof outcome>];

/** Runs the rows one after the other on the same world. */
function table(world: World, rows: readonly Row[]): void {
  for (const [name, command, wanted] of rows) assert.equal(outcome(world, command), wanted, name);
}

describe("nodes", () => {
  test("an epoch is the position of its registration; the newer incarnation wins", () => {
    const world = new World();
    const old = world.node(1, 10);
    assert.equal(old.epoch, 1);
    const now = world.node(1, 11);
    assert.equal(now.epoch, 2);
    assert.equal(world.state.nodes.get(nodeId(1))?.incarnation, incarnationOf(11));
    table(world, [
      ["old incarnation", { type: "reserve-ids", by: old, count: 1 }, "fenced"],
      ["unknown node", { type: "reserve-ids", by: by(9, 1), count: 1 }, "fenced"],
      ["epoch from the future", { type: "reserve-ids", by: by(1, 7), count: 1 }, "fenced"],
      ["current", { type: "reserve-ids", by: now, count: 1 }, "ok"],
    ]);
  });

  test("every command of a superseded incarnation is refused", () => {
    const world = new World();
    const old = world.node(1, 10);
    const stream = world.stream(old, 0);
    world.topic();
    world.node(1, 11);
    const none = { streamSetObject: null, streamObjects: [] };
    const wal = { nodeId: nodeId(1), epoch: old.epoch };
    const commands: Command[] = [
      { type: "begin-recovery", by: old, ...wal },
      {
        type: "finish-recovery",
        by: old,
        ...wal,
        recovery: position(1),
        ...none,
        ends: [],
        sealedSlot: 0,
      },
      { type: "assign-leaders", by: old },
      {
        type: "set-meta-stream",
        by: old,
        topicId: TOPIC,
        partition: 0,
        leaderEpoch: streamEpoch(0),
        streamId: stream,
      },
      { type: "create-stream", by: old, epoch: streamEpoch(0) },
      open(old, stream, 1),
      close(old, stream, 0, 0),
      trim(old, stream, 0, 1),
      { type: "delete-stream", by: old, streamId: stream },
      { type: "reserve-ids", by: old, count: 1 },
      upload(old, null, [], 1),
      { type: "commit-compaction", by: old, ...none, replaces: [] },
      { type: "sweep-epoch", by: old, ...wal },
      { type: "purge", by: old, objectIds: [] },
      { type: "forget-wal", by: old, ...wal },
      { type: "alloc-producer-ids", by: old, count: 1 },
    ];
    for (const command of commands) assert.equal(outcome(world, command), "fenced", command.type);
  });

  test("recovery of the own earlier incarnation", () => {
    const world = new World();
    const old = world.node(1, 10);
    const a = world.stream(old, 0);
    const b = world.stream(old, 0);
    const gone = world.stream(old, 0);
    world.ids(old, 10);
    world.ok(upload(old, streamSet(0, range(a, 0, 5)), [], 3));
    world.ok(close(old, gone, 0, 0));
    const now = world.node(1, 11);
    const wal = { nodeId: nodeId(1), epoch: old.epoch };
    const unknown = { nodeId: nodeId(2), epoch: old.epoch };
    table(world, [
      ["open by the new one", open(now, a, 1), "not-closed"],
      ["re-open with the equal epoch", open(now, a, 0), "not-closed"],
      ["own epoch", { type: "begin-recovery", by: now, ...now }, "invalid"],
      ["unknown WAL", { type: "begin-recovery", by: now, ...unknown }, "not-found"],
    ]);
    const begun = world.ok({
      type: "begin-recovery",
      by: now,
      ...wal,
    });
    assert.deepEqual(begun, { recovery: world.state.at, walTrim: 3, streams: [a, b] });
    assert.equal(world.state.nodes.get(nodeId(1))?.state, "live", "the current epoch goes on");
    const first = world.ids(now, 10);
    const finish = (change: Partial<Extract<Command, { type: "finish-recovery" }>>): Command => ({
      type: "finish-recovery",
      by: now,
      ...wal,
      recovery: position(begun.recovery),
      streamSetObject: streamSet(first, range(a, 5, 9), range(b, 0, 2)),
      streamObjects: [],
      ends: [{ streamId: a, end: 9 }, { streamId: b, end: 2 }],
      sealedSlot: 7,
      ...change,
    });
    const other = position(begun.recovery - 1);
    const foreign = streamSet(1, range(a, 5, 9), range(b, 0, 2));
    table(world, [
      ["other recovery", finish({ recovery: other }), "fenced"],
      ["stream missing in ends", finish({ ends: [{ streamId: a, end: 9 }] }), "invalid"],
      [
        "end above the objects",
        finish({ ends: [{ streamId: a, end: 10 }, { streamId: b, end: 2 }] }),
        "not-continuous",
      ],
      ["gap", finish({ streamSetObject: streamSet(first, range(a, 6, 9)) }), "not-continuous"],
      ["ids of the dead epoch", finish({ streamSetObject: foreign }), "conflict"],
      ["slot below the trim", finish({ sealedSlot: 2 }), "invalid"],
      ["all right", finish({}), "ok"],
      ["again", finish({}), "no records"],
      ["again with another slot", finish({ sealedSlot: 8 }), "conflict"],
      ["begin again", { type: "begin-recovery", by: now, ...wal }, "conflict"],
      ["new owner", open(now, a, 1), "ok"],
    ]);
    const row = world.state.wals.get(walKey(nodeId(1), old.epoch));
    assert.deepEqual(row?.state, { kind: "sealed", slot: 7 });
    assert.equal(row?.walTrim, 7);
    assert.deepEqual(world.state.streamSets.get(nodeId(1)), [objectId(0), first]);
    assert.equal(world.state.streams.get(b)?.open, false);
  });

  test("recovery of another node takes its life and its partitions; a later recoverer wins", () => {
    const world = new World();
    const dead = world.node(1);
    world.topic(1);
    const helper = world.node(2);
    const other = world.node(3);
    const wal = { nodeId: nodeId(1), epoch: dead.epoch };
    const first = world.ok({ type: "begin-recovery", by: helper, ...wal });
    assert.equal(world.state.nodes.get(nodeId(1))?.state, "gone");
    assert.equal(world.state.partitions.get(partitionKey(TOPIC, 0))?.leader, null);
    const second = world.ok({ type: "begin-recovery", by: other, ...wal });
    assert.ok(second.recovery > first.recovery);
    const finish = (who: Requester, recovery: number): Command => ({
      type: "finish-recovery",
      by: who,
      ...wal,
      recovery: position(recovery),
      streamSetObject: null,
      streamObjects: [],
      ends: [],
      sealedSlot: 0,
    });
    table(world, [
      ["the dead node", upload(dead, null, [], 1), "fenced"],
      ["superseded recoverer", finish(helper, first.recovery), "fenced"],
      ["token of the other", finish(helper, second.recovery), "fenced"],
      ["current recoverer", finish(other, second.recovery), "ok"],
      ["leaders", { type: "assign-leaders", by: helper }, "ok"],
      ["nothing left to assign", { type: "assign-leaders", by: helper }, "no records"],
      ["forget", { type: "forget-wal", by: helper, ...wal }, "ok"],
      ["forget again", { type: "forget-wal", by: helper, ...wal }, "no records"],
      ["forget an open one", { type: "forget-wal", by: helper, ...other }, "conflict"],
    ]);
    const row = world.state.partitions.get(partitionKey(TOPIC, 0));
    assert.equal(row?.leader, 2);
    assert.equal(row?.leaderEpoch, 1);
  });

  test("registering anew leaves the partitions leaderless until they are taken with a new epoch", () => {
    const world = new World();
    world.node(1, 10);
    world.topic(2);
    const now = world.node(1, 11);
    assert.equal(world.state.partitions.get(partitionKey(TOPIC, 0))?.leader, null);
    world.ok({ type: "assign-leaders", by: now });
    for (const partition of [0, 1]) {
      const row = world.state.partitions.get(partitionKey(TOPIC, partition));
      assert.deepEqual([row?.leader, row?.leaderEpoch], [1, 1]);
    }
  });
});

describe("topics", () => {
  test("create, grow, configure, delete", () => {
    const world = new World();
    world.node(1);
    const create = (change: Partial<Extract<Command, { type: "create-topic" }>>): Command => ({
      type: "create-topic",
      topicId: TOPIC,
      name: "t",
      partitions: 2,
      replicationFactor: 3,
      configs: { "retention.ms": "5" },
      internal: false,
      ...change,
    });
    const alter = (
      changes: Record<string, string | null>,
      expected?: Record<string, string>,
    ): Command => ({
      type: "alter-topic-configs",
      topicId: TOPIC,
      changes,
      ...(expected === undefined ? {} : { expected }),
    });
    const grow = (partitions: number): Command => ({
      type: "create-partitions",
      topicId: TOPIC,
      partitions,
    });
    table(world, [
      ["no partitions", create({ partitions: 0 }), "invalid"],
      ["too many", create({ partitions: 1e9 }), "invalid"],
      ["unknown: grow", grow(3), "not-found"],
      ["unknown: delete", { type: "delete-topic", topicId: TOPIC }, "not-found"],
      ["unknown: alter", alter({}), "not-found"],
      ["create", create({}), "ok"],
      ["same name", create({ topicId: OTHER_TOPIC }), "exists"],
      ["same id", create({ name: "u" }), "exists"],
      ["shrink", grow(1), "invalid"],
      ["equal", grow(2), "invalid"],
      ["grow", grow(3), "ok"],
      ["same value", alter({ "retention.ms": "5", "absent": null }), "no records"],
      ["others there", alter({ "a": "1" }, { "retention.ms": "6" }), "conflict"],
      ["more there", alter({ "a": "1" }, {}), "conflict"],
      ["fewer there", alter({ "a": "1" }, { "retention.ms": "5", "b": "1" }), "conflict"],
      ["as expected", alter({ "b": "1" }, { "retention.ms": "5" }), "ok"],
      ["change", alter({ "retention.ms": null, "a": "1", "b": null }), "ok"],
    ]);
    assert.deepEqual(world.state.topics.get(TOPIC)?.configs, { a: "1" });
    assert.equal(world.state.partitions.get(partitionKey(TOPIC, 2))?.leader, 1);
    table(world, [
      ["delete", { type: "delete-topic", topicId: TOPIC }, "ok"],
      ["name is free", create({ topicId: OTHER_TOPIC }), "ok"],
    ]);
  });

  test("deleting a topic deletes its streams and destroys their objects, and nothing else", () => {
    const world = new World();
    const node = world.node(1);
    world.topic(1);
    const tagged = world.stream(node, 0, partitionKey(TOPIC, 0));
    const meta = world.stream(node, 0);
    const other = world.stream(node, 0);
    world.ok({
      type: "set-meta-stream",
      by: node,
      topicId: TOPIC,
      partition: 0,
      leaderEpoch: streamEpoch(0),
      streamId: meta,
    });
    world.ids(node, 20);
    world.ok(upload(node, null, [
      streamObject(0, range(tagged, 0, 5)),
      streamObject(1, range(meta, 0, 5)),
      streamObject(2, range(other, 0, 5)),
    ]));
    world.ok({ type: "delete-topic", topicId: TOPIC });
    assert.deepEqual([...world.state.streams.keys()], [other]);
    const states = [0, 1, 2].map((id) => world.state.objects.get(objectId(id))?.state);
    assert.deepEqual(states, ["destroyed", "destroyed", "committed"]);
    table(world, [
      ["late stream", {
        type: "create-stream",
        by: node,
        epoch: streamEpoch(0),
        tag: partitionKey(TOPIC, 0),
      }, "not-found"],
      // The uploader did not know yet: its other streams go on, dead records are dropped.
      [
        "late upload",
        upload(node, streamSet(3, range(tagged, 5, 9), range(other, 5, 9)), [
          streamObject(4, range(meta, 5, 9)),
        ]),
        "ok",
      ],
      ["stream that never was", upload(node, streamSet(5, range(99, 0, 1))), "not-found"],
    ]);
    assert.equal(world.state.streams.get(other)?.end, 9);
    assert.equal(world.state.objects.get(objectId(4))?.state, "destroyed");
  });

  test("meta stream", () => {
    const world = new World();
    const node = world.node(1);
    const other = world.node(2);
    world.topic(1);
    const leader = world.state.partitions.get(partitionKey(TOPIC, 0))!.leader;
    const [boss, follower] = leader === node.nodeId ? [node, other] : [other, node];
    const a = world.stream(boss, 0);
    const b = world.stream(boss, 0);
    const set = (change: Partial<Extract<Command, { type: "set-meta-stream" }>>): Command => ({
      type: "set-meta-stream",
      by: boss,
      topicId: TOPIC,
      partition: 0,
      leaderEpoch: streamEpoch(0),
      streamId: a,
      ...change,
    });
    table(world, [
      ["unknown partition", set({ partition: 1 }), "not-found"],
      ["other leader epoch", set({ leaderEpoch: streamEpoch(1) }), "fenced"],
      ["not the leader", set({ by: follower }), "fenced"],
      ["unknown stream", set({ streamId: streamId(77) }), "not-found"],
      ["set", set({}), "ok"],
      ["again", set({}), "no records"],
      ["another", set({ streamId: b }), "conflict"],
    ]);
  });
});

describe("streams", () => {
  test("create, open and close rules", () => {
    const world = new World();
    const a = world.node(1);
    const b = world.node(2);
    const s0 = world.stream(a, 0);
    assert.equal(s0, 0);
    assert.equal(world.stream(a, 0), 1);
    table(world, [
      ["unknown", open(a, streamId(9), 1), "not-found"],
      ["equal epoch by another node", open(b, s0, 0), "fenced"],
      ["equal epoch by the owner", open(a, s0, 0), "no records"],
      ["higher epoch while open", open(a, s0, 1), "not-closed"],
      ["higher epoch while open, other", open(b, s0, 1), "not-closed"],
      ["close by another", close(b, s0, 0, 0), "fenced"],
      ["close with a newer epoch", close(a, s0, 1, 0), "invalid"],
      ["close past the end", close(a, s0, 0, 5), "not-continuous"],
      ["close", close(a, s0, 0, 0), "ok"],
      ["close again", close(a, s0, 0, 0), "no records"],
      ["re-open", open(a, s0, 0), "ok"],
      ["close", close(a, s0, 0, 0), "ok"],
      ["open by the next owner", open(b, s0, 1), "ok"],
      ["old owner closes", close(a, s0, 0, 0), "fenced"],
      ["old owner opens", open(a, s0, 0), "fenced"],
      ["unknown", close(a, streamId(9), 0, 0), "not-found"],
    ]);
  });

  test("ranges: an empty last one is replaced, neighbours of one node merge", () => {
    const world = new World();
    const a = world.node(1);
    const b = world.node(2);
    world.ids(a, 10);
    world.ids(b, 10);
    const s = world.stream(a, 0);
    const ranges = () =>
      world.state.streams.get(s)!.ranges.map((r) => [r.nodeId, r.epoch, r.start, r.end]);
    world.ok(upload(a, streamSet(0, range(s, 0, 100))));
    world.ok(close(a, s, 0, 100));
    world.ok(open(b, s, 1));
    assert.deepEqual(ranges(), [[1, 0, 0, 100], [2, 1, 100, null]]);
    world.ok(close(b, s, 1, 100));
    assert.deepEqual(world.ok(open(a, s, 2)), { start: 0, end: 100 });
    assert.deepEqual(ranges(), [[1, 2, 0, null]]);
    world.ok(close(a, s, 2, 100));
    world.ok(open(b, s, 3));
    world.ok(upload(b, streamSet(10, range(s, 100, 300))));
    assert.deepEqual(ranges(), [[1, 2, 0, 100], [2, 3, 100, null]]);
  });

  test("trim: whole ranges and stream objects go, also past the end", () => {
    const world = new World();
    const a = world.node(1);
    const b = world.node(2);
    world.ids(a, 10);
    world.ids(b, 10);
    const s = world.stream(a, 0);
    world.ok(upload(a, streamSet(0, range(s, 0, 10))));
    world.ok(upload(a, streamSet(1, range(s, 10, 20)), [streamObject(2, range(s, 20, 40))]));
    world.ok(close(a, s, 0, 40));
    world.ok(open(b, s, 1));
    world.ok(upload(b, streamSet(10, range(s, 40, 70))));
    table(world, [
      ["unknown", trim(b, streamId(9), 1, 1), "not-found"],
      ["old owner", trim(a, s, 0, 1), "fenced"],
      ["not a number", trim(b, s, 1, Number.NaN), "invalid"],
      ["inside the object", trim(b, s, 1, 39), "ok"],
    ]);
    assert.equal(world.state.objects.get(objectId(2))?.state, "committed");
    table(world, [
      ["past the object", trim(b, s, 1, 60), "ok"],
      ["equal", trim(b, s, 1, 60), "no records"],
      ["back", trim(b, s, 1, 59), "invalid"],
    ]);
    const row = () => world.state.streams.get(s)!;
    assert.deepEqual(row().ranges.map((r) => [r.start, r.end]), [[60, null]]);
    assert.equal(world.state.objects.get(objectId(2))?.state, "destroyed");
    table(world, [["past the end", trim(b, s, 1, 100), "ok"]]);
    assert.deepEqual([row().start, row().end, row().ranges[0]?.start], [100, 70, 70]);
    table(world, [
      ["the records that follow", upload(b, streamSet(11, range(s, 70, 100))), "ok"],
      ["close", close(b, s, 1, 100), "ok"],
      ["trim when closed", trim(b, s, 1, 101), "not-open"],
    ]);
    assert.equal(row().end, 100);
  });

  test("records between the end and a later start may be left out, and only they", () => {
    const world = new World();
    const a = world.node(1);
    world.ids(a, 10);
    const s = world.stream(a, 0);
    world.ok(trim(a, s, 0, 100));
    table(world, [
      ["above the start", upload(a, streamSet(0, range(s, 101, 110))), "not-continuous"],
      ["below the start", upload(a, streamSet(0, range(s, 90, 110))), "ok"],
      ["overlap", upload(a, streamSet(1, range(s, 100, 120))), "not-continuous"],
    ]);
    world.ok(trim(a, s, 0, 200));
    table(world, [["close in the gap", close(a, s, 0, 150), "ok"]]);
    assert.deepEqual(world.ok(open(a, s, 1)), { start: 200, end: 200 });
  });

  test("delete", () => {
    const world = new World();
    const a = world.node(1);
    world.ids(a, 10);
    const s = world.stream(a, 0);
    world.ok(upload(a, null, [streamObject(0, range(s, 0, 10))]));
    const remove = { type: "delete-stream", by: a, streamId: s } as const;
    table(world, [
      ["open", remove, "not-closed"],
      ["close", close(a, s, 0, 10), "ok"],
      ["closed", remove, "ok"],
      ["again", remove, "no records"],
    ]);
    assert.equal(world.state.objects.get(objectId(0))?.state, "destroyed");
  });

  test("a tagged stream belongs to the leader of its partition", () => {
    const world = new World();
    const a = world.node(1);
    world.topic(1);
    const tag = partitionKey(TOPIC, 0);
    const s = world.stream(a, 0, tag);
    const b = world.node(2);
    world.ok(close(a, s, 0, 0));
    table(world, [
      ["not the leader", open(b, s, 1), "fenced"],
      [
        "not the leader",
        { type: "create-stream", by: b, epoch: streamEpoch(1), tag },
        "fenced",
      ],
      ["the leader", open(a, s, 1), "ok"],
    ]);
  });
});

describe("uploads", () => {
  test("ids, continuity, WAL trim and repetition", () => {
    const world = new World();
    const a = world.node(1);
    const b = world.node(2);
    assert.equal(world.ids(a, 3), 0);
    assert.equal(world.ids(b, 5), 3);
    const s = world.stream(a, 0);
    const foreign = world.stream(b, 0);
    const first = upload(a, streamSet(0, range(s, 0, 100)), [], 5);
    table(world, [
      ["none", { type: "reserve-ids", by: a, count: 0 }, "invalid"],
      ["too many", { type: "reserve-ids", by: a, count: 1e9 }, "invalid"],
      ["id of another node", upload(a, streamSet(3, range(s, 0, 1))), "conflict"],
      ["id of nobody", upload(a, streamSet(8, range(s, 0, 1))), "conflict"],
      ["stream of another node", upload(a, streamSet(0, range(foreign, 0, 1))), "fenced"],
      ["empty range", upload(a, streamSet(0, range(s, 0, 0))), "invalid"],
      ["reversed range", upload(a, streamSet(0, range(s, 5, 1))), "invalid"],
      [
        "id twice",
        upload(a, streamSet(0, range(s, 0, 1)), [streamObject(0, range(s, 1, 2))]),
        "invalid",
      ],
      ["first", first, "ok"],
      ["first again", first, "no records"],
      ["id used", upload(a, { ...streamSet(0, range(s, 100, 101)), size: 11 }, [], 5), "conflict"],
      ["gap", upload(a, streamSet(1, range(s, 101, 200)), [], 5), "not-continuous"],
      ["overlap", upload(a, streamSet(1, range(s, 99, 200)), [], 5), "not-continuous"],
      ["trim goes back", upload(a, streamSet(1, range(s, 100, 200)), [], 4), "invalid"],
      [
        "two objects that follow each other",
        upload(a, streamSet(1, range(s, 100, 200)), [streamObject(2, range(s, 200, 300))], 5),
        "ok",
      ],
      ["only the trim", upload(a, null, [], 9), "ok"],
      ["nothing", upload(a, null, [], 9), "no records"],
      ["closed", close(a, s, 0, 300), "ok"],
    ]);
    world.ids(a, 1);
    table(world, [
      ["closed stream", upload(a, streamSet(8, range(s, 300, 301)), [], 9), "not-open"],
    ]);
    const expected = world.run(upload(b, streamSet(3, range(foreign, 7, 8))));
    assert.deepEqual([expected.ok, "expected" in expected && expected.expected], [false, 0]);
  });
});

test("the largest upload fits one entry", () => {
  const world = new World();
  const a = world.node(1);
  world.ids(a, 10);
  const row = world.state.streams.get(world.stream(a, 0))!;
  const start = 2 ** 44;
  const streams = Array.from({ length: LOG_CACHE_BLOCK_STREAMS_MAX }, (_, i) => streamId(i));
  for (const s of streams) world.state.streams.set(s, { ...row, streamId: s, start });
  const ranges = streams.map((s) => range(s, start, start + 1));
  const verdict = decide(world.state, upload(a, streamSet(0, ...ranges)), world.next);
  assert.ok(verdict.ok);
  const bytes = verdict.records.reduce((sum, record) => sum + encodeRecord(record).length, 0);
  assert.ok(bytes < METADATA_ENTRY_BYTES_MAX, `${bytes} bytes`);
});

describe("compaction", () => {
  function prepared() {
    const world = new World();
    const a = world.node(1);
    world.ids(a, 50);
    const s = world.stream(a, 0);
    const t = world.stream(a, 0);
    world.ok(upload(a, streamSet(0, range(s, 0, 10), range(t, 0, 10))));
    world.ok(upload(a, streamSet(1, range(s, 10, 20), range(t, 10, 20))));
    return { world, a, s, t };
  }

  function compact(
    who: Requester,
    change: Partial<Extract<Command, { type: "commit-compaction" }>>,
  ): Command {
    const base = { type: "commit-compaction", by: who, streamSetObject: null } as const;
    return { ...base, streamObjects: [], replaces: [], ...change };
  }

  test("stream set objects: digests, coverage, order of the oldest input", () => {
    const { world, a, s, t } = prepared();
    const b = world.node(2);
    world.ids(b, 5);
    const first = { objectId: objectId(0), ranges: [range(s, 0, 10), range(t, 0, 10)] };
    const second = { objectId: objectId(1), ranges: [range(t, 10, 20), range(s, 10, 20)] };
    const replaces = [first, second];
    const output = streamSet(2, range(t, 0, 20));
    const split = streamObject(3, range(s, 0, 20));
    const wrong = { objectId: objectId(0), ranges: [range(s, 0, 10)] };
    const ofNode2 = streamSet(50, range(t, 0, 20));
    const two = [streamObject(3, range(s, 0, 15)), streamObject(4, range(s, 14, 20))];
    table(world, [
      ["no inputs", compact(a, {}), "invalid"],
      ["input twice", compact(a, { replaces: [first, first] }), "invalid"],
      [
        "unknown input",
        compact(a, { replaces: [{ ...first, objectId: objectId(9) }] }),
        "conflict",
      ],
      ["digest", compact(a, { replaces: [wrong] }), "conflict"],
      [
        "list of another node",
        compact(b, { replaces: [first], streamSetObject: ofNode2 }),
        "conflict",
      ],
      ["live records left out", compact(a, { replaces, streamSetObject: output }), "conflict"],
      [
        "more than the inputs",
        compact(a, {
          replaces,
          streamSetObject: output,
          streamObjects: [streamObject(3, range(s, 0, 21))],
        }),
        "conflict",
      ],
      [
        "outputs overlap",
        compact(a, { replaces, streamSetObject: output, streamObjects: two }),
        "conflict",
      ],
      [
        "composite without links",
        compact(a, {
          replaces,
          streamSetObject: output,
          streamObjects: [{ ...split, attributes: 1 }],
        }),
        "invalid",
      ],
      [
        "all right",
        compact(a, { replaces, streamSetObject: output, streamObjects: [split] }),
        "ok",
      ],
      [
        "again",
        compact(a, { replaces, streamSetObject: output, streamObjects: [split] }),
        "conflict",
      ],
    ]);
    const order = world.state.objects.get(objectId(0))!.order;
    assert.equal(world.state.objects.get(objectId(2))?.order, order);
    assert.deepEqual(world.state.streamSets.get(nodeId(1)), [objectId(2)]);
    assert.equal(world.state.objects.get(objectId(1))?.state, "destroyed");
  });

  test("dead records may be left out: below the start, of deleted streams", () => {
    const { world, a, s, t } = prepared();
    world.ok(trim(a, s, 0, 12));
    world.ok(close(a, t, 0, 20));
    world.ok({ type: "delete-stream", by: a, streamId: t });
    const replaces = [
      { objectId: objectId(0), ranges: [range(s, 0, 10), range(t, 0, 10)] },
      { objectId: objectId(1), ranges: [range(t, 10, 20), range(s, 10, 20)] },
    ];
    const live = streamObject(2, range(s, 10, 20));
    const dead = streamObject(3, range(t, 0, 20));
    table(world, [["ok", compact(a, { replaces, streamObjects: [live, dead] }), "ok"]]);
    assert.deepEqual(world.state.streamSets.get(nodeId(1)), []);
    assert.equal(world.state.objects.get(objectId(2))?.state, "committed");
    assert.equal(world.state.objects.get(objectId(3))?.state, "destroyed", "no leak");
  });

  test("fault 27: the stream was trimmed meanwhile, the commit is refused, the output is purged", () => {
    const { world, a, s } = prepared();
    world.ok(upload(a, null, [streamObject(5, range(s, 20, 30))]));
    world.ok(trim(a, s, 0, 40));
    const replaces = [{ objectId: objectId(5), ranges: [range(s, 20, 30)] }];
    const streamObjects = [streamObject(6, range(s, 20, 30))];
    table(world, [
      ["refused", compact(a, { replaces, streamObjects }), "conflict"],
      ["purge of the own output", { type: "purge", by: a, objectIds: [objectId(6)] }, "ok"],
      [
        "never again",
        upload(a, null, [streamObject(6, range(s, 40, 41))]),
        "conflict",
      ],
    ]);
  });

  test("composites keep their links alive, and die with them", () => {
    const { world, a, s } = prepared();
    world.ok(upload(a, null, [streamObject(5, range(s, 20, 30))]));
    world.ok(upload(a, null, [streamObject(6, range(s, 30, 40))]));
    const replaces = [
      { objectId: objectId(5), ranges: [range(s, 20, 30)] },
      { objectId: objectId(6), ranges: [range(s, 30, 40)] },
    ];
    const composite = { ...streamObject(7, range(s, 20, 40)), attributes: 1 };
    const link = (id: number, ...links: number[]) => ({
      objectId: objectId(id),
      links: links.map(objectId),
    });
    const both = { replaces, streamObjects: [composite] };
    table(world, [
      ["foreign link", compact(a, { ...both, composites: [link(7, 5, 0)] }), "conflict"],
      ["not covered", compact(a, { ...both, composites: [link(7, 5)] }), "conflict"],
      ["ok", compact(a, { ...both, composites: [link(7, 5, 6)] }), "ok"],
      ["a link is no input", compact(a, { replaces: [replaces[0]!] }), "conflict"],
      ["a link is not purged", { type: "purge", by: a, objectIds: [objectId(5)] }, "conflict"],
    ]);
    const state = (id: number) => world.state.objects.get(objectId(id))?.state;
    assert.equal(world.state.objects.get(objectId(5))?.linkedBy, 7);
    assert.deepEqual([5, 6, 7].map(state), ["committed", "committed", "committed"]);
    // The next composite keeps one link and drops the other, whose records are dead.
    world.ok(trim(a, s, 0, 30));
    const next = { ...streamObject(8, range(s, 30, 40)), attributes: 1 };
    world.ok(compact(a, {
      replaces: [{ objectId: objectId(7), ranges: [range(s, 20, 40)] }],
      streamObjects: [next],
      composites: [link(8, 6)],
    }));
    assert.deepEqual([5, 6, 7, 8].map(state), [
      "destroyed",
      "committed",
      "destroyed",
      "committed",
    ]);
    world.ok(trim(a, s, 0, 40));
    assert.deepEqual([6, 8].map(state), ["destroyed", "destroyed"]);
  });
});

describe("garbage", () => {
  test("sweep and purge only move forward", () => {
    const world = new World();
    const old = world.node(1, 10);
    world.ids(old, 4);
    const s = world.stream(old, 0);
    world.ok(upload(old, null, [streamObject(0, range(s, 0, 5))]));
    world.ok(upload(old, null, [streamObject(1, range(s, 5, 9))]));
    world.ok(trim(old, s, 0, 5));
    const now = world.node(1, 11);
    const sweep = { type: "sweep-epoch", by: now, nodeId: nodeId(1), epoch: old.epoch } as const;
    const purge = (...ids: number[]): Command => ({
      type: "purge",
      by: now,
      objectIds: ids.map(objectId),
    });
    const block = { nodeId: nodeId(1), epoch: old.epoch, from: objectId(0) };
    const blocks: Command = { type: "purge", by: now, objectIds: [], blocks: [block] };
    table(world, [
      ["current epoch", { ...sweep, epoch: now.epoch }, "invalid"],
      ["unknown epoch", { ...sweep, nodeId: nodeId(9) }, "not-found"],
      ["not recovered", sweep, "conflict"],
      ["committed", purge(1), "conflict"],
      ["reserved by a dead epoch, not swept", purge(2), "conflict"],
      ["never reserved", purge(99), "not-found"],
      ["block not swept", blocks, "conflict"],
      ["destroyed", purge(0), "ok"],
      ["purged", purge(0), "no records"],
    ]);
    const recovery = world.ok({ ...sweep, type: "begin-recovery" }).recovery;
    world.ok({
      type: "finish-recovery",
      by: now,
      nodeId: nodeId(1),
      epoch: old.epoch,
      recovery: position(recovery),
      streamSetObject: null,
      streamObjects: [],
      ends: [{ streamId: s, end: 9 }],
      sealedSlot: 0,
    });
    assert.deepEqual(world.ok(sweep), { swept: 2 });
    table(world, [
      ["again", sweep, "no records"],
      ["swept", purge(2), "ok"],
      ["block", blocks, "ok"],
      ["block again", blocks, "no records"],
      ["ids of a block that is gone", purge(3), "no records"],
      ["committed lives on", purge(1), "conflict"],
    ]);
  });
});

describe("key-value and producer ids", () => {
  test("versions and blocks", () => {
    const world = new World();
    const a = world.node(1);
    const put = (value: string, expectedVersion: number): Command => ({
      type: "put-kv",
      key: "k",
      value,
      expectedVersion,
    });
    const remove = (expectedVersion: number): Command => ({
      type: "delete-kv",
      key: "k",
      expectedVersion,
    });
    table(world, [
      ["absent", put("a", 1), "conflict"],
      ["create", put("a", 0), "ok"],
      ["exists", put("b", 0), "conflict"],
      ["replace", put("b", 1), "ok"],
      ["too long", put("x".repeat(100_000), 2), "invalid"],
      ["old version", remove(1), "conflict"],
      ["delete", remove(2), "ok"],
      ["missing", remove(2), "not-found"],
      ["no ids", { type: "alloc-producer-ids", by: a, count: 0 }, "invalid"],
    ]);
    const alloc = { type: "alloc-producer-ids", by: a, count: 1_000 } as const;
    assert.deepEqual([world.ok(alloc), world.ok(alloc)], [{ first: 0 }, { first: 1_000 }]);
    assert.equal(outcome(world, register(1)), "ok");
  });
});
