/** The benchmarks run, tiny: they must not rot. No times are asserted. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { createBroker } from "../../mod.ts";
import { createTopic, load, measure, medians } from "./measure.ts";
import { WORKLOADS } from "./workloads.ts";

test("each workload runs to its end", async () => {
  const broker = await createBroker();
  await createTopic(broker.http.url);
  const kafka = `${broker.kafka.host}:${broker.kafka.port}`;
  for (const [name, workload] of Object.entries(WORKLOADS)) {
    const requests = workload.connections * workload.inFlight * 2;
    const measured = await load({ ...workload, requests }, { kafka, http: broker.http.url });
    assert.equal(measured.requests, requests, name);
    assert.ok(measured.bytes > 0, name);
  }
  await broker.close();
});

test("a measurement of a process, with a restart before a cold read", async () => {
  const workload = { ...WORKLOADS["fetch-cold"]!, fill: "fill-hot", requests: 8 };
  const variant = { name: "default", binary: null, env: {} };
  const figures = await measure(workload, "dir", variant);
  assert.ok(figures.mbPerS > 0 && figures.p99Ms >= figures.p50Ms);
  assert.deepEqual(medians([figures]), figures);
});
