/** The compiled file alone, in an empty directory, does the whole job. */
import assert from "node:assert/strict";
import { copyFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { Kafka, logLevel } from "kafkajs";
import { compiledBinary, startBroker, tempDir } from "../support/broker_process.ts";

const binary = compiledBinary();

test(
  "the compiled file serves Kafka and HTTP from an empty directory",
  {
    skip: binary === null
      ? "there is no dist/skerry: run ./compile.sh, or set SKERRY_BINARY"
      : false,
  },
  async () => {
    const dir = tempDir();
    const copy = join(dir.path, "skerry");
    copyFileSync(binary!, copy);
    // Nothing of this checkout may be needed: no packages, no variables, no runtime on the path.
    const broker = await startBroker({
      binary: copy,
      cwd: dir.path,
      env: { PATH: "/nonexistent", HOME: dir.path },
    });
    const kafka = new Kafka({ brokers: [broker.kafka], logLevel: logLevel.NOTHING });
    const producer = kafka.producer({ idempotent: true });
    await producer.connect();
    const [sent] = await producer.send({
      topic: "t",
      messages: [{ key: "k", value: "over Kafka" }],
    });
    assert.equal(sent!.baseOffset, "0");
    await producer.disconnect();
    const posted = await fetch(`${broker.http}/v1/topics/t/records`, {
      method: "POST",
      body: "over HTTP",
    });
    assert.deepEqual(
      ((await posted.json()) as { results: { offset: number }[] }).results[0]!.offset,
      1,
    );
    const page = await (await fetch(`${broker.http}/v1/topics/t/partitions/0/records`)).json() as {
      records: { value: string }[];
    };
    assert.deepEqual(page.records.map(({ value }) => value), ["over Kafka", "over HTTP"]);
    await broker.kill9();
    const again = await broker.restart();
    const consumer = kafka.consumer({ groupId: "g", maxWaitTimeInMs: 200 });
    await consumer.connect();
    await consumer.subscribe({ topic: "t", fromBeginning: true });
    const got: string[] = [];
    await new Promise<void>((resolve, reject) => {
      consumer.run({
        eachMessage: ({ message }) => {
          if (got.push(String(message.value)) === 2) resolve();
          return Promise.resolve();
        },
      }).catch(reject);
    });
    await consumer.disconnect();
    assert.deepEqual(got, ["over Kafka", "over HTTP"]);
    assert.equal(await again.stop(), 0);
    assert.deepEqual(readdirSync(dir.path).toSorted(), ["skerry", "skerry-data"]);
    dir.remove();
  },
);
