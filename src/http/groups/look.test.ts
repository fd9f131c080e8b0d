import assert from "node:assert/strict";
import { test } from "node:test";
import type { GroupLeases } from "../../broker/group/lease/group_leases.ts";
import type { LeaseChange } from "../../broker/group/lease/leases.ts";
import { acknowledge, lease, type LeaseWindow, windowAt } from "../../broker/group/lease/window.ts";
import { createFakeClock } from "../../../tests/support/fake_clock.ts";
import type { ReadAnswer, RecordOutput } from "../port.ts";
import type { ReadGateway } from "../read_port.ts";
import { look, type LookAsk } from "./look.ts";

const TOPIC_ID = "0123456789abcdef0123456789abcdef";
const AT = { topic: "t", topicId: TOPIC_ID, partition: 0 };
const END = 10;

function record(offset: number): RecordOutput {
  return { offset, timestampMs: 1, key: null, value: null, headers: [] };
}

/** One partition that holds 0 to 9; `during` happens while it is read. */
function setup(window: LeaseWindow, during: (rig: Rig) => void = () => {}) {
  const clock = createFakeClock();
  const gone = new AbortController();
  let held = 0;
  const rig = { window, gone, changes: [] as LeaseChange[], locks: 0 };
  const gateway = {
    peekEnd: () => END,
    read: (_topic: string, _partition: number, { offset }: { offset: number }) => {
      during(rig);
      held += 1;
      const records = Array.from({ length: END - offset }, (_, i) => record(offset + i));
      const answer: ReadAnswer = {
        ok: true,
        records,
        next: END,
        oversized: null,
        highWatermark: END,
        logStart: 0,
        topicId: TOPIC_ID,
        fixedBelow: END,
        release: () => void (held -= 1),
      };
      return Promise.resolve(answer);
    },
  } as unknown as ReadGateway;
  const leases = {
    refusal: null,
    windowOf: () => rig.window,
    isAging: () => false,
    polled: () => 0,
    setTurn: () => {},
    tryLock: () => (rig.locks += 1) === 1,
    unlock: (list: readonly unknown[]) => void (rig.locks -= list.length),
    change: (changes: readonly LeaseChange[]) => {
      rig.changes.push(...changes);
      return Promise.resolve();
    },
  } as unknown as GroupLeases;
  const ask: LookAsk = {
    partitions: [AT],
    query: {
      recordsMax: 100,
      bytesMax: 1_000_000,
      isolation: "uncommitted",
      signal: gone.signal,
      shown: { encoding: "auto", isInLine: false },
      filter: null,
    },
    holder: 9,
    leaseMs: 1_000,
    autoCommit: false,
    isOrdered: false,
    from: "earliest",
  };
  return { rig, ask, clock, heldPages: () => held, services: { gateway, leases, clock } };
}
interface Rig {
  window: LeaseWindow;
  readonly gone: AbortController;
}

test("a client that goes away while its page is on the way has leased nothing", async () => {
  const { services, ask, rig, heldPages } = setup(
    windowAt(TOPIC_ID, 0),
    ({ gone }) => gone.abort(),
  );
  const { delivered } = await look(services, ask);
  assert.deepEqual([delivered, rig.changes, rig.locks, heldPages()], [[], [], 0, 0]);
});

test("when the group's log takes nothing, the page goes back and the partition is free", async () => {
  const { services, ask, rig, heldPages } = setup(windowAt(TOPIC_ID, 0));
  const change = () => {
    throw new Error("full");
  };
  await assert.rejects(
    look({ ...services, leases: Object.assign(services.leases, { change }) }, ask),
    /full/,
  );
  assert.deepEqual([rig.locks, heldPages()], [0, 0]);
});

test("what was acknowledged while it was read is looked at again", async () => {
  const before = lease(windowAt(TOPIC_ID, 0), { first: 0, last: 3 }, 1, -1);
  const { services, ask, rig } = setup(before, (one) => {
    one.window = acknowledge(before, 1, { first: 0, last: 1 }).window;
  });
  const first = await look(services, ask);
  assert.deepEqual([first.delivered, first.hasMoved, rig.changes], [[], true, []]);
  const second = await look(services, ask);
  assert.deepEqual(second.delivered.map(({ range }) => range), [{ first: 2, last: 9 }]);
});

test("only what is free is given out: a page ends where somebody holds the next record", async () => {
  const held = lease(windowAt(TOPIC_ID, 0), { first: 0, last: 3 }, 1, -1);
  const window = lease(held, { first: 2, last: 3 }, 2, 2 ** 50);
  const { services, ask, rig, heldPages } = setup(window);
  const found = await look(services, ask);
  const [delivered] = found.delivered;
  assert.deepEqual(delivered!.range, { first: 0, last: 1 });
  assert.deepEqual(delivered!.records.map(({ offset }) => offset), [0, 1]);
  assert.equal(rig.changes.length, 1);
  assert.equal(heldPages(), 1);
  found.release();
  assert.equal(heldPages(), 0);
});
