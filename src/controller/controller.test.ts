/** The loop and its log on a memory store: group commit, races, lost answers, crashes, trims, ghosts. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import * as fc from "fast-check";
import { CLUSTER, register, TOPIC } from "../../tests/support/controller_world.ts";
import { faultOnCall, type FaultPlan } from "../../tests/support/faulty_store.ts";
import { dumpOf, MetadataWorld, type Opened } from "../../tests/support/metadata_world.ts";
import { keysOf } from "../../tests/support/keys_of.ts";
import { randomInt, seededRandom } from "../env/random.ts";
import { position } from "../lib/brand.ts";
import { METADATA_POLL_MS, ROLL_CALL_LOOKS, ROLL_CALL_MS } from "../lib/limits.ts";
import { isFault } from "../lib/errors.ts";
import { logKey, snapshotKey, snapshotPrefix } from "../object/object_key.ts";
import type { Command } from "./command.ts";
import { decodeEntry } from "./entry.ts";
import { chainHolds, commandsAppliedOnce, reportsHold } from "./invariants.ts";

const HOUR_MS = 3_600_000;

function put(key: string, expectedVersion = 0, value = "v"): Command {
  return { type: "put-kv", key, value, expectedVersion };
}

function createTopic(name: string, topicId = TOPIC): Command {
  return {
    type: "create-topic",
    topicId,
    name,
    partitions: 1,
    replicationFactor: 1,
    configs: {},
    internal: false,
  };
}

function logCalls({ store }: Opened, op: "put" | "get" | "list"): number {
  return store.calls.filter((call) => call.op === op && call.key.includes("/log/")).length;
}

async function checkLog(world: MetadataWorld): Promise<void> {
  const entries = [...await world.log()].toSorted(([a], [b]) => a - b).map(([, bytes]) => bytes);
  assert.equal(chainHolds(entries), null);
  assert.equal(commandsAppliedOnce(entries), null);
}

describe("one node", () => {
  test("commands that wait together share one entry, and answers come in their order", async () => {
    const world = new MetadataWorld();
    const one = await world.open(1);
    const all = ["a", "b", "a", "c"].map((key) => one.metadata.submit(put(key)));
    const decided = await world.drive(Promise.all(all));
    assert.deepEqual(decided.map(({ ok }) => ok), [true, true, false, true]);
    assert.equal(logCalls(one, "put"), 1);
    assert.equal(one.metadata.view().at, 1);
    await one.metadata.close();
    const again = await world.open(1);
    assert.deepEqual(dumpOf(again.metadata), dumpOf(one.metadata));
  });

  test("registrations of one moment get epochs of their own", async () => {
    const world = new MetadataWorld();
    const { metadata } = await world.open(1);
    const both = [register(1, 10), register(1, 11)].map((command) => metadata.submit(command));
    const decided = await world.drive(Promise.all(both));
    assert.deepEqual(decided.map((one) => one.ok && one.at), [1, 2]);
  });

  test("a batch too large for one entry is split; a command too large for any is refused", async () => {
    const world = new MetadataWorld();
    const one = await world.open(1);
    const value = "x".repeat(60_000);
    const all = Array.from({ length: 20 }, (_, i) => one.metadata.submit(put(`k${i}`, 0, value)));
    const huge: Command = { ...createTopic("t"), configs: { a: "x".repeat(600_000) } } as Command;
    const refused = one.metadata.submit(huge);
    const decided = await world.drive(Promise.all([...all, refused]));
    assert.equal(decided.filter(({ ok }) => ok).length, 20);
    assert.equal(decided.at(-1)?.ok, false);
    for (const bytes of (await world.log()).values()) assert.ok(bytes.length <= 512 * 1024);
    assert.equal(one.metadata.view().at, 3);
    await checkLog(world);
  });

  test("a refusal is only given at the end of the log", async () => {
    const world = new MetadataWorld();
    const one = await world.open(1);
    const other = await world.open(2);
    await world.drive(other.metadata.submit(put("k")));
    const decided = await world.drive(one.metadata.submit(put("k", 1)));
    assert.equal(decided.ok, true, "the other's entry was read before the refusal");
  });

  test("idle: nothing is written, and a poll only reads", async () => {
    const world = new MetadataWorld();
    const one = await world.open(1, undefined, { pollMs: 10_000 });
    await world.drive(one.metadata.submit(put("k")));
    const other = await world.open(2);
    const puts = one.store.count("put");
    await world.drive(other.metadata.submit(put("l")));
    await world.clock.advance(11_000);
    assert.equal(one.metadata.view().at, 2);
    await world.clock.advance(HOUR_MS / 6);
    assert.equal(one.store.count("put"), puts);
    await one.metadata.close();
    assert.equal(world.clock.timers, 0);
  });

  test("a poll that would miss roll calls is refused", async () => {
    const world = new MetadataWorld();
    const pollMs = Math.floor(ROLL_CALL_MS / ROLL_CALL_LOOKS);
    await assert.rejects(world.open(1, undefined, { pollMs: pollMs + 1 }), /misses roll calls/);
    const { metadata } = await world.open(2, undefined, { pollMs });
    await metadata.close();
    assert.ok(METADATA_POLL_MS <= pollMs);
  });

  test("listeners learn what changed; one that throws harms nobody", async () => {
    const world = new MetadataWorld();
    const { metadata, lines } = await world.open(1);
    const seen: string[] = [];
    metadata.onChange(() => {
      throw new Error("broken listener");
    });
    const stop = metadata.onChange(({ topics, nodes }) => {
      seen.push(`${[...topics].join()}|${nodes}|${metadata.view().topicIds.has("t")}`);
    });
    await world.drive(metadata.submit(register(1)));
    await world.drive(metadata.submit(createTopic("t")));
    stop();
    await world.drive(metadata.submit(put("k")));
    assert.deepEqual(seen, ["|true|false", `${TOPIC}|false|true`]);
    assert.ok(lines.some(({ event }) => event === "metadata-listener-failed"));
  });

  test("close refuses what waits and what comes", async () => {
    const world = new MetadataWorld();
    const { metadata } = await world.open(1);
    const waiting = [metadata.submit(put("a")), metadata.fresh()];
    const refused = Promise.allSettled(waiting);
    await world.drive(metadata.close());
    for (const one of await refused) {
      assert.ok(one.status === "fulfilled" || isFault(one.reason));
    }
    await assert.rejects(metadata.submit(put("b")), (error) => isFault(error, "closed"));
    await assert.rejects(metadata.fresh(), (error) => isFault(error, "closed"));
  });
});

describe("faults", () => {
  test("fault 15: the answer of an append is lost, another node appends the next entry", async () => {
    const world = new MetadataWorld();
    const one = await world.open(1, faultOnCall(1, { kind: "lose-answer" }, ["put"]));
    const other = await world.open(2);
    const waiting = one.metadata.submit(put("k"));
    await world.clock.settle();
    await world.drive(other.metadata.submit(put("l")));
    const decided = await world.drive(waiting);
    assert.deepEqual(decided, { ok: true, at: 1 });
    await world.drive(one.metadata.fresh());
    assert.deepEqual(dumpOf(one.metadata), dumpOf(other.metadata));
    assert.deepEqual(one.metadata.view().kv.get("k")?.version, 1);
    await checkLog(world);
  });

  test("fault 16: a busy answer is tried again with the same bytes, never reported as a conflict", async () => {
    const world = new MetadataWorld();
    const busy: FaultPlan = ({ op, number }) =>
      op === "put" && number < 12 ? { kind: "fail" } : undefined;
    const one = await world.open(1);
    one.store.setPlan(busy);
    assert.deepEqual(await world.drive(one.metadata.submit(put("k"))), { ok: true, at: 1 });
    assert.equal((await world.log()).size, 1);
  });

  test("no answer within the deadline: time-out, the position is not skipped, a late put wins it", async () => {
    const world = new MetadataWorld();
    const one = await world.open(1);
    one.store.setPlan(({ op }) => op === "put" ? { kind: "late", delayMs: 40_000 } : undefined);
    const lost = one.metadata.submit(put("lost"));
    await assert.rejects(world.drive(lost, 500), (error) => isFault(error, "timeout"));
    one.store.setPlan();
    await world.clock.advance(60_000);
    assert.deepEqual(await world.drive(one.metadata.submit(put("k"))), { ok: true, at: 2 });
    assert.equal(one.metadata.view().kv.get("lost")?.version, 1, "the first occupant is applied");
    await checkLog(world);
  });

  test("no answer within the deadline: the next command takes the position, the late put loses", async () => {
    const world = new MetadataWorld();
    const one = await world.open(1);
    one.store.setPlan(({ op }) => op === "put" ? { kind: "late", delayMs: 90_000 } : undefined);
    const lost = one.metadata.submit(put("lost"));
    await assert.rejects(world.drive(lost, 500), (error) => isFault(error, "timeout"));
    one.store.setPlan();
    assert.deepEqual(await world.drive(one.metadata.submit(put("k"))), { ok: true, at: 1 });
    await world.clock.advance(120_000);
    await world.drive(one.metadata.fresh());
    assert.equal(one.metadata.view().kv.has("lost"), false);
    await checkLog(world);
  });

  test("a store that refuses us is reported at once", async () => {
    const world = new MetadataWorld();
    const one = await world.open(1);
    const denied: FaultPlan = ({ op }) =>
      op === "put" ? { kind: "fail", code: "store-full" } : undefined;
    one.store.setPlan(denied);
    const failing = one.metadata.submit(put("k"));
    await assert.rejects(world.drive(failing), (error) => isFault(error));
    one.store.setPlan();
    assert.equal((await world.drive(one.metadata.submit(put("k")))).ok, true);
  });

  test("a damaged entry stops the replica where it is", async () => {
    const world = new MetadataWorld();
    const one = await world.open(1);
    await world.base.put(logKey(CLUSTER, position(1)), new Uint8Array(50));
    const failing = one.metadata.submit(put("k"));
    await assert.rejects(world.drive(failing), (error) => isFault(error, "corrupt"));
    await assert.rejects(world.open(2), (error) => isFault(error, "corrupt"));
    assert.equal(one.metadata.view().at, 0);
  });
});

/** Enough entries for `count` snapshots. */
async function fill(world: MetadataWorld, { metadata }: Opened, count: number): Promise<void> {
  for (let i = 0; i < count * 500; i++) {
    const version = metadata.view().kv.get("n")?.version ?? 0;
    await metadata.submit(put("n", version));
  }
  await world.drive(metadata.fresh());
  await world.clock.settle();
}

