/** The commands as processes: pipes, Ctrl-C, a reader that goes away; once with the compiled file. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { resolve } from "node:path";
import process from "node:process";
import { after, before, test } from "node:test";
import { type Broker, createBroker } from "../../mod.ts";
import { toUtf8 } from "../../src/lib/bytes.ts";
import {
  type BrokerProcess,
  compiledBinary,
  startBroker,
  tempDir,
  within,
} from "../support/broker_process.ts";
import { runCli } from "../support/cli_io.ts";
import { until } from "./until.ts";

let broker: Broker;
before(async () => {
  broker = await createBroker({
    store: "memory:",
    httpListen: "off",
    kafka: { "group.initial.rebalance.delay.ms": "0" },
  });
});
after(() => broker.close());

const SOURCE = [resolve("node_modules/.bin/bun"), resolve("src/cli/main.ts")];
const END_MS_MAX = 20_000;

function start(words: string, command: readonly string[] = SOURCE) {
  const [file, ...first] = [...command, ...words.split(" ")];
  const at = `${broker.kafka.host}:${broker.kafka.port}`;
  const child = spawn(file!, [...first, "-b", at], { stdio: ["pipe", "pipe", "pipe"] });
  let out = "";
  let err = "";
  child.stdout.on("data", (chunk: { toString(): string }) => void (out += chunk.toString()));
  child.stderr.on("data", (chunk: { toString(): string }) => void (err += chunk.toString()));
  child.stdin.on("error", () => {});
  const closed = new Promise<number | null>((done) => void child.on("close", (code) => done(code)));
  return {
    child,
    out: () => out,
    async ended(): Promise<{ code: number | null; out: string; err: string }> {
      const code = await within(closed.then((value) => ({ value })), END_MS_MAX);
      if (code === null) child.kill("SIGKILL");
      assert.ok(code !== null, `${words} did not end: ${out}${err}`);
      return { code: code.value, out, err };
    },
  };
}

async function run(words: string, input = "", command?: readonly string[]) {
  const started = start(words, command);
  started.child.stdin.end(input);
  return await started.ended();
}

test("standard input to a topic to standard output", async () => {
  const lines = Array.from({ length: 2_000 }, (_, i) => `line ${i} ${"é".repeat(i % 50)}\n`).join(
    "",
  );
  assert.deepEqual(await run("produce piped", lines), { code: 0, out: "", err: "" });
  assert.deepEqual(await run("consume piped --until-end"), { code: 0, out: lines, err: "" });
  assert.deepEqual(await run("topic describe nosuch"), {
    code: 4,
    out: "",
    err: "Cannot find topic nosuch: UNKNOWN_TOPIC_OR_PARTITION: " +
      "skerry topic list shows what is there\n",
  });
});

test("Ctrl-C ends both in good order: what was read is delivered, what was printed is committed", async () => {
  assert.equal((await run("topic create stopped")).code, 0);
  const producer = start("produce stopped --linger 0");
  producer.child.stdin.write("one\ntwo\nthr");
  const consumer = start("consume stopped -g stoppers");
  await until("both are printed", () => consumer.out() === "one\ntwo\n");
  process.kill(consumer.child.pid!, "SIGINT");
  assert.deepEqual(await consumer.ended(), { code: 0, out: "one\ntwo\n", err: "" });
  process.kill(producer.child.pid!, "SIGINT");
  assert.equal((await producer.ended()).code, 0);
  const { out } = await run("group describe stoppers");
  assert.match(out, /^stoppers: Empty.*\n.*\nstopped +0 +2 +\d+ +\d+\n$/);
});

test("a reader that has enough ends it without a word", async () => {
  await run("produce long", "x\n".repeat(200_000));
  const consumer = start("consume long");
  await until("something is printed", () => consumer.out() !== "");
  consumer.child.stdout.destroy();
  // What is in the pipe is taken still; the next record finds nobody.
  await run("produce long", "x\n".repeat(200_000));
  const { code, err } = await consumer.ended();
  assert.deepEqual({ code, err }, { code: 141, err: "" });
});

test("a broker that is killed and comes back costs produce no record, and stores none twice", async () => {
  const dir = tempDir();
  const victim = await startBroker({ args: ["--store", `dir:${dir.path}`] });
  let again: BrokerProcess | null = null;
  try {
    const text = Array.from({ length: 400 }, (_, i) => `${i}\n`).join("");
    const middle = text.indexOf("\n200\n") + 1;
    let goOn: () => void = () => {};
    const gate = new Promise<void>((done) => void (goOn = done));
    async function* input(): AsyncGenerator<Uint8Array> {
      yield toUtf8(text.slice(0, middle));
      await gate;
      yield toUtf8(text.slice(middle));
    }
    const consume = ["consume", "t", "--until-end", "-b", victim.kafka];
    const producing = runCli(["produce", "t", "-b", victim.kafka, "--batch-bytes", "500"], {
      input: input(),
    });
    await until("the first half is stored", async () => (
      (await runCli(consume)).out.length === middle
    ));
    await victim.kill9();
    goOn();
    again = await victim.restart();
    const { code, err } = await producing;
    assert.deepEqual({ code, err }, { code: 0, err: "" });
    assert.equal((await runCli(consume)).out, text);
  } finally {
    await again?.stop();
    dir.remove();
  }
});

const binary = compiledBinary();
test(
  "the compiled file does the same",
  { skip: binary === null ? "no dist/skerry" : false },
  async () => {
    const command = [binary!];
    const { out: help } = await run("topic --help", "", command);
    // A file that was compiled before there were such commands.
    if (!help.includes("skerry topic create")) return;
    assert.equal((await run("topic create compiled --partitions 2", "", command)).code, 0);
    assert.deepEqual(await run("produce compiled -k : --compression zstd", "a:1\n", command), {
      code: 0,
      out: "",
      err: "",
    });
    const { out } = await run("consume compiled --until-end --json", "", command);
    assert.equal((JSON.parse(out) as { value: string }).value, "1");
  },
);
