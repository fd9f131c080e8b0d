/** What is special to directories; the contract suite covers what every store does. */
import assert from "node:assert/strict";
import {
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rename,
  rm,
  rmdir,
  utimes,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { isFault, messageOf } from "../lib/errors.ts";
import type { ObjectStore } from "../object/object_store.ts";
import { createFakeClock } from "../../tests/support/fake_clock.ts";
import { systemTestClock } from "../../tests/support/system_test_clock.ts";
import { keysOf } from "../../tests/support/keys_of.ts";
import { openDirStore } from "./dir_store.ts";
import { fileFault } from "./dir_store_fault.ts";

const BODY = Uint8Array.of(1, 2, 3);
let base: string;
let count = 0;

before(async () => {
  base = await mkdtemp(join(tmpdir(), "skerry-dir-"));
});
after(() => rm(base, { recursive: true }));

async function open(): Promise<{ path: string; store: ObjectStore }> {
  const path = join(base, `store-${++count}`);
  return { path, store: await openDirStore(path, { clock: systemTestClock }) };
}

test("the path is the key, and no temporary file stays", async () => {
  const { path, store } = await open();
  await store.put("a/b/c", BODY, { ifAbsent: true });
  await store.put("a/b/c", BODY, { ifAbsent: true });
  await store.put("a/b/c", BODY);
  assert.deepEqual(new Uint8Array(await readFile(join(path, "a/b/c"))), BODY);
  assert.deepEqual(await readdir(join(path, ".tmp")), []);
});

test("ancestors of the directory are created, and it opens again with its content", async () => {
  const path = join(base, "deep/er/store");
  const first = await openDirStore(path, { clock: systemTestClock });
  await first.put("k", BODY);
  const second = await openDirStore(`${path}/`, { clock: systemTestClock });
  assert.deepEqual((await second.get("k"))?.bytes, BODY);
});

test("only leftovers of dead processes are swept at the next open", async () => {
  const { path, store } = await open();
  await store.put("k", BODY);
  await writeFile(join(path, ".tmp/old"), "torn");
  await writeFile(join(path, ".tmp/young"), "being written");
  const hourAgo = Date.now() / 1_000 - 3_600;
  await utimes(join(path, ".tmp/old"), hourAgo, hourAgo);
  const again = await openDirStore(path, { clock: systemTestClock });
  assert.deepEqual(await readdir(join(path, ".tmp")), ["young"]);
  assert.deepEqual(await keysOf(again), ["k"], "temporary files are not in the key space");
});

test("deleting the last object of a directory removes it, up to the root", async () => {
  const { path, store } = await open();
  await store.put("a/b/c", BODY);
  await store.put("a/d", BODY);
  await store.delete(["a/b/c"]);
  assert.deepEqual(await readdir(join(path, "a")), ["d"]);
  await store.delete(["a/d"]);
  assert.deepEqual((await readdir(path)).toSorted(), [".tmp"]);
});

test("puts and deletes that race over one directory all succeed", async () => {
  const { path, store } = await open();
  const rounds = Array.from({ length: 40 }, async (_, i) => {
    await store.put(`x/y/${i}`, BODY, { ifAbsent: true });
    await store.delete([`x/y/${i}`]);
  });
  await Promise.all(rounds);
  assert.deepEqual(await readdir(path), [".tmp"]);
});

test("two stores on one directory: exactly one creates", async () => {
  const { path, store } = await open();
  const other = await openDirStore(path, { clock: systemTestClock });
  for (let i = 0; i < 10; i++) {
    const both = await Promise.all(
      [store, other].map((s, j) => s.put(`k/${i}`, Uint8Array.of(j), { ifAbsent: true })),
    );
    assert.equal(both.filter(({ created }) => created).length, 1);
  }
});

test("keys that a path cannot hold are refused", async () => {
  const { store } = await open();
  for (
    const key of ["", "/a", "a/", "a//b", "..", "a/../../b", ".", ".tmp/x", "a\0b", "x".repeat(256)]
  ) {
    await assert.rejects(store.put(key, BODY), (e) => isFault(e, "config"), key);
    await assert.rejects(store.get(key), (e) => isFault(e, "config"), key);
    assert.deepEqual(await store.delete([key]), { gone: [], failed: [key] });
  }
  await store.put("x".repeat(255), BODY);
  await store.put("a/.tmp", BODY);
});

test("an object cannot lie below another", async () => {
  const { path, store } = await open();
  await store.put("a", BODY);
  await assert.rejects(store.put("a/b", BODY), (e) => isFault(e));
  await store.put("d/e", BODY);
  await assert.rejects(store.put("d", BODY), (e) => isFault(e));
  assert.deepEqual((await store.delete(["d"])).gone, ["d"], "no object of that name");
  assert.deepEqual(await keysOf(store), ["a", "d/e"]);
  assert.deepEqual(await readdir(join(path, ".tmp")), []);
});

test("times come from the file system, whatever our clock says", async () => {
  const store = await openDirStore(join(base, "clocked"), { clock: createFakeClock(0) });
  const { storeNowMs } = await store.put("k", BODY);
  const got = await store.get("k");
  assert.ok(Math.abs(storeNowMs - Date.now()) < 60_000);
  assert.ok(got !== null && got.storeNowMs >= got.lastModifiedMs);
});

test("where it cannot work, opening says why in one line", async () => {
  const file = join(base, "file");
  await writeFile(file, "x");
  for (const path of [file, join(file, "below")]) {
    await assert.rejects(openDirStore(path, { clock: systemTestClock }), (error) => {
      assert.ok(isFault(error, "config") && !messageOf(error).includes("\n"));
      assert.match(messageOf(error), /^Cannot keep data in the directory .*: .*not a directory$/);
      return true;
    });
  }
  const blocked = join(base, "blocked");
  await mkdir(blocked);
  await writeFile(join(blocked, ".tmp"), "x");
  await assert.rejects(
    openDirStore(blocked, { clock: systemTestClock }),
    (e) => isFault(e, "config"),
  );
});

test("errors of the file system become faults that can heal", () => {
  const codes = {
    ENOSPC: "store-full",
    EDQUOT: "store-full",
    EACCES: "store-denied",
    EROFS: "store-denied",
    EMFILE: "store-unavailable",
    EIO: "store-unavailable",
  } as const;
  for (const [errno, code] of Object.entries(codes)) {
    const fault = fileFault(Object.assign(new Error(`${errno}: no`), { code: errno }), "put k");
    assert.ok(isFault(fault, code) && fault.retriable, errno);
    assert.match(fault.message, /^Cannot put k: /);
  }
});

test("a listing during which the directory is moved away is an outage, not shorter", async () => {
  const { path, store } = await open();
  await Promise.all(["a/1", "b/1", "b/2", "c/1"].map((key) => store.put(key, BODY)));
  for (const anyOrder of [false, true]) {
    const listing = store.list("", { anyOrder })[Symbol.asyncIterator]();
    assert.equal((await listing.next()).value?.key, "a/1");
    await rename(path, `${path}-away`);
    const rest = (async () => {
      while ((await listing.next()).done !== true);
    })();
    await assert.rejects(rest, (error) => isFault(error, "store-unavailable"));
    await rename(`${path}-away`, path);
  }
});

test("a directory that is emptied or moved away is an outage, and nothing is made anew in it", async () => {
  const { path: root, store } = await open();
  const away = `${root}-away`;
  await store.put("a/b", Uint8Array.of(1));
  const isAway = (error: unknown) => isFault(error, "store-unavailable") && error.retriable;
  const isEmptied = (error: unknown) => isAway(error) && /emptied, moved/.test(String(error));
  const refusesAll = async () => {
    await assert.rejects(store.get("a/b"), isEmptied);
    await assert.rejects(store.head("a/b"), isEmptied);
    await assert.rejects(async () => {
      for await (const _ of store.list("a/")) assert.fail("nothing is there");
    }, isEmptied);
    await assert.rejects(store.put("a/c", Uint8Array.of(2), { ifAbsent: true }), isAway);
    assert.deepEqual(await store.delete(["a/b"]), { gone: [], failed: ["a/b"] });
  };
  await rename(root, away);
  await refusesAll();
  await assert.rejects(readdir(root), "it was not made anew");
  // As an empty mount point.
  await mkdir(root);
  await refusesAll();
  assert.deepEqual(await readdir(root), []);
  await rmdir(root);
  await rename(away, root);
  assert.deepEqual((await store.get("a/b"))?.bytes, Uint8Array.of(1));
  assert.equal((await store.put("a/c", Uint8Array.of(2), { ifAbsent: true })).created, true);
  await store.close();
});
