import assert from "node:assert/strict";
import { test } from "node:test";
import { createFakeClock } from "../../tests/support/fake_clock.ts";
import { testEnv } from "../../tests/support/test_env.ts";
import { openMetadata } from "../controller/controller.ts";
import type { Command, Decided } from "../controller/command.ts";
import type { MetadataStore } from "../controller/metadata_store.ts";
import { randomUuid } from "../env/random.ts";
import { nodeId } from "../lib/brand.ts";
import { FaultError, isFault } from "../lib/errors.ts";
import { uuidOf } from "../lib/uuid.ts";
import { createMemoryStore } from "../object/memory.ts";
import { type IncarnationOptions, startIncarnation } from "./incarnation.ts";

const NODE = nodeId(1);

async function rig() {
  const clock = createFakeClock();
  const env = testEnv({ clock });
  const store = createMemoryStore(clock);
  const incarnation = uuidOf(randomUuid(env.random));
  const shared = { store, env, clusterId: "c", nodeId: NODE, incarnation };
  const inner = await openMetadata({ ...shared, pollMs: null });
  const seen = { listeners: 0, refuse: null as Command["type"] | null };
  const metadata: MetadataStore = {
    view: () => inner.view(),
    fresh: (inDoubt) => inner.fresh(inDoubt),
    close: () => inner.close(),
    submit<C extends Command>(command: C): Promise<Decided<C["type"]>> {
      if (command.type !== seen.refuse) return inner.submit(command);
      return Promise.reject(new FaultError("corrupt", "Refused", { retriable: false }));
    },
    onChange(listener) {
      seen.listeners += 1;
      const stop = inner.onChange(listener);
      return () => {
        seen.listeners -= 1;
        stop();
      };
    },
  };
  const options: IncarnationOptions = {
    ...shared,
    metadata,
    host: "node",
    port: 9092,
    walPolicy: { kind: "unmetered" },
    storeKind: "memory",
    again: false,
    storeWait: { env, storeName: "memory:", limitMs: 1_000 },
    onHealth: () => {},
    onFatal: () => {},
  };
  return { metadata, options, seen };
}

test("an incarnation follows the metadata until it is closed", async () => {
  const { metadata, options, seen } = await rig();
  const incarnation = await startIncarnation(options);
  assert.equal(seen.listeners, 2, "its registration, and roll calls");
  await incarnation.close();
  assert.equal(seen.listeners, 0);
  await metadata.close();
});

for (const step of ["begin-recovery", "assign-leaders"] as const) {
  test(`an incarnation whose ${step} fails closes what it opened`, async () => {
    const { metadata, options, seen } = await rig();
    // One that was never closed, so that there is something to recover.
    await startIncarnation({ ...options });
    const before = seen.listeners;
    seen.refuse = step;
    await assert.rejects(startIncarnation(options), (error) => isFault(error, "corrupt"));
    assert.equal(seen.listeners, before);
    await metadata.close();
  });
}

test("who registers again goes on only if nobody took its place", async () => {
  const { metadata, options } = await rig();
  const first = await startIncarnation(options);
  const again = await startIncarnation({ ...options, again: true });
  assert.ok(again.requester.epoch > first.requester.epoch);
  const other = uuidOf(new Uint8Array(16).fill(7));
  await startIncarnation({ ...options, incarnation: other });
  await assert.rejects(
    startIncarnation({ ...options, again: true }),
    (error) => isFault(error, "fenced"),
  );
  await metadata.close();
});
