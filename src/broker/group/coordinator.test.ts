import assert from "node:assert/strict";
import { test } from "node:test";
import { createBrokerWorld } from "../../../tests/support/broker_world.ts";
import type { BrokerServices } from "../handler.ts";
import { Coordinator } from "./coordinator.ts";

test("the request that makes a shard load gets it, not COORDINATOR_LOAD_IN_PROGRESS", async () => {
  // Found by the simulator on Deno: ending the wait for the load overtook the load's own answer.
  const found: BrokerServices[] = [];
  await createBrokerWorld({
    routes: (services) => {
      found.push(services);
      return [];
    },
  });
  const coordinator = new Coordinator(found[0]!);
  const shard = await coordinator.shardOf("g");
  assert.ok(shard.ok, shard.ok ? "" : shard.error);
  coordinator.close();
});
