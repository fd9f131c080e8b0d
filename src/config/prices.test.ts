import assert from "node:assert/strict";
import { test } from "node:test";
import { hasPrices } from "./prices.ts";

const s3 = { kind: "s3", bucket: "b", prefix: "" } as const;

test("public S3 endpoints have prices; private ones, directories and memory have none", () => {
  const cases: [string | null, boolean][] = [
    [null, true],
    ["https://account.r2.cloudflarestorage.com", true],
    ["https://s3.eu-central-1.amazonaws.com", true],
    ["http://127.0.0.1:9000", false],
    ["http://localhost:9000", false],
    ["http://[::1]:9000", false],
    ["http://10.1.2.3", false],
    ["http://172.20.0.1", false],
    ["http://172.33.0.1", true],
    ["http://minio:9000", false],
    ["http://store.lan", false],
  ];
  for (const [endpoint, priced] of cases) {
    assert.equal(hasPrices(s3, endpoint), priced, String(endpoint));
  }
  assert.equal(hasPrices({ kind: "dir", path: "x" }, null), false);
  assert.equal(hasPrices({ kind: "memory" }, null), false);
});
