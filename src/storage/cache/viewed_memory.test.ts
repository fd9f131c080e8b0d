import assert from "node:assert/strict";
import { test } from "node:test";
import { record } from "../../../tests/support/records.ts";
import { ReadLease } from "../../lib/read_lease.ts";
import { ViewedMemory } from "./viewed_memory.ts";

test("a buffer is viewed until the last of its leases has ended", () => {
  const viewed = new ViewedMemory();
  const one = record(0, 0);
  const { buffer } = one.payload;
  assert.equal(viewed.isViewed(buffer), false);
  const [first, second] = [new ReadLease(), new ReadLease()];
  viewed.view([one, one], first);
  viewed.view([one], second);
  first.end();
  first.end();
  assert.equal(viewed.isViewed(buffer), true);
  second.end();
  assert.equal(viewed.isViewed(buffer), false);
});

test("without a lease nobody knows when it ends", () => {
  const viewed = new ViewedMemory();
  const one = record(0, 0);
  viewed.view([one], undefined);
  const lease = new ReadLease();
  viewed.view([one], lease);
  lease.end();
  assert.equal(viewed.isViewed(one.payload.buffer), true);
});
