/** What a life leaves behind when one of its parts does not come up. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createFakeClock } from "../../tests/support/fake_clock.ts";
import { nodeOptions } from "../../tests/support/node_options.ts";
import { testEnv } from "../../tests/support/test_env.ts";
import type { CoordinatorBounds } from "../broker/group/coordinator.ts";
import { createMemoryStore } from "../object/memory.ts";
import { startNode } from "./node.ts";

test("a broker that cannot be made stops what was started below it: no timer is left", async () => {
  const clock = createFakeClock();
  const groupBounds: CoordinatorBounds = {
    get stateBytesMax(): number {
      // The collector, the auditor and the storage engine run by now.
      assert.ok(clock.timers > 0);
      throw new Error("no coordinator");
    },
  };
  const store = createMemoryStore(clock);
  const options = nodeOptions(store, { env: testEnv({ clock }), groupBounds });
  await assert.rejects(startNode(options), /no coordinator/);
  assert.equal(clock.timers, 0);
});
