/** Share partitions that are let go and opened again while writes of theirs are under way. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createBrokerWorld } from "../../../tests/support/broker_world.ts";
import type { Partitions } from "../partitions.ts";
import { SHARE_STATE_TOPIC } from "../topic_name.ts";
import { ShareGroups } from "./share_groups.ts";
import { ACCEPT } from "./window.ts";

/** Partitions of which the state topic's are being loaded while the gate is there. */
function gated(partitions: Partitions, isGated: (topicId: string) => Promise<void> | null) {
  return new Proxy(partitions, {
    get(target, name) {
      if (name === "peek") {
        return (id: string, at: number) => isGated(id) === null ? target.peek(id, at) : undefined;
      }
      if (name === "open") {
        return async (id: string, at: number) => {
          await isGated(id);
          return await target.open(id, at);
        };
      }
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

test("a share partition that is opened again knows all that was acknowledged before", async () => {
  const world = await createBrokerWorld({ routes: () => [] });
  const { services } = world;
  const topicId = await world.createTopic("t");
  const log = await world.log("t");
  log.append(world.batch("0", "1", "2", "3"));
  let gate: Promise<void> | null = null;
  const partitions = gated(
    services.partitions,
    (id) => services.topics.find(SHARE_STATE_TOPIC)?.topicId === id ? gate : null,
  );
  const groups = new ShareGroups({ ...services, partitions });
  const key = { groupId: "g", topicId, partition: 0 };
  assert.equal(await groups.initialize(key, 1, 0), null);
  const opened = await groups.open(key);
  assert.ok(opened.ok);
  const { partition } = opened;
  const read = await log.read(0, { bytesMax: 1 << 20, isolation: "uncommitted" });
  assert.ok(read !== null && read.ok);
  const taken = partition.acquire(
    { member: "a", isRecordLimit: false, batchSize: 10, recordsMax: 10 },
    { fetchOffset: 0, batches: read.batches, aborted: [] },
  );
  assert.deepEqual(taken.acquired, [{ first: 0, last: 3, count: 1 }]);

  let openGate = () => {};
  gate = new Promise((resolve) => void (openGate = resolve));
  const answers = [0, 1, 2].map((at) =>
    partition.acknowledge("a", [{ first: at, last: at, types: [ACCEPT] }])
  );
  groups.groupEmptied("g");
  const again = groups.open(key);
  gate = null;
  openGate();
  assert.deepEqual(await Promise.all(answers), [null, null, null], "they are answered as done");
  const reopened = await again;
  assert.ok(reopened.ok);
  assert.equal(reopened.partition.fetchOffset, 3, "and none of them comes again");
  groups.close();
});
