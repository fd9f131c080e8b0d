/** A node that nobody writes to costs nothing: no PUT, whatever its consumers do, from 15 minutes after the last write. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { GroupMember } from "../quirks/group_member.ts";
import { batch, Quirks } from "../quirks/quirks.ts";
import { drive, FaultWorld } from "./world.ts";

const MINUTE_MS = 60_000;
const BEAT_MS = 5_000;
const GROUPS = 10;

/** A consumer at the end of its partition: it heartbeats, polls empty, and commits the same offset for ever. */
class IdleConsumer {
  readonly #q: Quirks;
  readonly #group: string;
  readonly #member: GroupMember;
  readonly #end: number;

  constructor(world: FaultWorld, group: string, end: number) {
    this.#q = new Quirks(world.q.node);
    this.#group = group;
    this.#end = end;
    this.#member = new GroupMember(this.#q, { group });
  }

  async join(): Promise<void> {
    assert.equal((await this.#member.enter()).error, "NONE");
    assert.equal((await this.#member.sync()).error, "NONE");
  }

  async beat(): Promise<void> {
    assert.equal(await this.#member.beat(), "NONE");
    assert.equal((await this.#q.fetch("t", this.#end)).error, "NONE");
    const { generation, id: memberId } = this.#member;
    const committed = this.#q.commit(this.#group, "t", this.#end, { generation, memberId });
    assert.equal(await committed, "NONE");
  }
}

test("no PUT in an hour with ten groups that heartbeat, poll and commit what they have", async () => {
  const world = new FaultWorld();
  const q = await world.start();
  await drive(world.clock, q.topic("t"));
  const written = batch(Array.from({ length: 100 }, (_, i) => `v${i}`));
  assert.equal((await drive(world.clock, q.produce("t", written))).error, "NONE");
  const consumers = Array.from(
    { length: GROUPS },
    (_, i) => new IdleConsumer(world, `idle-${i}`, 100),
  );
  await Promise.all(consumers.map((consumer) => drive(world.clock, consumer.join())));

  const run = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += BEAT_MS) {
      await world.clock.advance(BEAT_MS);
      await drive(world.clock, Promise.all(consumers.map((consumer) => consumer.beat())));
    }
  };
  await run(15 * MINUTE_MS);
  const writes = () => world.store.count("put") + world.store.count("putParts");
  const before = writes();
  assert.ok(before > 0);
  await run(60 * MINUTE_MS);
  assert.deepEqual(
    world.store.calls.filter(({ op }) => op === "put" || op === "putParts").slice(before),
    [],
  );
});
