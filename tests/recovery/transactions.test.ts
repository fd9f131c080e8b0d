/** Recovery scenarios 43-47: transactions that are open, ended, or half ended when the broker dies. */
import assert from "node:assert/strict";
import { drive } from "../faults/world.ts";
import { stateOf, TxnClient } from "../support/txn_client.ts";
import { scenario } from "./scenario.ts";
import { loseSnapshots, marker, operate } from "./surgery.ts";
import { isWalKey, type RecoveryWorld, sequenced } from "./world.ts";

const LONG = { kafka: { "transaction.max.timeout.ms": "7200000" } };
/** Outside of transactions, and without sequences. */
const PLAIN = { producerId: -1, epoch: -1 };

async function begun(w: RecoveryWorld, { isV2 = false, partitions = [0] } = {}) {
  const tx = new TxnClient({ call: w.call.bind(w) }, "tx", { isV2, timeoutMs: 900_000 });
  assert.equal(await tx.init(), "NONE");
  if (!isV2) assert.equal(await tx.add("t", partitions), "NONE");
  return tx;
}

async function stable(w: RecoveryWorld, partition = 0): Promise<number> {
  return await w.logEnd({ partition, committed: true });
}

scenario("43: an open transaction outlives expiry, snapshots and restarts", async (w, end) => {
  await w.topic();
  await w.send(0, 0, PLAIN);
  const caller = { call: w.call.bind(w) };
  const tx = new TxnClient(caller, "tx", { isV2: true, timeoutMs: 7_200_000 });
  await tx.init();
  assert.equal(await tx.produce("t", ["a", "b"]), "NONE");
  assert.equal(await w.send(0, 0, PLAIN), "@3");
  const open = [`${tx.producerId} e${tx.producerEpoch} s1 txn@1`];
  const isOpen = async () => {
    assert.deepEqual(await w.producers(), open);
    assert.equal(await stable(w), 1);
    assert.deepEqual(await w.committed(), ["0"]);
  };
  await w.idle();
  await isOpen();
  await w.restart("close");
  await isOpen();
  await w.idle();
  await w.restart(end);
  await isOpen();
  await w.end(end);
  await operate(w, loseSnapshots);
  await w.start();
  await isOpen();
  assert.equal(await tx.produce("t", ["c"]), "NONE");
  assert.equal(tx.lastOffset, 4);
  assert.equal(await tx.end(true), "NONE");
  await w.clock.settle();
  assert.deepEqual(await w.committed(), ["0", "a", "b", "0", "c"]);
}, LONG);

for (const isV2 of [false, true]) {
  const rules = isV2 ? "transactions v2" : "the old rules";

  scenario(
    `44: the marker lies behind the snapshot that has the transaction open, ${rules}`,
    async (w, end) => {
      await w.topic();
      const tx = await begun(w, { isV2 });
      assert.equal(await tx.produce("t", ["a", "b"]), "NONE");
      const aborted = [{ producerId: tx.producerId, firstOffset: 0 }];
      await w.restart("close");
      assert.equal(await stable(w), 0);
      assert.equal(await tx.end(false), "NONE");
      await w.clock.settle();
      assert.equal(await stable(w), 3);
      for (let i = 0; i < 3; i++) {
        await w.restart(end);
        assert.equal(await stable(w), 3);
        assert.deepEqual(await w.aborted(0), aborted);
        assert.deepEqual(await w.committed(), []);
        const lastSequence = isV2 ? -1 : 1;
        const line = `${tx.producerId} e${tx.producerEpoch} s${lastSequence}`;
        assert.deepEqual(await w.producers(), [line], "closed");
      }
    },
  );

  for (const commit of [true, false]) {
    for (const fate of ["lost", "stored"] as const) {
      const kind = commit ? "commit" : "abort";
      scenario(
        `45: a crash after a ${kind} was answered, its markers ${fate}, ${rules}`,
        async (w, end) => {
          await w.topic("t", 2);
          const tx = await begun(w, { isV2, partitions: [0, 1] });
          const epoch = tx.producerEpoch;
          for (const partition of [0, 1]) {
            assert.equal(await tx.produce("t", ["a"], { partition }), "NONE");
          }
          // The decision gets through and is answered; nobody hears of what follows.
          let seen = 0;
          w.setPlan(({ op, key }) => {
            if (op !== "put" || !isWalKey(key) || ++seen === 1) return undefined;
            return { kind: "hang", happens: fate === "stored" };
          });
          assert.equal(await tx.end(commit), "NONE");
          await w.clock.settle();
          assert.ok(seen > 1, "the markers are under way");
          for (const partition of [0, 1]) {
            assert.equal(
              await stable(w, partition),
              0,
              "a marker that is not confirmed ends nothing",
            );
          }
          await w.restart("kill");
          await w.clock.settle();
          for (let i = 0; i < 2; i++) {
            for (const partition of [0, 1]) {
              const { length } = await w.aborted(0, { partition });
              assert.equal(length, commit ? 0 : 1, "no second entry");
              assert.deepEqual(await w.committed({ partition }), commit ? ["a"] : []);
              const last = isV2 ? `e${epoch + 1} s-1` : `e${epoch} s0`;
              assert.deepEqual(await w.producers({ partition }), [`${tx.producerId} ${last}`]);
              assert.equal(await stable(w, partition), await w.logEnd({ partition }));
            }
            const expected = commit ? "CompleteCommit" : "CompleteAbort";
            assert.equal(await stateOf({ call: w.call.bind(w) }, "tx"), expected);
            await w.restart(end);
          }
        },
      );
    }
  }

  scenario(
    `45: one partition has its marker, the other not, when the coordinator dies, ${rules}`,
    async (w, end) => {
      await w.topic("t", 2);
      const tx = await begun(w, { isV2, partitions: [0, 1] });
      const { producerId, producerEpoch: epoch } = tx;
      for (const partition of [0, 1]) {
        assert.equal(await tx.produce("t", ["a"], { partition }), "NONE");
      }
      const marked = isV2 ? { epoch: epoch + 1, version: 2 as const } : { epoch };
      assert.equal(await w.mark({ producerId, ...marked }), "NONE");
      assert.deepEqual([await stable(w, 0), await stable(w, 1)], [2, 0]);
      await w.restart(end);
      assert.deepEqual([await stable(w, 0), await stable(w, 1)], [2, 0]);
      assert.equal(await tx.end(false), "NONE");
      await w.clock.settle();
      for (let i = 0; i < 2; i++) {
        // By the old rules the repeat is written, by those of v2 it is known.
        assert.deepEqual([await stable(w, 0), await stable(w, 1)], [isV2 ? 2 : 3, 2]);
        for (const partition of [0, 1]) {
          const expected = [{ producerId, firstOffset: 0 }];
          assert.deepEqual(await w.aborted(0, { partition }), expected);
          assert.deepEqual(await w.committed({ partition }), []);
        }
        await w.restart(end);
      }
    },
  );
}

