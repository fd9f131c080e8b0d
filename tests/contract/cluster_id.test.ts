/** Free text as a cluster id: its keys are kept, listed and read back by every kind of store. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { openDirStore } from "../../src/adapters/dir_store.ts";
import { openS3Store } from "../../src/adapters/s3_store.ts";
import { openCluster } from "../../src/controller/cluster.ts";
import { silentLogger } from "../../src/env/logger.ts";
import { seededRandom } from "../../src/env/random.ts";
import { nodeEpoch, nodeId, objectId, position } from "../../src/lib/brand.ts";
import { createMemoryStore } from "../../src/object/memory.ts";
import {
  dataKey,
  logKey,
  logPrefix,
  parseDataKey,
  parseLogKey,
  parseSnapshotKey,
  parseWalKey,
  snapshotKey,
  walKey,
  walNodePrefix,
} from "../../src/object/object_key.ts";
import type { ObjectStore } from "../../src/object/object_store.ts";
import { tempDir } from "../support/broker_process.ts";
import { type S3Server, startS3Server } from "../support/s3_server.ts";
import { systemTestClock as clock } from "../support/system_test_clock.ts";
import { keysOf } from "../support/keys_of.ts";

const IDS = [
  "plain-id.~_9",
  "two words",
  "..",
  "../x",
  "a/b//c",
  "100%",
  "%2F",
  "Köln + Bonn",
  "北京",
  "<a href=\"?x=1&y='2'\">*|:\\",
  "\u{1f9ad}".repeat(20),
  "ß".repeat(40),
];

const WAL = { nodeId: nodeId(1), nodeEpoch: nodeEpoch(7), slot: 3 };

async function check(store: ObjectStore, id: string): Promise<void> {
  const env = { clock, log: silentLogger, random: seededRandom(1) };
  assert.equal((await openCluster(store, { ...env, clusterId: id })).clusterId, id);
  assert.equal((await openCluster(store, env)).clusterId, id);
  const keys = {
    data: dataKey(id, objectId(42)),
    wal: walKey(id, WAL),
    log: logKey(id, position(5)),
    snap: snapshotKey(id, position(5)),
  };
  for (const key of Object.values(keys)) {
    const bytes = new TextEncoder().encode(key);
    assert.equal((await store.put(key, bytes, { ifAbsent: true })).created, true, key);
    assert.deepEqual((await store.get(key))?.bytes, bytes);
  }
  assert.deepEqual(await keysOf(store, logPrefix(id)), [keys.log]);
  assert.deepEqual(await keysOf(store, walNodePrefix(id, WAL.nodeId)), [keys.wal]);
  assert.equal(parseDataKey(id, keys.data), 42);
  assert.deepEqual(parseWalKey(id, keys.wal), WAL);
  assert.equal(parseLogKey(id, keys.log), 5);
  assert.equal(parseSnapshotKey(id, keys.snap), 5);
  assert.deepEqual((await store.delete(Object.values(keys))).failed, []);
  assert.deepEqual(await keysOf(store, ""), ["meta/cluster"]);
  await store.close();
}

describe("cluster ids in keys", () => {
  let server: S3Server;
  before(async () => void (server = await startS3Server()));
  after(() => server.close());

  for (const [n, id] of IDS.entries()) {
    test(`memory: ${id}`, () => check(createMemoryStore(clock), id));

    test(`dir: ${id}`, async () => {
      const dir = tempDir();
      await check(await openDirStore(dir.path, { clock }), id);
      dir.remove();
    });

    test(`s3: ${id}`, () =>
      check(
        openS3Store({
          bucket: server.bucket,
          prefix: `ids/${n}`,
          endpoint: server.url,
          pathStyle: true,
          credentials: { accessKeyId: "test", secretAccessKey: "test-secret" },
          clock,
        }),
        id,
      ));
  }
});
