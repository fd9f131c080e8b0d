import assert from "node:assert/strict";
import { test } from "node:test";
import { nodeEpoch, nodeId, streamEpoch, type StreamId, streamId } from "../lib/brand.ts";
import type { StreamRow } from "./image.ts";
import { canHaveHeld } from "./metadata_end.ts";

function image(owner: { node: number; epoch: number }) {
  const row: StreamRow = {
    streamId: streamId(3),
    epoch: streamEpoch(2),
    open: true,
    owner: { nodeId: nodeId(owner.node), epoch: nodeEpoch(owner.epoch) },
    start: 0,
    end: 12,
    ranges: [],
    objects: [],
    tag: null,
  };
  return { streams: new Map<StreamId, StreamRow>([[row.streamId, row]]), nextStreamId: 5 };
}

const held = (owner: { node: number; epoch: number }, stream: number) =>
  canHaveHeld(image(owner), nodeId(3), nodeEpoch(10), streamId(stream));

test("a stream that went to a node with an earlier registration can have been held", () => {
  assert.equal(held({ node: 1, epoch: 1 }, 3), true);
});

test("a stream that an earlier incarnation of the node still holds was never opened by this one", () => {
  assert.equal(held({ node: 3, epoch: 4 }, 3), false);
  assert.equal(held({ node: 3, epoch: 10 }, 3), true);
  assert.equal(held({ node: 3, epoch: 12 }, 3), true);
});

test("a stream that was deleted can have been held, one that was never created cannot", () => {
  assert.equal(held({ node: 1, epoch: 1 }, 4), true);
  assert.equal(held({ node: 1, epoch: 1 }, 5), false);
});