scenario(
  "45: a crash before the decision is stored: the transaction is open, and can still go either way",
  async (w, end) => {
    await w.topic();
    const tx = await begun(w, { isV2: true });
    assert.equal(await tx.produce("t", ["a"]), "NONE");
    w.setPlan(({ op, key }) =>
      op === "put" && isWalKey(key) ? { kind: "hang", happens: false } : undefined
    );
    void tx.end(true).catch(() => {});
    await w.clock.settle();
    await w.restart("kill");
    await w.restart(end);
    assert.equal(await stable(w), 0);
    assert.equal(await stateOf({ call: w.call.bind(w) }, "tx"), "Ongoing");
    assert.equal(await tx.end(false), "NONE");
    await w.clock.settle();
    assert.deepEqual(await w.committed(), []);
    assert.equal(await stable(w), 2);
  },
  { memoryOnly: true },
);

scenario(
  "46: a marker of an older coordinator is replayed, and refused when it is new",
  async (w, end) => {
    await w.topic();
    const tx = await begun(w);
    const { producerId, producerEpoch: epoch } = tx;
    assert.equal(await tx.produce("t", ["a"]), "NONE");
    assert.equal(await w.mark({ producerId, epoch, coordinatorEpoch: 50 }), "NONE");
    await w.end(end);
    await operate(w, async (partition) => {
      const nowMs = w.clock.nowMs();
      await partition.append(sequenced(1, 1, nowMs, { producerId, epoch, transactional: true }));
      await partition.append(
        marker(nowMs, { producerId, producerEpoch: epoch, coordinatorEpoch: 20 }),
      );
    });
    await w.start();
    assert.equal(await stable(w), 4);
    assert.deepEqual((await w.aborted(0)).map(({ firstOffset }) => firstOffset), [0, 2]);
    assert.deepEqual(await w.committed(), []);
    const marked = (coordinatorEpoch: number) => w.mark({ producerId, epoch, coordinatorEpoch });
    assert.equal(await marked(19), "TRANSACTION_COORDINATOR_FENCED");
    assert.equal(await marked(20), "NONE");
  },
);

scenario(
  "47: a transaction from below the snapshot is named to readers from before it",
  async (w, end) => {
    await w.topic();
    await w.send(0, 0, PLAIN);
    const tx = await begun(w, { isV2: true });
    assert.equal(await tx.produce("t", ["a", "b"]), "NONE");
    await w.restart("close");
    assert.equal(await tx.produce("t", ["c"]), "NONE");
    await w.send(4, 4, PLAIN);
    assert.equal(await tx.end(false), "NONE");
    await w.clock.settle();
    await w.restart("close");
    assert.equal(await w.send(6, 6, PLAIN), "@6");
    const check = async () => {
      for (const offset of [0, 1, 3, 4, 5]) {
        const expected = [{ producerId: tx.producerId, firstOffset: 1 }];
        assert.deepEqual(await w.aborted(offset), expected, `from ${offset}`);
      }
      assert.deepEqual(await w.aborted(6), []);
      assert.deepEqual(await w.committed(), ["0", "4", "6"]);
    };
    await w.restart(end);
    await check();
    await w.end(end);
    await operate(w, loseSnapshots);
    await w.start();
    await check();
  },
);

for (const [before, left] of [[1, ["2"]], [3, []]] as const) {
  const where = before === 1 ? "begins below the log's start" : "lies below the log's start";
  scenario(
    `43: an open transaction that ${where} holds back readers until it ends`,
    async (w, end) => {
      await w.topic();
      const tx = await begun(w, { isV2: true });
      assert.equal(await tx.produce("t", ["a", "b"]), "NONE");
      await w.send(2, 2, PLAIN);
      assert.equal(await w.deleteRecords(before), before);
      await w.send(3, 3, PLAIN);
      await w.restart(end);
      assert.deepEqual(await w.producers(), [`${tx.producerId} e${tx.producerEpoch} s1 txn@0`]);
      assert.equal(await stable(w), before);
      assert.deepEqual(await w.committed(), []);
      assert.equal(await drive(w.clock, tx.end(false)), "NONE");
      await w.clock.settle();
      await w.restart(end);
      assert.equal(await stable(w), 5);
      assert.deepEqual(await w.committed(), [...left, "3"]);
    },
  );
}
