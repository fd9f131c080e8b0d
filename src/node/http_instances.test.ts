import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createHttpNode } from "../../tests/support/http_node.ts";

type Step =
  | { readonly do: "produce"; readonly partition: number }
  | { readonly do: "poll" | "leave"; readonly who: number }
  | { readonly do: "together" | "restart" | "crash" | "wait" };

const PARTITIONS = 3;
const JSON_V2 = "application/vnd.kafka.json.v2+json";

const who = fc.nat(2);
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({ do: fc.constant("produce" as const), partition: fc.nat(2) }),
  },
  { weight: 6, arbitrary: fc.record({ do: fc.constant("poll" as const), who }) },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("leave" as const), who }) },
  { weight: 2, arbitrary: fc.constantFrom<Step>({ do: "wait" }, { do: "together" }) },
);
const harsh: fc.Arbitrary<Step> = fc.oneof(
  { weight: 8, arbitrary: step },
  { weight: 1, arbitrary: fc.constantFrom<Step>({ do: "restart" }, { do: "crash" }) },
);

/** Three instances of one group, as their clients use them: made when they are missing. */
async function run(steps: readonly Step[]) {
  const node = await createHttpNode();
  const { ask, clock } = node;
  await ask("/v1/topics", { body: { name: "t", partitions: PARTITIONS } });
  const produced: number[] = Array.from({ length: PARTITIONS }, () => 0);
  /** Offsets in the order in which anybody got them, by partition. */
  const got: number[][] = produced.map(() => []);

  async function make(name: string): Promise<void> {
    const body = { name, format: "json", "auto.offset.reset": "earliest" };
    await ask("/rest/consumers/g", { body });
    await ask(`/rest/consumers/g/instances/${name}/subscription`, { body: { topics: ["t"] } });
  }

  async function poll(name: string, timeout = 0): Promise<number> {
    const path = `/rest/consumers/g/instances/${name}/records?timeout=${timeout}`;
    let answer = await ask(path);
    if (answer.status === 404) {
      await make(name);
      answer = await ask(path);
    }
    assert.equal(answer.status, 200, answer.text);
    for (const { partition, offset, value } of answer.json) {
      assert.equal(value, offset);
      got[partition]!.push(offset);
    }
    return answer.json.length;
  }

  const doers: Record<Step["do"], (step: Step) => Promise<unknown>> = {
    async produce(one) {
      const partition = one.do === "produce" ? one.partition : 0;
      const value = produced[partition]!;
      produced[partition] = value + 1;
      const body = { records: [{ value }] };
      const made = await ask(`/rest/topics/t/partitions/${partition}`, { type: JSON_V2, body });
      assert.equal(made.status, 200, made.text);
    },
    poll: (one) => poll(`i${"who" in one ? one.who : 0}`),
    leave: (one) =>
      ask(`/rest/consumers/g/instances/i${"who" in one ? one.who : 0}`, { method: "DELETE" }),
    /** Waits for records while others come into the group, and while there are some. */
    async together() {
      const polls = ["i0", "i1", "i2"].map((name) => poll(name, 300));
      await doers.produce({ do: "produce", partition: 1 });
      await Promise.all(polls);
    },
    restart: () => node.restart(),
    crash: () => node.crash(),
    wait: () => clock.advance(6_000),
  };
  for (const one of steps) await doers[one.do](one);
  // Two of them go, and the last one gets what is left.
  for (const name of ["i1", "i2"]) {
    await ask(`/rest/consumers/g/instances/${name}`, { method: "DELETE" });
  }
  await poll("i0", 8_000);
  while (await poll("i0", 100) > 0);
  await node.close();
  return { produced, got };
}

function all(count: number): number[] {
  return Array.from({ length: count }, (_, offset) => offset);
}

test("what one instance has been given, the next owner of its partition is not given again", async () => {
  const { produced, got } = await run([
    { do: "poll", who: 0 },
    ...[0, 1, 2].map((partition) => ({ do: "produce", partition }) as const),
    { do: "poll", who: 0 },
    { do: "poll", who: 1 },
    { do: "poll", who: 2 },
    { do: "poll", who: 1 },
  ]);
  assert.deepEqual(got, produced.map(all));
});

test("however instances come and go, each record is given once, in its partition's order", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 25 }), async (steps) => {
      const { produced, got } = await run(steps);
      for (const [partition, count] of produced.entries()) {
        assert.deepEqual(got[partition], all(count), `partition ${partition}`);
      }
    }),
    { numRuns: 5 },
  );
});

test("however the node stops, each record is given, and what is given again is what was not committed", async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(harsh, { minLength: 5, maxLength: 25 }), async (steps) => {
      const { produced, got } = await run(steps);
      for (const [partition, count] of produced.entries()) {
        const given = got[partition]!;
        assert.deepEqual([...new Set(given)].toSorted((a, b) => a - b), all(count));
        // It only ever goes back to where it has been.
        for (const [i, offset] of given.entries()) {
          assert.ok(offset <= (given[i - 1] ?? -1) + 1, `partition ${partition}: ${given}`);
        }
      }
    }),
    { numRuns: 4 },
  );
});
