/**
 * The newest objects of the metadata log are gone: a disk that lied, a copy that was taken too early, a hand
 * that deleted. A start finds out, says so and writes nothing; or what was lost did not matter. Positions,
 * epochs and ids are never given out twice, and nothing that was acknowledged disappears in silence.
 */
import assert from "node:assert/strict";
import { before, describe, test } from "node:test";
import { exitCodeOf } from "../../src/cli/exit.ts";
import { nodeId, objectId, position } from "../../src/lib/brand.ts";
import { FaultError, isFault } from "../../src/lib/errors.ts";
import {
  dataKey,
  logPrefix,
  parseLogKey,
  parseSnapshotKey,
  snapshotPrefix,
  walKey,
} from "../../src/object/object_key.ts";
import { nodeEpoch } from "../../src/lib/brand.ts";
import { batch } from "../quirks/quirks.ts";
import { addSnapshot, type Content, contentOf, stateOf, storeOf } from "../support/stored_world.ts";
import { drive, FaultWorld } from "./world.ts";

const QUICK = { "skerry.upload.interval.ms": "1000" };

/** A store as some lives of a node left it, and what clients were told is in it. */
interface Left {
  readonly content: Content;
  readonly values: readonly string[];
  readonly clusterId: string;
  readonly at: number;
}

async function leave(
  kafka: Readonly<Record<string, string>>,
  lives: readonly ("stopped" | "killed")[],
): Promise<Left> {
  const world = new FaultWorld({ kafka });
  const values: string[] = [];
  for (const end of lives) {
    const q = await world.start();
    if (values.length === 0) await drive(world.clock, q.topic("t"));
    for (let i = 0; i < 3; i++) {
      const value = `v${values.length}`;
      assert.equal((await drive(world.clock, q.produce("t", batch([value])))).error, "NONE");
      values.push(value);
      await world.clock.advance(1_500);
    }
    if (end === "stopped") await drive(world.clock, q.node.close());
    else world.kill();
  }
  const content = await contentOf(world.bucket);
  const { clusterId } = world.q.node.node;
  return { content, values, clusterId, at: (await stateOf(content)).at };
}

function without(left: Left, from: number): Content {
  const copy: Content = new Map(left.content);
  for (const key of left.content.keys()) {
    const at = parseLogKey(left.clusterId, key) ?? parseSnapshotKey(left.clusterId, key);
    if (at !== null && at >= from) copy.delete(key);
  }
  return copy;
}

type Outcome = "refused" | "whole" | "lost";

/** A start of the node on what is left, and what its clients read then. */
async function outcomeOf(left: Left, content: Content): Promise<Outcome> {
  const world = new FaultWorld({ bucket: await storeOf(content), seed: 50 });
  try {
    await world.start();
  } catch (error) {
    assert.ok(isFault(error, "data-loss") || isFault(error, "corrupt"), String(error));
    assert.equal(exitCodeOf(error), 5);
    return "refused";
  }
  const found = await readAll(world, left.values.length);
  await drive(world.clock, world.q.node.close());
  return found.join() === left.values.join() ? "whole" : "lost";
}

async function readAll(world: FaultWorld, most: number): Promise<string[]> {
  try {
    return (await world.values("t")).slice(0, most);
  } catch (error) {
    if (error instanceof FaultError) throw error;
    return [];
  }
}

/**
 * Nothing bears witness to the very last entry of this one: it names the partition's meta stream, and a crash
 * right before it leaves the same. It shows at most until the first upload.
 */
const UNSEEN = "killed, all in the WAL";

const LIVES = [
  [UNSEEN, {}, ["killed"]],
  ["killed after uploads", QUICK, ["killed"]],
  ["stopped", {}, ["stopped"]],
  ["stopped after uploads", QUICK, ["stopped"]],
  ["stopped, then killed", QUICK, ["stopped", "killed"]],
  ["killed, then stopped", {}, ["killed", "stopped"]],
  ["killed three times", QUICK, ["killed", "killed", "killed"]],
] as const;

describe("however many of the newest entries are gone, nothing is lost in silence", () => {
  for (const [name, kafka, lives] of LIVES) {
    test(name, async () => {
      const left = await leave(kafka, lives);
      assert.equal(await outcomeOf(left, left.content), "whole", "nothing is gone");
      const outcomes: string[] = [];
      for (let from = left.at; from >= 1; from--) {
        outcomes.push(`${from}: ${await outcomeOf(left, without(left, from))}`);
      }
      const lost = outcomes.filter((one) => one.endsWith("lost"));
      assert.deepEqual(lost, name === UNSEEN ? [`${left.at}: lost`] : []);
      assert.equal(outcomes.at(-1), "1: refused", "an empty log");
    });
  }
});

