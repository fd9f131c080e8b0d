/**
 * Runs the object store contract on the S3 adapter, against our own server, and against a real one
 * when SKERRY_TEST_S3_ENDPOINT names it (with SKERRY_TEST_S3_BUCKET and the AWS_* credentials).
 */
import { env } from "node:process";
import { after, before } from "node:test";
import { openS3Store } from "../../src/adapters/s3_store.ts";
import type { ObjectStore } from "../../src/object/object_store.ts";
import { startS3Server } from "../support/s3_server.ts";
import type { S3Server } from "../support/s3_server.ts";
import { systemTestClock } from "../support/system_test_clock.ts";
import { keysOf } from "../support/keys_of.ts";
import type { OpenedStore } from "./object_store.ts";
import { objectStoreContract } from "./object_store.ts";

const PART_BYTES = 5 * 1024 * 1024;
let run = 0;

/** A store below a prefix of its own; what a test leaves is deleted. */
function openBelow(endpoint: string, bucket: string): OpenedStore {
  run++;
  const store = openS3Store({
    bucket,
    prefix: `contract/${Date.now().toString(36)}-${run}`,
    endpoint,
    pathStyle: true,
    credentials: {
      accessKeyId: env["AWS_ACCESS_KEY_ID"] ?? "test",
      secretAccessKey: env["AWS_SECRET_ACCESS_KEY"] ?? "test-secret",
    },
    clock: systemTestClock,
  });
  return { store, close: () => clearAndClose(store) };
}

async function clearAndClose(store: ObjectStore): Promise<void> {
  await store.delete(await keysOf(store));
  await store.close();
}

let server: S3Server;
before(async () => {
  server = await startS3Server({ pageKeys: 4 });
});
after(() => server.close());

objectStoreContract("S3, own server", async () => openBelow(server.url, server.bucket));

const realEndpoint = env["SKERRY_TEST_S3_ENDPOINT"];
if (realEndpoint !== undefined) {
  const bucket = env["SKERRY_TEST_S3_BUCKET"] ?? "skerry-test";
  objectStoreContract("S3, real server", async () => openBelow(realEndpoint, bucket), {
    partBytes: PART_BYTES,
  });
}
