/** What every ObjectStore must do, whatever it stands on. Run it with a way to open an empty store. */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { isFault } from "../../src/lib/errors.ts";
import { createExactly } from "../../src/object/create.ts";
import { silentLogger } from "../../src/env/logger.ts";
import { seededRandom } from "../../src/env/random.ts";
import type { ObjectStore } from "../../src/object/object_store.ts";
import { probeStore } from "../../src/object/probe.ts";
import { systemTestClock } from "../support/system_test_clock.ts";
import { keysOf } from "../support/keys_of.ts";

export interface OpenedStore {
  readonly store: ObjectStore;
  /** Closes the store and removes what it stood on. */
  close(): Promise<void>;
}

export interface ContractOptions {
  /** Bytes of a part: real S3 servers insist on 5 MiB. */
  readonly partBytes: number;
}

const bytes = (...values: number[]) => Uint8Array.from(values);
const MIB = 1024 * 1024;

async function* partsOf(...parts: Uint8Array[]) {
  yield* parts;
}

export function objectStoreContract(
  name: string,
  open: () => Promise<OpenedStore>,
  { partBytes }: ContractOptions = { partBytes: 1_024 },
): void {
  function check(title: string, work: (store: ObjectStore) => Promise<void>): void {
    test(`${name}: ${title}`, async () => {
      const opened = await open();
      try {
        await work(opened.store);
      } finally {
        await opened.close();
      }
    });
  }

  describe(`object store ${name}`, () => {
    check("a put can be read back, whole and as a range", async (store) => {
      const answer = await store.put("a/b", bytes(0, 1, 2, 3, 4, 5));
      assert.equal(answer.created, true);
      const got = await store.get("a/b");
      assert.deepEqual(got?.bytes, bytes(0, 1, 2, 3, 4, 5));
      assert.equal(got.key, "a/b");
      assert.equal(got.size, 6);
      assert.deepEqual(
        (await store.get("a/b", { range: { start: 2, end: 4 } }))?.bytes,
        bytes(2, 3),
      );
    });

    check("a range is clipped to the object; past its end it is empty", async (store) => {
      await store.put("k", bytes(0, 1, 2));
      const range = async (start: number, end: number) =>
        (await store.get("k", { range: { start, end } }))?.bytes;
      assert.deepEqual(await range(1, 100), bytes(1, 2));
      assert.deepEqual(await range(3, 10), bytes());
      assert.deepEqual(await range(50, 60), bytes());
      assert.deepEqual(await range(1, 1), bytes());
      const got = await store.get("k", { range: { start: 0, end: 1 } });
      assert.equal(got?.size, 3, "size is the object's");
      assert.equal(await store.get("missing", { range: { start: 0, end: 1 } }), null);
      assert.equal(await store.get("missing", { range: { start: 1, end: 1 } }), null);
    });

    check("an absent key is null", async (store) => {
      assert.equal(await store.get("nothing/here"), null);
      assert.equal(await store.head("nothing/here"), null);
      await store.put("dir/file", bytes(1));
      assert.equal(await store.get("dir"), null, "a prefix is no object");
      assert.equal(await store.head("dir"), null);
      assert.equal(await store.get("dir/file/deeper"), null);
    });

    check("an unconditional put replaces", async (store) => {
      await store.put("k", bytes(1));
      assert.equal((await store.put("k", bytes(2, 2))).created, true);
      assert.deepEqual((await store.get("k"))?.bytes, bytes(2, 2));
    });

    check("a conditional put creates once and never replaces", async (store) => {
      assert.equal((await store.put("k", bytes(1), { ifAbsent: true })).created, true);
      assert.equal((await store.put("k", bytes(2), { ifAbsent: true })).created, false);
      assert.deepEqual((await store.get("k"))?.bytes, bytes(1));
      assert.deepEqual((await store.delete(["k"])).gone, ["k"]);
      assert.equal((await store.put("k", bytes(3), { ifAbsent: true })).created, true);
    });

    check("of many creates at once exactly one wins, with its own bytes", async (store) => {
      const outcomes = await Promise.all(
        Array.from({ length: 8 }, (_, i) =>
          createExactly(store, "race/k", bytes(i, i, i), {
            clock: systemTestClock,
            random: seededRandom(i),
            log: silentLogger,
          })),
      );
      const winner = outcomes.findIndex(({ created }) => created);
      assert.equal(outcomes.filter(({ created }) => created).length, 1);
      for (const outcome of outcomes) {
        if (!outcome.created) assert.deepEqual(outcome.found, bytes(winner, winner, winner));
      }
    });

    check("the bytes of a put are taken at the call's end, not shared", async (store) => {
      const body = bytes(1, 2, 3);
      await store.put("k", body);
      body.fill(9);
      const got = await store.get("k");
      assert.deepEqual(got?.bytes, bytes(1, 2, 3));
      got.bytes.fill(7);
      assert.deepEqual((await store.get("k"))?.bytes, bytes(1, 2, 3));
    });

    check("a view into a larger buffer is stored alone", async (store) => {
      await store.put("k", bytes(9, 9, 1, 2, 9).subarray(2, 4));
      assert.deepEqual((await store.get("k"))?.bytes, bytes(1, 2));
    });

    check("an empty object and a megabyte", async (store) => {
      await store.put("empty", bytes());
      assert.deepEqual((await store.get("empty"))?.bytes, bytes());
      assert.equal((await store.head("empty"))?.size, 0);
      const big = new Uint8Array(MIB).map((_, i) => (i * 31) & 0xff);
      await store.put("big", big);
      assert.deepEqual((await store.get("big"))?.bytes, big);
      assert.deepEqual(
        (await store.get("big", { range: { start: 70_000, end: 70_003 } }))?.bytes,
        big.slice(70_000, 70_003),
      );
    });

    check("times are the store's, in milliseconds", async (store) => {
      const { storeNowMs } = await store.put("k", bytes(1));
      const head = await store.head("k");
      const got = await store.get("k");
      assert.ok(head !== null && got !== null);
      assert.ok(
        Math.abs(head.lastModifiedMs - storeNowMs) < 5_000,
        `${head.lastModifiedMs} ${storeNowMs}`,
      );
      assert.ok(Math.abs(got.storeNowMs - storeNowMs) < 60_000);
      assert.equal(got.lastModifiedMs, head.lastModifiedMs);
    });

    check("a listing is ascending by code unit, across directories", async (store) => {
      const keys = ["a/b/c", "a-b", "a/b-c", "b", "a/b/d/e", "Z", "a/0", "a.b", "a/b.c"];
      for (const key of keys) await store.put(key, bytes(1));
      assert.deepEqual(await keysOf(store, ""), keys.toSorted());
      assert.deepEqual(
        await keysOf(store, "a/"),
        keys.filter((k) => k.startsWith("a/")).toSorted(),
      );
      assert.deepEqual(
        await keysOf(store, "a/b"),
        keys.filter((k) => k.startsWith("a/b")).toSorted(),
      );
      assert.deepEqual(await keysOf(store, "a/b/"), ["a/b/c", "a/b/d/e"]);
      assert.deepEqual(await keysOf(store, "none/"), []);
      for (const after of [...keys, "a/", "a/b", "a/b/", "A", "zz"]) {
        assert.deepEqual(
          await keysOf(store, "", after),
          keys.filter((k) => k > after).toSorted(),
          after,
        );
        assert.deepEqual(
          await keysOf(store, "a/", after),
          keys.filter((k) => k.startsWith("a/") && k > after).toSorted(),
        );
      }
    });

    check(
      "AutoMQ's LocalFileObjectStorageTest: hello world, prefixes, delete then read",
      async (store) => {
        const hello = new TextEncoder().encode("hello world");
        for (const key of ["abc/def/1", "abc/def/2"]) await store.put(key, hello);
        assert.deepEqual((await store.get("abc/def/1"))?.bytes, hello);
        const cases = [
          ["abc/def", 2],
          ["abc/de", 2],
          ["ab", 2],
          ["abc/def/1", 1],
          ["abc/deh", 0],
        ] as const;
        for (const [prefix, count] of cases) {
          assert.equal((await keysOf(store, prefix)).length, count, prefix);
        }
        await store.delete(["abc/def/1"]);
        assert.equal(await store.get("abc/def/1"), null);
      },
    );

    check("a listing shows sizes, and what was just written or deleted", async (store) => {
      await store.put("x/1", bytes(1));
      await store.put("x/2", bytes(1, 2));
      await store.delete(["x/1"]);
      const infos = [];
      for await (const { key, size } of store.list("x/")) infos.push({ key, size });
      assert.deepEqual(infos, [{ key: "x/2", size: 2 }]);
    });

    check("a delete answers for every key; a missing one is gone", async (store) => {
      for (const key of ["d/1", "d/2", "d/e/3"]) await store.put(key, bytes(1));
      const answer = await store.delete(["d/1", "d/missing", "nowhere/at/all", "d/e/3"]);
      assert.deepEqual([...answer.gone].toSorted(), [
        "d/1",
        "d/e/3",
        "d/missing",
        "nowhere/at/all",
      ]);
      assert.deepEqual(answer.failed, []);
      assert.deepEqual(await keysOf(store, "d/"), ["d/2"]);
      assert.deepEqual(await store.delete([]), { gone: [], failed: [] });
      await store.put("d/e/3", bytes(3));
      assert.deepEqual((await store.get("d/e/3"))?.bytes, bytes(3), "its directory came back");
    });

    check("parts become one object", async (store) => {
      const part = (value: number, length = partBytes) => new Uint8Array(length).fill(value);
      await store.putParts("p/many", partsOf(part(1), part(2), part(3, 10)));
      const got = await store.get("p/many");
      assert.equal(got?.size, 2 * partBytes + 10);
      assert.deepEqual(got.bytes.subarray(partBytes - 1, partBytes + 1), bytes(1, 2));
      assert.deepEqual(got.bytes.subarray(2 * partBytes), part(3, 10));
      await store.putParts("p/one", partsOf(part(7, 20)));
      assert.deepEqual((await store.get("p/one"))?.bytes, part(7, 20));
    });

    check("a source of parts that fails leaves no object", async (store) => {
      async function* broken() {
        yield new Uint8Array(partBytes);
        yield new Uint8Array(partBytes);
        throw new Error("source broke");
      }
      await assert.rejects(store.putParts("p/broken", broken()));
      assert.equal(await store.head("p/broken"), null);
      assert.deepEqual(await keysOf(store, ""), []);
    });

    check("an aborted signal is an aborted fault", async (store) => {
      const signal = AbortSignal.abort();
      await assert.rejects(store.put("k", bytes(1), { signal }), (e) => isFault(e, "aborted"));
      await assert.rejects(store.get("k", { signal }), (e) => isFault(e, "aborted"));
    });

    check("keys with signs that URLs and shells treat specially", async (store) => {
      const keys = [
        "s/a b",
        "s/a+b",
        "s/a%20b",
        "s/ä€",
        "s/a&b=c",
        "s/(x)'!*~",
        "s/#h",
        "s/a@b,c;d",
      ];
      for (const [i, key] of keys.entries()) await store.put(key, bytes(i));
      assert.deepEqual(await keysOf(store, "s/"), keys.toSorted());
      for (const [i, key] of keys.entries()) {
        assert.deepEqual((await store.get(key))?.bytes, bytes(i), key);
      }
      assert.equal((await store.delete(keys)).gone.length, keys.length);
      assert.deepEqual(await keysOf(store, "s/"), []);
    });

    check("the start-up probe passes and leaves nothing", async (store) => {
      const env = { clock: systemTestClock, random: seededRandom(7), log: silentLogger };
      const report = await probeStore(store, env);
      assert.ok(Number.isFinite(report.clockSkewMs));
      assert.deepEqual(await keysOf(store, ""), []);
    });
  });
}
