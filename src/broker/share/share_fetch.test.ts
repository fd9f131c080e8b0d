/** What a fetch of a share group costs while it waits. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createBrokerWorld, SESSION } from "../../../tests/support/broker_world.ts";
import { shareFetch } from "./share_fetch.ts";

test("a fetch that is woken often opens no partition twice", async () => {
  const world = await createBrokerWorld({ routes: () => [] });
  const { services, clock } = world;
  const topicId = await world.createTopic("t", 2);
  const log = await world.log("t", 0);
  const groups = services.shareGroups;
  assert.equal(await groups.initialize({ groupId: "g", topicId, partition: 0 }, 1, 0), null);
  let opened = 0;
  let looks = 0;
  const counting = new Proxy(groups, {
    get(target, name) {
      if (name === "open") opened += 1;
      if (name === "mayServe") looks += 1;
      const value: unknown = Reflect.get(target, name, target);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
  const done = shareFetch(
    { ...services, shareGroups: counting },
    {
      groupId: "g",
      memberId: "a",
      // The second one has no state.
      places: [0, 1].map((partition) => ({ topicId, partition })),
      maxWaitMs: 1_000,
      minBytes: 1 << 20,
      maxBytes: 1 << 20,
      recordsMax: 100,
      batchSize: 100,
      isRecordLimit: false,
    },
    {
      version: 2,
      clientId: "c",
      session: SESSION,
      signal: new AbortController().signal,
      admitted: () => {},
      afterAnswer: () => {},
    },
  );
  for (let at = 0; at < 10; at++) {
    await clock.advance(0);
    log.append(world.batch("x"));
  }
  await clock.advance(1_000);
  const told = await done;
  assert.deepEqual(
    told.map(({ place, error, acquired }) => [place.partition, error, acquired]),
    [[1, "KAFKA_STORAGE_ERROR", []], [0, "NONE", [{ first: 0, last: 9, count: 1 }]]],
  );
  assert.equal(opened, 2);
  assert.ok(looks >= 5, `it was woken: ${looks}`);
  groups.close();
});