describe("snapshots and trim", () => {
  test("one every 500 entries; a start reads the newest and the tail", async () => {
    const world = new MetadataWorld();
    const one = await world.open(1);
    await fill(world, one, 2);
    await one.metadata.submit(put("tail"));
    assert.deepEqual(await keysOf(world.base, snapshotPrefix(CLUSTER)), [
      snapshotKey(CLUSTER, position(500)),
      snapshotKey(CLUSTER, position(1_000)),
    ]);
    const again = await world.open(2);
    assert.deepEqual(dumpOf(again.metadata), dumpOf(one.metadata));
    assert.equal(logCalls(again, "get"), 16);
  });

  test("fault 24: a corrupt snapshot means the one before, a longer tail and an alarm", async () => {
    const world = new MetadataWorld();
    const one = await world.open(1);
    await fill(world, one, 2);
    const newest = snapshotKey(CLUSTER, position(1_000));
    const bytes = (await world.base.get(newest))!.bytes;
    await world.base.put(newest, bytes.subarray(0, bytes.length / 2));
    const again = await world.open(2);
    assert.deepEqual(dumpOf(again.metadata), dumpOf(one.metadata));
    assert.ok(
      again.lines.some(({ event, level }) => event === "snapshot-corrupt" && level === "error"),
    );
    // Without the entries in between it would be a loss, and is said to be one.
    await world.base.delete([logKey(CLUSTER, position(700))]);
    await assert.rejects(world.open(3), (error) => isFault(error, "corrupt"));
    const oldest = snapshotKey(CLUSTER, position(500));
    await world.base.put(oldest, new Uint8Array(3));
    await world.base.delete([logKey(CLUSTER, position(1))]);
    await assert.rejects(world.open(3), (error) => isFault(error, "corrupt"));
  });

  test("a snapshot that cannot be written is tried again later, and harms nothing", async () => {
    const world = new MetadataWorld();
    const one = await world.open(1);
    one.store.setPlan(({ op, key }) =>
      op === "put" && key.includes("/snap/") ? { kind: "fail", code: "store-denied" } : undefined
    );
    await fill(world, one, 1);
    await world.clock.advance(120_000);
    one.store.setPlan();
    await fill(world, one, 1);
    assert.equal((await keysOf(world.base, snapshotPrefix(CLUSTER))).length, 1);
    assert.ok(one.lines.some(({ event }) => event === "snapshot-failed"));
  });

  test("other bounds: a snapshot every 100 entries, and a trim after two minutes", async () => {
    const world = new MetadataWorld();
    const bounds = { snapshotEntries: 100, trimAgeMs: 120_000 };
    const one = await world.open(1, undefined, bounds);
    await fill(world, one, 1);
    const first = [100, 200, 300, 400, 500].map((at) => snapshotKey(CLUSTER, position(at)));
    assert.deepEqual(await keysOf(world.base, snapshotPrefix(CLUSTER)), first);
    await world.clock.advance(119_000);
    await fill(world, one, 1);
    assert.equal((await world.log()).size, 1_000, "too young to trim");
    await world.clock.advance(121_000);
    await fill(world, one, 2);
    assert.equal(Math.min(...(await world.log()).keys()), 1_001, "the last one that is old enough");
    const again = await world.open(2);
    assert.deepEqual(dumpOf(again.metadata), dumpOf(one.metadata));
  });

  test("fault 23: a node that was away while the log was trimmed loads the snapshot", async () => {
    const world = new MetadataWorld();
    const one = await world.open(1);
    const away = await world.open(2);
    await world.drive(away.metadata.submit(put("own")));
    await world.drive(one.metadata.fresh());
    await fill(world, one, 3);
    assert.equal((await world.log()).size, 1_501, "too young to trim");
    await world.clock.advance(25 * HOUR_MS);
    await fill(world, one, 1);
    const log = await world.log();
    assert.equal(Math.min(...log.keys()), 1_001, "two snapshots newer than the boundary stay");
    assert.equal((await keysOf(world.base, snapshotPrefix(CLUSTER))).length, 3);
    // The absent node's next append meets a free name below the boundary, and is not fooled.
    const decided = await world.drive(away.metadata.submit(put("late")));
    assert.deepEqual(decided, { ok: true, at: 2_002 });
    await world.drive(one.metadata.fresh());
    assert.deepEqual(dumpOf(away.metadata), dumpOf(one.metadata));
    const again = await world.open(3);
    assert.deepEqual(dumpOf(again.metadata), dumpOf(one.metadata));
  });

  test("a ghost below the boundary is neither believed nor read, and the next trim deletes it", async () => {
    const world = new MetadataWorld();
    const one = await world.open(1);
    const away = await world.open(2);
    await fill(world, one, 3);
    await world.clock.advance(25 * HOUR_MS);
    await fill(world, one, 1);
    // A put of entry 1 that was on its way all the time lands now.
    const ghost = (await world.open(9)).metadata;
    await ghost.close();
    await world.base.put(logKey(CLUSTER, position(1)), new Uint8Array(10));
    await world.drive(away.metadata.fresh());
    assert.deepEqual(dumpOf(away.metadata), dumpOf(one.metadata));
    await world.clock.advance(25 * HOUR_MS);
    await fill(world, one, 1);
    assert.equal((await world.log()).has(1), false);
  });

  test("the store's clock counts when the own one stood still", async () => {
    const world = new MetadataWorld();
    const one = await world.open(1);
    const frozen = { ...world.clock, monotonicMs: () => 1 };
    const env = { ...one.env, clock: frozen };
    const away = await world.open(2, undefined, { env });
    await world.drive(away.metadata.submit(put("own")));
    await world.drive(one.metadata.fresh());
    await fill(world, one, 3);
    await world.clock.advance(25 * HOUR_MS);
    await fill(world, one, 1);
    const decided = await world.drive(away.metadata.submit(put("late")));
    assert.deepEqual(decided, { ok: true, at: 2_002 });
  });

  test("when all own clocks stood still, a look in doubt finds the end behind a trim; without doubt it cannot", async () => {
    const world = new MetadataWorld();
    const one = await world.open(1);
    const frozen = { ...world.clock, monotonicMs: () => 1, nowMs: () => 1_700_000_000_000 };
    const away = await world.open(2, undefined, { env: { ...one.env, clock: frozen } });
    await fill(world, one, 3);
    await world.clock.advance(25 * HOUR_MS);
    await fill(world, one, 1);
    const { at } = one.metadata.view();
    assert.equal((await world.drive(away.metadata.fresh())).at, 0, "every name is free");
    assert.equal((await world.drive(away.metadata.fresh(true))).at, at);
    assert.deepEqual(dumpOf(away.metadata), dumpOf(one.metadata));
  });
});

