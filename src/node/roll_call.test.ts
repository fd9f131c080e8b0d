/** Who is taken for gone, and by which knowledge. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { register } from "../../tests/support/controller_world.ts";
import { MetadataWorld, type Opened } from "../../tests/support/metadata_world.ts";
import { nodeId } from "../lib/brand.ts";
import { isFault } from "../lib/errors.ts";
import { ROLL_CALL_MS } from "../lib/limits.ts";
import type { Requester } from "../controller/command.ts";
import { answerRollCalls, silentNodes } from "./roll_call.ts";

const POLL_MS = 10_000;

class Setup {
  readonly world = new MetadataWorld();

  async node(id: number, pollMs: number | null): Promise<Opened & { requester: Requester }> {
    const opened = await this.world.open(id, undefined, { pollMs });
    const decided = await this.world.drive(opened.metadata.submit(register(id)));
    assert.ok(decided.ok && "epoch" in decided);
    return { ...opened, requester: { nodeId: nodeId(id), epoch: decided.epoch } };
  }

  async close(...nodes: readonly Opened[]): Promise<void> {
    for (const { metadata } of nodes) await this.world.drive(metadata.close());
  }
}

const never = () => new AbortController().signal;

test("who does not answer is named with its epoch; who answers is not, and ends the wait", async () => {
  const setup = new Setup();
  const gone = await setup.node(1, POLL_MS);
  const alive = await setup.node(2, POLL_MS);
  const stop = answerRollCalls(alive);
  const caller = await setup.node(3, POLL_MS);
  const startedMs = setup.world.clock.monotonicMs();
  const silent = await setup.world.drive(silentNodes(caller, never()), 1_000);
  assert.deepEqual(silent, [{ nodeId: nodeId(1), epoch: gone.requester.epoch }]);
  assert.ok(setup.world.clock.monotonicMs() - startedMs >= ROLL_CALL_MS);
  answerRollCalls(gone);
  const beganMs = setup.world.clock.monotonicMs();
  assert.deepEqual(await setup.world.drive(silentNodes(caller, never()), 1_000), []);
  assert.ok(setup.world.clock.monotonicMs() - beganMs < ROLL_CALL_MS);
  stop();
  await setup.close(gone, alive, caller);
});

test("a caller that heard nothing meanwhile judges by the end of the log, not by what it knew", async () => {
  const setup = new Setup();
  const alive = await setup.node(1, POLL_MS);
  answerRollCalls(alive);
  // It never polls, as one that stood still: the answer is in the log, and not in its replica.
  const caller = await setup.node(2, null);
  assert.deepEqual(await setup.world.drive(silentNodes(caller, never()), 1_000), []);
  await setup.close(alive, caller);
});

test("to be registered anew is an answer, of whatever incarnation", async () => {
  const setup = new Setup();
  const before = await setup.node(1, POLL_MS);
  const caller = await setup.node(2, null);
  const calling = setup.world.drive(silentNodes(caller, never()), 1_000);
  const again = await before.metadata.submit(register(1, 7));
  assert.ok(again.ok);
  assert.deepEqual(await calling, []);
  await setup.close(before, caller);
});

test("alone in the cluster nobody is called, and a close ends the wait", async () => {
  const setup = new Setup();
  const first = await setup.node(1, POLL_MS);
  const { at } = first.metadata.view();
  assert.deepEqual(await silentNodes(first, never()), []);
  assert.equal(first.metadata.view().at, at, "nothing is written");
  const second = await setup.node(2, POLL_MS);
  const abort = new AbortController();
  const calling = silentNodes(second, abort.signal);
  const refused = assert.rejects(calling, (error: unknown) => isFault(error, "aborted"));
  await setup.world.clock.advance(1_500);
  abort.abort();
  await setup.world.drive(refused);
  await setup.close(first, second);
});
