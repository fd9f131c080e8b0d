/**
 * Crashes of the whole node between two steps that a partition's state consists of, one story each; the random runs
 * meet them too (`checker/wal_watch.ts` counts them), and `src/log/recovery_*.test.ts` tells them of the log alone.
 */
import assert from "node:assert/strict";
import { test } from "node:test";
import { utf8 } from "../../src/lib/bytes.ts";
import { RecoveryWorld } from "./recovery_world.ts";

const ROLLING = { "segment.ms": "1000" };
/** Past `segment.ms`, so that the next record begins a segment. */
const ROLL_MS = 1_500;

/** Rolls with one more record, and waits until a snapshot is in the store. */
async function snapshot(story: RecoveryWorld, id: string): Promise<void> {
  await story.world.run(ROLL_MS);
  const before = story.count("PRODUCER_SNAPSHOTS");
  assert.equal((await story.produce([id])).error, "NONE");
  if (story.count("PRODUCER_SNAPSHOTS") === before) await story.untilLanded("PRODUCER_SNAPSHOTS");
}

test("Fluss 1386: a producer that is forgotten, a snapshot without it, a crash", async () => {
  const story = new RecoveryWorld({
    "producer.id.expiration.ms": "60000",
    "log.retention.check.interval.ms": "2000",
  });
  await story.begin(ROLLING);
  const who = { producerId: 4_000, producerEpoch: 3 };
  const first = await story.produce(["a"], { ...who, baseSequence: 17_871 });
  assert.deepEqual(first, { error: "NONE", baseOffset: 0 });
  await story.world.run(120_000);
  await snapshot(story, "b");
  await story.crash();
  assert.deepEqual(await story.read(true), ["a", "b"]);
  const next = await story.produce(["c"], { ...who, baseSequence: 17_872 });
  assert.deepEqual(next, { error: "NONE", baseOffset: 2 });
  story.over();
});

test("between acknowledgement and snapshot: all is there, a repeated batch is known", async () => {
  const story = new RecoveryWorld();
  await story.begin();
  await story.initialise();
  const offset = await story.write(["a", "b"]);
  const before = story.count("PRODUCER_SNAPSHOTS");
  await story.crash();
  assert.equal(story.count("PRODUCER_SNAPSHOTS"), before, "nothing but the log remembers it");
  assert.deepEqual(await story.repeat(["a", "b"]), { error: "NONE", offset });
  assert.deepEqual(await story.marks(), { stable: offset, watermark: offset + 2 });
  await story.end(true);
  await story.world.run(1_000);
  assert.deepEqual(await story.read(true), ["a", "b"]);
  story.over();
});

for (const commit of [true, false]) {
  const word = commit ? "commit" : "abort";
  test(`between the marker of a ${word} and snapshot: it has ended`, async () => {
    const story = new RecoveryWorld();
    await story.begin();
    await story.initialise();
    await story.write(["a"]);
    const dying = story.dieWhen("marker");
    const ending = story.client.end(commit);
    await dying;
    await story.crash();
    assert.equal((await story.drive(ending))?.error, "NONE");
    await story.world.run(1_000);
    const { stable, watermark } = await story.marks();
    assert.equal(stable, watermark);
    assert.deepEqual(await story.read(true), commit ? ["a"] : []);
    assert.deepEqual(await story.read(false), ["a"]);
    await story.write(["b"]);
    await story.end(true);
    await story.world.run(1_000);
    assert.deepEqual(await story.read(true), commit ? ["a", "b"] : ["b"]);
    story.over();
  });
}

test("an open transaction over a snapshot: it is open after a crash, and can be committed", async () => {
  const story = new RecoveryWorld();
  await story.begin(ROLLING);
  await story.initialise();
  const offset = await story.write(["a"]);
  await snapshot(story, "b");
  await story.crash();
  assert.equal((await story.marks()).stable, offset);
  assert.deepEqual(await story.read(true), []);
  await story.end(true);
  await story.world.run(1_000);
  assert.deepEqual(await story.read(true), ["a", "b"]);
  story.over();
});

test("between snapshot and trim: what retention took stays away, the rest is there", async () => {
  const story = new RecoveryWorld();
  await story.begin({ ...ROLLING, "retention.bytes": "200" });
  await story.initialise();
  await story.write(["a"]);
  await story.end(false);
  const isTrimmed = (value: Uint8Array) => (JSON.parse(utf8(value)) as { s: number }).s > 0;
  const dying = story.dieWhen("PARTITION", isTrimmed);
  for (const id of ["b", "c", "d"]) {
    await story.world.run(ROLL_MS);
    if (story.cluster.processes().length > 0) void story.produce([id]).catch(() => {});
  }
  await dying;
  await story.crash();
  const found = await story.read(false);
  assert.ok(found.length > 0 && !found.includes("a"), found.join(" "));
  assert.deepEqual(await story.read(true), found);
  await story.initialise();
  await story.write(["e"]);
  await story.end(true);
  await story.world.run(1_000);
  assert.equal((await story.read(true)).at(-1), "e");
  story.over();
});

/** Of a pass of topic compaction in LOG: its stream has a name, and, after the swap, a segment that uses it. */
const PASS: ReadonlyMap<string, (log: string) => boolean> = new Map([
  ["its stream is named", (log) => log.includes("log.cleaned.") && !log.includes('"s":".cleaned')],
  ["the swap is stored", (log) => log.includes('"s":".cleaned')],
]);

for (const [when, is] of PASS) {
  test(`topic compaction dies when ${when}: the newest of a key is there, and no stream is left`, async () => {
    const story = new RecoveryWorld();
    const configs = { "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01" };
    await story.begin({ ...ROLLING, ...configs });
    await story.initialise();
    await story.write(["a", "b"]);
    await story.end(true);
    // It begins a segment: those before it can be compacted.
    await story.world.run(ROLL_MS);
    await story.produce(["c"]);
    await story.dieWhen("LOG", (value) => is(utf8(value)));
    await story.crash();
    assert.equal((await story.read(true)).at(-1), "c");
    await story.world.run(ROLL_MS);
    await story.produce(["d"]);
    await story.world.run(120_000);
    const left = await story.read(true);
    assert.deepEqual(left, ["c", "d"], "only the newest segment is not compacted");
    story.checkStreams();
    story.over();
  });
}

test("another node id takes over: open transaction, producer and end are its own now", async () => {
  const story = new RecoveryWorld();
  await story.begin(ROLLING);
  await story.initialise();
  const offset = await story.write(["a"]);
  await snapshot(story, "b");
  await story.write(["c"]);
  await story.crash(2);
  // Nobody answers the roll call of the new one.
  await story.world.run(60_000);
  assert.equal((await story.marks()).stable, offset);
  assert.deepEqual(await story.repeat(["c"]), { error: "NONE", offset: offset + 2 });
  await story.end(true);
  await story.world.run(1_000);
  assert.deepEqual(await story.read(true), ["a", "b", "c"]);
  story.over();
});
