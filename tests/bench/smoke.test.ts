/** The benchmarks run, tiny: they must not rot. No times are asserted. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createBroker } from "../../mod.ts";
import { load, WORKLOADS } from "./run.ts";

test("each workload runs to its end", async () => {
  const broker = await createBroker({
    kafka: { "num.partitions": "8", "message.max.bytes": "8388608" },
  });
  const kafka = `${broker.kafka.host}:${broker.kafka.port}`;
  for (const [name, workload] of Object.entries(WORKLOADS)) {
    const requests = workload.connections * workload.inFlight * 2;
    const measured = await load({ ...workload, requests }, { kafka, http: broker.http.url });
    assert.equal(measured.requests, requests, name);
    assert.ok(measured.bytes > 0, name);
  }
  await broker.close();
});
