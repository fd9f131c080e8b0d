/**
 * AutoMQ's controller tests that apply here: input and expected result as there. Its codes are refusals of ours:
 * 502 not-found, 503 fenced, 504 and 508 conflict, 505 not-open, 506 not-closed, 507 no records, 509
 * not-continuous, 510 and 511 fenced, 599 invalid.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import {
  by,
  close,
  CLUSTER,
  open,
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
import { faultyStore } from "../../tests/support/faulty_store.ts";
import { MetadataWorld } from "../../tests/support/metadata_world.ts";
import { nodeId, objectId, streamEpoch, streamId } from "../lib/brand.ts";
import { dataKey } from "../object/object_key.ts";
import { createCollector } from "./collector.ts";
import type { Command, Requester } from "./command.ts";

function outcomes(world: World, ...commands: readonly Command[]) {
  return commands.map((command) => outcome(world, command));
}

function twoNodes() {
  const world = new World();
  return { world, node0: world.node(0), node1: world.node(1) };
}

const S0 = streamId(0);
const replaced = (id: number, ...ranges: ReturnType<typeof range>[]) => ({
  objectId: objectId(id),
  ranges,
});

function compact(
  who: Requester,
  change: Pick<Extract<Command, { type: "commit-compaction" }>, "replaces"> & Partial<Command>,
): Command {
  const base = { streamSetObject: null, streamObjects: [] };
  return { type: "commit-compaction", by: who, ...base, ...change } as Command;
}

describe("streams", () => {
  test("create twice: ids 0 and 1, start 0, next id 2", () => {
    const { world, node0 } = twoNodes();
    assert.deepEqual([world.stream(node0, 0), world.stream(node0, 0)], [0, 1]);
    const { start, end } = world.state.streams.get(S0)!;
    assert.deepEqual([start, end, world.state.nextStreamId], [0, 0, 2]);
  });

  test("open: another node 503, again OK without records, a higher epoch 506", () => {
    const { world, node0, node1 } = twoNodes();
    world.stream(node0, 0);
    const asked = [open(node1, S0, 0), open(node0, S0, 0), open(node0, S0, 1), open(node1, S0, 1)];
    const wanted = ["fenced", "no records", "not-closed", "not-closed"];
    assert.deepEqual(outcomes(world, ...asked), wanted);
  });

  test("close: another node 503, a newer epoch 599, OK, OK again; then node 1 opens", () => {
    const { world, node0, node1 } = twoNodes();
    world.stream(node0, 0);
    const asked = [close(node1, S0, 0, 0), close(node0, S0, 1, 0), close(node0, S0, 0, 0)];
    const wanted = ["fenced", "invalid", "ok"];
    assert.deepEqual(outcomes(world, ...asked), wanted);
    assert.equal(outcome(world, close(node0, S0, 0, 0)), "no records");
    assert.equal(outcome(world, open(node1, S0, 1)), "ok");
    assert.equal(world.state.streams.get(S0)!.ranges.at(-1)?.nodeId, 1);
  });

  test("delete: open 506, closed one record, again none; stream set objects are untouched", () => {
    const { world, node0 } = twoNodes();
    world.stream(node0, 0);
    world.ids(node0, 4);
    world.ok(upload(node0, streamSet(0, range(0, 0, 10))));
    const remove = { type: "delete-stream", by: node0, streamId: S0 } as const;
    assert.equal(outcome(world, remove), "not-closed");
    world.ok(close(node0, S0, 0, 10));
    const verdict = world.run(remove);
    assert.equal(verdict.ok && verdict.records.length, 1);
    assert.equal(outcome(world, remove), "no records");
    assert.deepEqual(world.state.streamSets.get(nodeId(0)), [0]);
    assert.equal(world.state.objects.get(objectId(0))?.state, "committed");
  });

  test("nodes: never registered 511, an older epoch 510", () => {
    const world = new World();
    const create = (who: Requester): Command => ({
      type: "create-stream",
      by: who,
      epoch: streamEpoch(0),
    });
    assert.equal(outcome(world, create(by(5, 1))), "fenced");
    const old = world.node(5, 1);
    world.ok(register(5, 2));
    assert.equal(outcome(world, create(old)), "fenced");
  });
});

describe("stream set objects", () => {
  test("commit [0,100): end 100; an unknown object 504; then node 1 goes on with [100,300)", () => {
    const { world, node0, node1 } = twoNodes();
    world.stream(node0, 0);
    world.ids(node0, 1);
    assert.equal(outcome(world, upload(node0, streamSet(0, range(0, 0, 100)))), "ok");
    assert.equal(world.state.streams.get(S0)!.end, 100);
    assert.equal(outcome(world, upload(node0, streamSet(1, range(0, 100, 200)))), "conflict");
    world.ok(close(node0, S0, 0, 100));
    const opened = world.run(open(node1, S0, 1));
    assert.deepEqual(opened.ok && opened.result, { start: 0, end: 100 });
    world.ids(node1, 2);
    const later = upload(node1, streamSet(1, range(0, 100, 300)));
    assert.deepEqual(outcomes(world, later, later), ["ok", "no records"], "committed twice");
    const ranges = world.state.streams.get(S0)!.ranges.map((one) => [one.nodeId, one.start]);
    assert.deepEqual(ranges, [[0, 0], [1, 100]]);
  });

  test("not contiguous: [99,200) when the end is 100 is 509", () => {
    const { world, node0 } = twoNodes();
    world.stream(node0, 0);
    world.ids(node0, 2);
    world.ok(upload(node0, streamSet(0, range(0, 0, 100))));
    const late = upload(node0, streamSet(1, range(0, 99, 200)));
    assert.equal(outcome(world, late), "not-continuous");
  });

  test("trim to 100 with end 0, then commit [0,10): start 100, end 10", () => {
    const { world, node0 } = twoNodes();
    world.stream(node0, 0);
    world.ids(node0, 1);
    const asked = [trim(node0, S0, 0, 100), upload(node0, streamSet(0, range(0, 0, 10)))];
    assert.deepEqual(outcomes(world, ...asked), ["ok", "ok"]);
    const { start, end } = world.state.streams.get(S0)!;
    assert.deepEqual([start, end], [100, 10]);
  });

  test("trim data: whole ranges go; to 100, past the end, then [70,100) is accepted", () => {
    const { world, node0, node1 } = twoNodes();
    world.stream(node0, 0);
    world.ids(node0, 3);
    world.ok(upload(node0, streamSet(0, range(0, 0, 10))));
    world.ok(upload(node0, streamSet(1, range(0, 10, 20))));
    world.ok(upload(node0, null, [streamObject(2, range(0, 20, 40))]));
    world.ok(close(node0, S0, 0, 40));
    world.ok(open(node1, S0, 1));
    const [first] = [world.ids(node1, 2)];
    world.ok(upload(node1, streamSet(first, range(0, 40, 70))));
    world.ok(trim(node1, S0, 1, 60));
    assert.deepEqual(world.state.streams.get(S0)!.ranges.map(({ start }) => start), [60]);
    // There the stream object is kept until compaction; here it goes at once.
    assert.equal(world.state.objects.get(objectId(2))?.state, "destroyed");
    world.ok(trim(node1, S0, 1, 100));
    assert.equal(outcome(world, upload(node1, streamSet(first + 1, range(0, 70, 100)))), "ok");
    const { start, end } = world.state.streams.get(S0)!;
    assert.deepEqual([start, end], [100, 100]);
  });
});

describe("compaction", () => {
  test("[0,1] into 2 in the place of the oldest; the object of a stream that is gone is destroyed", () => {
    const { world, node0 } = twoNodes();
    world.stream(node0, 0);
    const gone = world.stream(node0, 0);
    world.ids(node0, 4);
    world.ok(upload(node0, streamSet(0, range(0, 0, 10), range(gone, 0, 10))));
    world.ok(upload(node0, streamSet(1, range(0, 10, 20), range(gone, 10, 20))));
    world.ok(close(node0, gone, 0, 20));
    world.ok({ type: "delete-stream", by: node0, streamId: gone });
    const order = world.state.objects.get(objectId(0))!.order;
    const command = compact(node0, {
      streamSetObject: streamSet(2, range(0, 0, 20)),
      streamObjects: [streamObject(3, range(gone, 0, 20))],
      replaces: [
        replaced(0, range(0, 0, 10), range(gone, 0, 10)),
        replaced(1, range(0, 10, 20), range(gone, 10, 20)),
      ],
    });
    assert.equal(outcome(world, command), "ok");
    const state = (id: number) => world.state.objects.get(objectId(id))!.state;
    assert.deepEqual([0, 1, 2, 3].map(state), ["destroyed", "destroyed", "committed", "destroyed"]);
    assert.deepEqual(world.state.streamSets.get(nodeId(0)), [2]);
    assert.equal(world.state.objects.get(objectId(2))!.order, order, "the minimum");
  });

  test("a compacted id is missing: 508, no records", () => {
    const { world, node0 } = twoNodes();
    world.stream(node0, 0);
    world.ids(node0, 4);
    world.ok(upload(node0, streamSet(0, range(0, 0, 10))));
    const command = compact(node0, {
      streamSetObject: streamSet(2, range(0, 0, 20)),
      replaces: [replaced(0, range(0, 0, 10)), replaced(1, range(0, 10, 20))],
    });
    assert.equal(outcome(world, command), "conflict");
    assert.equal(world.state.objects.get(objectId(0))?.state, "committed");
  });

  test("stream objects [1,3] into 4: one object [0,400)", () => {
    const { world, node0 } = twoNodes();
    world.stream(node0, 0);
    world.ids(node0, 5);
    world.ok(upload(node0, null, [streamObject(1, range(0, 0, 200))]));
    world.ok(upload(node0, null, [streamObject(3, range(0, 200, 400))]));
    const command = compact(node0, {
      streamObjects: [streamObject(4, range(0, 0, 400))],
      replaces: [replaced(1, range(0, 0, 200)), replaced(3, range(0, 200, 400))],
    });
    assert.equal(outcome(world, command), "ok");
    assert.deepEqual(world.state.streams.get(S0)!.objects, [4]);
    assert.deepEqual(world.state.objects.get(objectId(4))!.stream, {
      streamId: 0,
      start: 0,
      end: 400,
    });
  });

  test("the list of a node that lives is its own; of one that is gone it is anybody's, and stays its list", () => {
    const { world, node0, node1 } = twoNodes();
    world.stream(node1, 0);
    world.ids(node1, 1);
    world.ids(node0, 2);
    world.ok(upload(node1, streamSet(0, range(0, 0, 10))));
    const command = compact(node0, {
      streamSetObject: streamSet(1, range(0, 0, 10)),
      replaces: [replaced(0, range(0, 0, 10))],
    });
    assert.equal(outcome(world, command), "conflict");
    world.ok({ type: "begin-recovery", ...node1, by: node0 });
    assert.equal(outcome(world, command), "ok");
    assert.deepEqual(world.state.streamSets.get(nodeId(1)), [1]);
    assert.deepEqual(world.state.streamSets.get(nodeId(0)) ?? [], []);
  });
});

describe("object ids", () => {
  test("prepare 3 then 5: first ids 0 and 3", () => {
    const { world, node0 } = twoNodes();
    assert.deepEqual([world.ids(node0, 3), world.ids(node0, 5)], [0, 3]);
    assert.equal(world.state.nextObjectId, 8);
  });

  test("commit of a missing id 504, of a prepared one OK, again 507", () => {
    const { world, node0 } = twoNodes();
    world.stream(node0, 0);
    const command = upload(node0, streamSet(0, range(0, 0, 1)));
    assert.equal(outcome(world, command), "conflict");
    world.ids(node0, 1);
    assert.deepEqual(outcomes(world, command, command), ["ok", "no records"]);
  });
});

describe("real deletion", () => {
  async function setup(count: number) {
    const world = new MetadataWorld();
    const { metadata, env } = await world.open(1);
    const decided = await metadata.submit(register(1));
    assert.ok(decided.ok && "epoch" in decided);
    const who = { nodeId: nodeId(1), epoch: decided.epoch };
    const submit = async (command: Command) => assert.ok((await metadata.submit(command)).ok);
    await submit({ type: "create-stream", by: who, epoch: streamEpoch(0) });
    await submit({ type: "reserve-ids", by: who, count });
    const objects = Array.from(
      { length: count },
      (_, id) => streamObject(id, range(0, id, id + 1)),
    );
    await submit(upload(who, null, objects));
    await submit(trim(who, S0, 0, count));
    await world.clock.advance(16 * 60_000);
    const store = faultyStore(world.base, world.clock);
    const parts = { store, env, clusterId: CLUSTER, metadata, requester: () => who };
    return { world, store, metadata, collector: createCollector({ ...parts, intervalMs: null }) };
  }

  test("1,700 objects are deleted in batches, not one by one", async () => {
    const { store, collector } = await setup(1_700);
    assert.equal((await collector.collect()).deleted, 1_700);
    assert.equal(store.count("delete"), 4, "500 keys each");
  });

  test("a delete in flight: the next check does nothing; then the row goes", async () => {
    const { world, store, metadata, collector } = await setup(1);
    store.setPlan(({ op }) => op === "delete" ? { kind: "delay", delayMs: 5_000 } : undefined);
    await world.base.put(dataKey(CLUSTER, objectId(0)), new Uint8Array(1));
    const both = [collector.collect(), collector.collect()];
    await world.clock.advance(4_000);
    assert.deepEqual([store.count("delete"), metadata.view().objects.size], [1, 1]);
    await world.clock.advance(2_000);
    await Promise.all(both);
    assert.deepEqual([store.count("delete"), metadata.view().objects.size], [1, 0]);
  });
});

test("topic deletion takes its streams with it", () => {
  const { world, node0, node1 } = twoNodes();
  world.topic(1);
  const { leader } = world.state.partitions.get(`${TOPIC}/0`)!;
  const who = leader === node0.nodeId ? node0 : node1;
  world.stream(who, 0, `${TOPIC}/0`);
  world.stream(who, 0, `${TOPIC}/0`);
  const other = world.stream(who, 0);
  world.ok({ type: "delete-topic", topicId: TOPIC });
  assert.deepEqual([...world.state.streams.keys()], [other]);
});