/** Delays, failures and lost answers of a seed. */
function weather(seed: number): FaultPlan {
  const random = seededRandom(seed);
  return () => {
    const draw = randomInt(random, 20);
    if (draw < 2) return { kind: "lose-answer" };
    if (draw < 4) return { kind: "fail" };
    return draw < 12 ? { kind: "delay", delayMs: randomInt(random, 30) } : undefined;
  };
}

/** Submits until the outcome is known; a command whose outcome is unknown is not asked again. */
async function run(
  opened: Opened,
  commands: readonly Command[],
): Promise<{ at: number; key: string }[]> {
  const reported: { at: number; key: string }[] = [];
  for (const command of commands) {
    try {
      const decided = await opened.metadata.submit(command);
      if (decided.ok && command.type === "put-kv") {
        reported.push({ at: decided.at, key: command.key });
      }
    } catch (error) {
      if (!isFault(error)) throw error;
    }
  }
  return reported;
}

describe("races", () => {
  test("two nodes on one store: one image, one log, each command once", async () => {
    await fc.assert(
      fc.asyncProperty(fc.integer({ min: 1, max: 2 ** 30 }), async (seed) => {
        const world = new MetadataWorld(seed);
        const nodes = [await world.open(1), await world.open(2)];
        for (const [i, { store }] of nodes.entries()) store.setPlan(weather(seed + i));
        const work = nodes.map((opened, n) =>
          run(opened, [
            register(n),
            ...Array.from({ length: 8 }, (_, i) => put(i % 4 === 0 ? `both${i}` : `own${n}.${i}`)),
          ])
        );
        const reports = await world.drive(Promise.all(work), 20);
        for (const { store } of nodes) store.setPlan();
        for (const { metadata } of nodes) await world.drive(metadata.fresh());
        assert.deepEqual(dumpOf(nodes[0]!.metadata), dumpOf(nodes[1]!.metadata));
        await checkLog(world);
        const log = await world.log();
        const flat = reports.flat();
        const told = flat.map(({ at }) => ({ at, bytes: log.get(at)! }));
        assert.equal(reportsHold(told, log), null);
        for (const { at, key } of flat) {
          const written = decodeEntry(log.get(at)!).records;
          assert.equal(written.filter((r) => r.type === "kv-put" && r.key === key).length, 1);
          assert.equal(flat.filter((one) => one.key === key).length, 1, "one winner");
          assert.equal(nodes[0]!.metadata.view().kv.get(key)?.version, 1);
        }
        for (const { metadata } of nodes) await world.drive(metadata.close());
      }),
      { numRuns: 25 },
    );
  });
});

