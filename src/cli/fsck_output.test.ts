import assert from "node:assert/strict";
import { test } from "node:test";
import { emptyCluster, storeOf } from "../../tests/support/stored_world.ts";
import { testEnv } from "../../tests/support/test_env.ts";
import type { Finding } from "../inspect/finding.ts";
import { fsck } from "../inspect/fsck.ts";
import { Output } from "./fsck_output.ts";
import { printer } from "./printer.ts";

const FOREIGN_KEYS = 20_000;
/** Far more than a few pieces of output hold. */
const FINDINGS_IN_FLIGHT_MAX = 2_000;

/** A store with many findings, and a reader that takes nothing until it is told to. */
async function slowly(json: boolean) {
  const content = emptyCluster(1);
  for (let i = 0; i < FOREIGN_KEYS; i++) content.set(`note-${i}`, new Uint8Array(1));
  let taken = "";
  let found = 0;
  let open: () => void = () => {};
  const gate = new Promise<void>((resolve) => void (open = resolve));
  let began: () => void = () => {};
  const writing = new Promise<void>((resolve) => void (began = resolve));
  const output = new Output(
    json,
    printer(async (text) => {
      began();
      await gate;
      taken += text;
    }),
  );
  const report = async (finding: Finding) => {
    found += 1;
    await output.finding(finding);
  };
  const done = fsck({ store: await storeOf(content), env: testEnv(), report })
    .then(({ summary }) => output.end(summary));
  return { writing, open, done, taken: () => taken, found: () => found };
}

test("a slow reader holds up the check: findings do not pile up", async () => {
  for (const json of [false, true]) {
    const run = await slowly(json);
    await run.writing;
    for (let turn = 0; turn < 100; turn++) await new Promise((done) => setTimeout(done, 0));
    assert.ok(run.found() < FINDINGS_IN_FLIGHT_MAX, `${run.found()} findings`);
    run.open();
    await run.done;
    assert.equal(run.found(), FOREIGN_KEYS);
    const lines = run.taken().split("\n");
    assert.equal(lines.filter((line) => line.includes("note-")).length, FOREIGN_KEYS);
  }
});

test("the document is one, with findings and without", async () => {
  let text = "";
  const take = async (piece: string) => void (text += piece);
  for (const extra of [[], ["a"], ["a", "b"]]) {
    text = "";
    const content = emptyCluster(1);
    for (const key of extra) content.set(key, new Uint8Array(1));
    const output = new Output(true, printer(take));
    const { summary } = await fsck({
      store: await storeOf(content),
      env: testEnv(),
      report: output.finding,
    });
    await output.end(summary);
    const told = JSON.parse(text) as { findings: { key: string }[]; summary: { verdict: string } };
    assert.deepEqual(told.findings.map(({ key }) => key), extra);
    assert.equal(told.summary.verdict, "clean");
  }
});