describe("each witness alone", () => {
  let left: Left;
  before(async () => void (left = await leave({}, ["killed"])));

  async function refusal(change: (content: Content) => void): Promise<string> {
    const content: Content = new Map(left.content);
    change(content);
    const bucket = await storeOf(content);
    const world = new FaultWorld({ bucket, seed: 60 });
    const error = await world.start().then(() => null, (failed: unknown) => failed);
    assert.ok(isFault(error, "data-loss"), String(error));
    assert.deepEqual([...(await contentOf(bucket)).keys()], [...content.keys()].toSorted());
    return error.message;
  }

  test("an entry behind a gap", async () => {
    const key = `${logPrefix(left.clusterId)}${String(left.at - 1).padStart(20, "0")}`;
    const message = await refusal((content) => void content.delete(key));
    assert.match(message, new RegExp(`ends at entry ${left.at - 2}, but .*is there, and the one`));
  });

  test("a WAL of an epoch that never registered", async () => {
    const later = { nodeId: nodeId(1), nodeEpoch: nodeEpoch(left.at + 3), slot: 0 };
    const key = walKey(left.clusterId, later);
    const message = await refusal((content) => void content.set(key, new Uint8Array(48)));
    assert.match(message, /epoch \d+, which never registered/);
    assert.ok(message.includes(key));
  });

  test("an object whose id was never reserved", async () => {
    const { nextObjectId } = await stateOf(left.content);
    const key = dataKey(left.clusterId, objectId(nextObjectId));
    const message = await refusal((content) => void content.set(key, new Uint8Array(9)));
    assert.match(message, /has an id that was never reserved/);
  });
});

test("a snapshot that is lost with the entries above it is a shorter log, and found out like one", async () => {
  const left = await leave(QUICK, ["killed", "stopped"]);
  const content: Content = new Map(left.content);
  const snapshot = await addSnapshot(content);
  assert.ok(snapshot.startsWith(snapshotPrefix(left.clusterId)));
  assert.equal(await outcomeOf(left, content), "whole");
  content.delete(snapshot);
  assert.equal(await outcomeOf(left, content), "whole", "the log stands in for it");
  assert.notEqual(await outcomeOf(left, without({ ...left, content }, left.at - 1)), "lost");
});

test("another node that goes on meanwhile is no loss", async () => {
  const first = new FaultWorld();
  await first.start();
  await drive(first.clock, first.q.topic("t"));
  const second = new FaultWorld({ clock: first.clock, bucket: first.bucket, seed: 70, nodeId: 2 });
  // Whatever the first writes in the middle of the second's look at the end of the log.
  let looks = 0;
  const starting = second.begin(({ op, key }) => {
    if (op === "list" && key === logPrefix(first.q.node.node.clusterId)) looks += 1;
    return op === "head" || op === "list" ? { kind: "delay", delayMs: 700 } : undefined;
  });
  for (let i = 0; i < 4; i++) {
    await first.clock.advance(300);
    await drive(first.clock, first.q.topic(`more${i}`));
  }
  await drive(first.clock, starting);
  assert.ok(looks > 0);
  await drive(first.clock, second.q.node.close());
  await drive(first.clock, first.q.node.close());
});

test("the check costs two listings and few HEADs, and writes nothing", async () => {
  const left = await leave(QUICK, ["killed"]);
  const world = new FaultWorld({ bucket: await storeOf(left.content), seed: 80 });
  await world.start();
  const { calls } = world.store;
  const registered = calls.findIndex(({ op, key }) => op === "put" && key.startsWith("meta/"));
  const before = calls.slice(0, registered);
  const count = (op: string) => before.filter((call) => call.op === op).length;
  assert.equal(count("put") + count("putParts") + count("delete"), 0);
  assert.ok(count("list") <= 4, `${count("list")} listings, two of them of snapshots`);
  assert.ok(count("head") <= 7, `${count("head")} HEADs`);
  assert.ok(position(left.at) > 0);
});

test("an upload that a crash left without its commit is no loss: its records are in the WAL", async () => {
  const world = new FaultWorld({ kafka: QUICK });
  const q = await world.start();
  await drive(world.clock, q.topic("t"));
  await drive(world.clock, q.produce("t", batch(["a"])));
  await world.clock.advance(3_000);
  let uploads = 0;
  world.store.setPlan(({ op, key }) => {
    if (op !== "put" || key.includes("/wal/")) return undefined;
    if (!key.startsWith("meta/")) uploads += 1;
    return key.startsWith("meta/") ? { kind: "hang", happens: false } : undefined;
  });
  await drive(world.clock, q.produce("t", batch(["b"])));
  await world.clock.advance(3_000);
  assert.ok(uploads > 0);
  world.kill();
  await world.start();
  assert.deepEqual(await world.values("t"), ["a", "b"]);
});