describe("crashes", () => {
  const commands = [register(1), createTopic("t"), put("a"), put("b"), put("a", 1)];

  /** A process that dies at its n-th store call: that call happens or not, and no later one does. */
  function deathAt(nth: number, happens: boolean): FaultPlan {
    return ({ number }) => {
      if (number < nth) return undefined;
      return number === nth && happens
        ? { kind: "lose-answer", code: "store-denied" }
        : { kind: "fail", code: "store-denied" };
    };
  }

  for (const happens of [true, false]) {
    test(`at every store call, ${happens ? "after" : "before"} its effect`, async () => {
      for (let nth = 1, survived = false; !survived; nth++) {
        const world = new MetadataWorld(nth);
        let reported: { at: number; key: string }[] = [];
        try {
          const victim = await world.open(1, deathAt(nth, happens));
          reported = await world.drive(run(victim, commands));
          survived = victim.store.calls.length < nth;
          await world.drive(victim.metadata.close());
        } catch (error) {
          if (!isFault(error)) throw error;
        }
        const heir = await world.open(1);
        for (const { key } of reported) {
          assert.ok(heir.metadata.view().kv.has(key), `crash ${nth}: ${key} is gone`);
        }
        for (const command of commands) {
          assert.equal(typeof (await world.drive(heir.metadata.submit(command))).ok, "boolean");
        }
        assert.equal(heir.metadata.view().kv.has("b"), true);
        await checkLog(world);
        assert.ok(nth < 100, "the loop does not end");
      }
    });
  }
});
