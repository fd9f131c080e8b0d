/** What is derived from the rows must be there in every state, however that came to be. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { CLUSTER, OTHER_TOPIC, TOPIC } from "../../tests/support/controller_world.ts";
import { nodeEpoch, nodeId, streamEpoch, streamId } from "../lib/brand.ts";
import type { StreamRow } from "./image.ts";
import { Draft, State } from "./state.ts";

function rowOf(id: number, tag: string | null): StreamRow {
  return {
    streamId: streamId(id),
    epoch: streamEpoch(0),
    open: false,
    owner: { nodeId: nodeId(1), epoch: nodeEpoch(1) },
    start: 0,
    end: 0,
    ranges: [],
    objects: [],
    tag,
  };
}

test("a state under another name still knows which streams go with a topic", () => {
  const state = new State(CLUSTER);
  const draft = new Draft(state);
  for (const [id, tag] of [[0, `${TOPIC}/0`], [1, null], [2, `${TOPIC}/1`]] as const) {
    draft.streams.set(streamId(id), rowOf(id, tag));
  }
  draft.fold(state.at);
  const renamed = state.renamed("other");
  assert.equal(renamed.clusterId, "other");
  assert.deepEqual([...renamed.streamsOf(TOPIC)], [streamId(0), streamId(2)]);
  assert.deepEqual([...renamed.streamsOf(OTHER_TOPIC)], []);
});
