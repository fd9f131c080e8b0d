/** The commands that speak to a broker, against brokers in this process, over real sockets. */
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Kafka, logLevel } from "kafkajs";
import { type Broker, createBroker } from "../../mod.ts";
import { createSystemEnv } from "../../src/adapters/system_env.ts";
import { BrokerConnection } from "../../src/cli/client/connection.ts";
import { shareGroupHeartbeatApi } from "../../src/protocol/message/76_share_group_heartbeat.ts";
import { consumerGroupHeartbeatApi } from "../../src/protocol/message/68_consumer_group_heartbeat.ts";
import { tempDir } from "../support/broker_process.ts";
import { type CliOptions, type CliResult, runCli } from "../support/cli_io.ts";
import { until } from "./until.ts";

let broker: Broker;
let bootstrap: string;
before(async () => {
  broker = await createBroker({
    store: "memory:",
    httpListen: "off",
    kafka: { "group.initial.rebalance.delay.ms": "0", "auto.create.topics.enable": "false" },
  });
  bootstrap = `${broker.kafka.host}:${broker.kafka.port}`;
});
after(() => broker.close());

/** Words with blanks between; a broker of its own in `options.at`. */
function skerry(words: string, options: CliOptions & { at?: string } = {}): Promise<CliResult> {
  return runCli([...words.split(" "), "-b", options.at ?? bootstrap], options);
}

async function good(words: string, options?: CliOptions & { at?: string }): Promise<string> {
  const { code, out, err } = await skerry(words, options);
  assert.equal(code, 0, `${words}: ${err}`);
  return out;
}

/** The one object that --json prints. */
async function json<T>(words: string, options?: CliOptions & { at?: string }): Promise<T> {
  const out = await good(`${words} --json`, options);
  assert.equal(out.split("\n").length, 2, out);
  return JSON.parse(out) as T;
}

async function fails(words: string, code: number, pattern: RegExp, options?: CliOptions) {
  const result = await skerry(words, options);
  assert.equal(result.code, code, `${words}: ${result.out}${result.err}`);
  assert.match(result.err, pattern);
}

interface Results {
  readonly results: readonly {
    readonly name: string;
    readonly ok: boolean;
    readonly error?: string;
    readonly [more: string]: unknown;
  }[];
}

test("topics: create, list, describe, alter, delete", async () => {
  assert.equal(
    await good("topic create orders --partitions 2 --config retention.ms=60000"),
    "created orders with 2 partitions\n",
  );
  await fails("topic create orders", 1, /TOPIC_ALREADY_EXISTS.*--if-not-exists/);
  const again = await json<Results>("topic create orders --if-not-exists");
  assert.deepEqual(again.results, [{ name: "orders", ok: true, created: false }]);
  assert.match(await good("topic create other --dry-run"), /^other would be created/);
  const { topics } = await json<{ topics: { name: string; partitions: number }[] }>("topic list");
  assert.deepEqual(
    topics.filter(({ name }) => name === "orders" || name === "other").map(({ partitions }) =>
      partitions
    ),
    [2],
  );
  assert.equal(await good("topic alter orders --partitions 3"), "orders has 3 partitions\n");
  await fails(
    "topic alter orders --partitions 2",
    1,
    /Cannot alter topic orders: INVALID_PARTITIONS/,
  );
  const text = await good("topic describe orders");
  assert.match(text, /^orders {2}3 partitions {2}id [0-9a-f]{32}\nset: retention\.ms=60000\n/);
  assert.match(text, /\nPARTITION {2}LEADER {2}EPOCH {2}START {2}END\n +0 +1 +\d+ +0 +0\n/);
  await fails("topic describe orders nosuch", 1, /Cannot find topic nosuch: UNKNOWN_TOPIC/);
  await fails("topic describe nosuch", 4, /skerry topic list shows what is there/);
  await fails("topic create bad/name", 1, /INVALID_TOPIC_EXCEPTION/);
  await fails("topic create x --config nosuch=1", 1, /INVALID_CONFIG/);
  const gone = await skerry("topic delete orders nosuch --json");
  assert.equal(gone.code, 1);
  const { results } = JSON.parse(gone.out) as Results;
  assert.deepEqual(results.map(({ name, ok, error }) => ({ name, ok, error })), [
    { name: "orders", ok: true, error: undefined },
    { name: "nosuch", ok: false, error: "UNKNOWN_TOPIC_OR_PARTITION" },
  ]);
  await fails("topic delete nosuch", 4, /UNKNOWN_TOPIC_OR_PARTITION/);
  assert.equal(await good("topic delete nosuch --if-exists"), "nosuch is not there\n");
});

test("settings: set, get, unset; all or none", async () => {
  await good("topic create conf");
  assert.equal(
    await good("config set topic conf retention.ms=1000 cleanup.policy=delete"),
    "topic conf: retention.ms=1000\ntopic conf: cleanup.policy=delete\n",
  );
  assert.equal(await good("config get topic conf retention.ms"), "1000\n");
  const got = await json<{ configs: { name: string; value: string; source: string }[] }>(
    "config get topic conf",
  );
  assert.deepEqual(got.configs.map(({ name, value, source }) => [name, value, source]), [
    ["cleanup.policy", "delete", "topic"],
    ["retention.ms", "1000", "topic"],
  ]);
  await fails("config set topic conf retention.ms=5 nosuch=1", 1, /INVALID_CONFIG.*nosuch/);
  assert.equal(await good("config get topic conf retention.ms"), "1000\n");
  assert.match(
    await good("config set topic conf retention.ms=7 --dry-run"),
    /retention\.ms would be accepted/,
  );
  await good("config unset topic conf retention.ms");
  assert.equal(await good("config get topic conf retention.ms"), "604800000\n");
  assert.match(await good("config get topic conf --all"), /\nretention\.ms +604800000 +default\n/);
  await fails("config get topic conf nosuch", 4, /Cannot find nosuch of topic conf/);
  await fails("config get topic nosuch", 4, /UNKNOWN_TOPIC_OR_PARTITION/);
  await fails("config get broker 99", 4, /Cannot find broker 99: brokers are 1/);
  assert.match(await good("config get broker 1"), /^node\.id +1 +broker, at its start$/m);
});

test("lines become records, records lines: keys, headers, nulls, codecs, bytes", async () => {
  await good("topic create io --partitions 3");
  const told = await json<{ read: number; delivered: number; partitions: { records: number }[] }>(
    "produce io -k : --header a=1 --header b= --null - --compression zstd",
    { input: "k1:v1\nk2:-\nk1:v:3\n" },
  );
  assert.equal(told.read, 3);
  assert.equal(told.delivered, 3);
  assert.equal(told.partitions.reduce((sum, { records }) => sum + records, 0), 3);
  const out = await good("consume io --until-end --json");
  const rows = out.trimEnd().split("\n").map((line) => JSON.parse(line) as Record<string, unknown>);
  const k1 = rows.filter(({ key }) => key === "k1");
  assert.deepEqual(k1.map(({ value, headers }) => ({ value, headers })), [
    { value: "v1", headers: [["a", "1"], ["b", ""]] },
    { value: "v:3", headers: [["a", "1"], ["b", ""]] },
  ]);
  assert.equal(k1[0]!["partition"], k1[1]!["partition"]);
  assert.equal(rows.find(({ key }) => key === "k2")!["value"], null);
  for (const codec of ["none", "gzip", "snappy", "lz4", "zstd"]) {
    await good(`produce io --partition 2 --compression ${codec}`, { input: `${codec}\n` });
  }
  const tail = await good("consume io --partition 2 --from -5 --count 5");
  assert.equal(tail, "none\ngzip\nsnappy\nlz4\nzstd\n");
  await fails("produce io -k =", 1, /line 2: it has no key.*\nstored: 1 record of 1\n/, {
    input: "a=1\nb\n",
  });
  await fails("produce io --partition 3", 4, /it has 3 partitions/, { input: "x\n" });
  await fails("produce nosuch", 4, /UNKNOWN_TOPIC_OR_PARTITION/, { input: "x\n" });
  assert.equal(await good("produce io --acks 0", { input: "x\n" }), "");
  assert.equal(await good("produce io --acks 1 --linger 0", { input: "x\n" }), "");
});

test("places: from an offset, a time, before the end; a count ends in the middle of a batch", async () => {
  await good("topic create places");
  await good("produce places", { input: "0\n1\n2\n3\n4\n" });
  const from = (place: string, more = "--until-end") =>
    good(`consume places --from ${place} ${more}`);
  assert.equal(await from("earliest"), "0\n1\n2\n3\n4\n");
  assert.equal(await from("3"), "3\n4\n");
  assert.equal(await from("-2"), "3\n4\n");
  assert.equal(await from("-99"), "0\n1\n2\n3\n4\n");
  assert.equal(await from("latest"), "");
  assert.equal(await from("@0"), "0\n1\n2\n3\n4\n");
  assert.equal(await from("2100-01-01"), "");
  assert.equal(await from("1", "--count 2"), "1\n2\n");
  await fails("consume places --partition 1 --until-end", 4, /it has 1 partitions/);
  await fails("consume nosuch --until-end", 4, /UNKNOWN_TOPIC_OR_PARTITION/);
});

test("truncated records are gone, in the listing and for readers", async () => {
  await good("topic create cut");
  await good("produce cut", { input: "0\n1\n2\n3\n" });
  assert.equal(await good("topic truncate cut --to 2 --dry-run"), "cut-0 would start at 2\n");
  assert.equal(await good("consume cut --count 1"), "0\n");
  const { results } = await json<Results>("topic truncate cut --to 2");
  assert.deepEqual(results, [{ name: "cut-0", ok: true, partition: 0, start: 2 }]);
  assert.equal(await good("consume cut --until-end"), "2\n3\n");
  await good("topic truncate cut --to latest");
  assert.match(await good("topic describe cut"), /\n +0 +1 +\d+ +4 +4\n/);
});

interface Described {
  readonly groups: readonly {
    readonly state: string;
    readonly members: readonly { readonly assigned: readonly unknown[] }[];
    readonly offsets: readonly {
      readonly topic: string;
      readonly partition: number;
      readonly offset: number;
      readonly end: number;
      readonly lag: number;
    }[];
  }[];
}

async function offsetsOf(group: string): Promise<string> {
  const { groups: [found] } = await json<Described>(`group describe ${group}`);
  return found!.offsets.map(({ partition, offset, lag }) => `${partition}@${offset}+${lag}`).join(
    " ",
  );
}

test("a group goes on where it was; its offsets can be moved and deleted", async () => {
  await good("topic create grp --partitions 2");
  await good("produce grp --partition 0", { input: "a\nb\nc\n" });
  assert.equal(await good("consume grp -g g1 --count 2"), "a\nb\n");
  assert.equal(await offsetsOf("g1"), "0@2+1 1@0+0");
  assert.equal(await good("consume grp -g g1 --until-end"), "c\n");
  assert.equal(await good("consume grp -g g1 --until-end"), "");
  assert.match(await good("group list"), /^g1 +Empty +classic$/m);
  assert.match(await good("group reset g1 --to earliest --dry-run"), /^grp +0 +3 +0$/m);
  assert.equal(await offsetsOf("g1"), "0@3+0 1@0+0");
  await good("group reset g1 --shift -1 --topic grp:0");
  assert.equal(await offsetsOf("g1"), "0@2+1 1@0+0");
  await good("group reset g1 --to latest");
  await good("group reset g1 --to 1 --topic grp:0");
  assert.equal(await good("consume grp -g g1 --until-end"), "b\nc\n");
  assert.equal(
    await good("group delete-offsets g1 --topic grp:1"),
    "g1 has no offset in grp-1 any more\n",
  );
  assert.equal(await offsetsOf("g1"), "0@3+0");
  assert.equal(await good("consume grp -g g2 --from latest --until-end"), "");
  assert.equal(await offsetsOf("g2"), "0@3+0 1@0+0");
  await fails("group reset nosuch --to earliest", 4, /name a --topic/);
  await fails("group reset g1 --to 0 --shift 1", 2, /one of --to and --shift/);
  assert.equal(await good("group delete g1"), "deleted g1\n");
  await fails("group describe g1", 4, /GROUP_ID_NOT_FOUND/);
  await fails("group delete g1", 4, /GROUP_ID_NOT_FOUND/);
});

/** Longer ones are time-outs. */
const PAUSE_MS_MAX = 2_000;

/** A consumer that runs until its test stops it; its pauses, heartbeats among them, are shorter. */
function running(words: string) {
  const env = createSystemEnv({ logFormat: "text", logLevel: "error" });
  const { clock } = env;
  const hasty = {
    ...clock,
    after: (ms: number, work: () => void) => clock.after(ms <= PAUSE_MS_MAX ? ms / 10 : ms, work),
  };
  const stop = new AbortController();
  let out = "";
  const done = skerry(words, {
    stop: stop.signal,
    env: { ...env, clock: hasty },
    onWrite: (text) => void (out += text),
  });
  return {
    out: () => out,
    async end(): Promise<CliResult> {
      stop.abort();
      return await done;
    },
  };
}

test("two members share the partitions; who is stopped commits and leaves the rest to the other", async () => {
  await good("topic create shared --partitions 2");
  const one = running("consume shared -g team");
  await until("the first member has both partitions", async () => {
    const { code, out } = await skerry("group describe team --json");
    if (code !== 0) return false;
    const [group] = (JSON.parse(out) as Described).groups;
    return group!.state === "Stable" && group!.members.length === 1;
  });
  const two = running("consume shared -g team");
  await until("both are members", async () => {
    const { groups: [group] } = await json<Described>("group describe team");
    return group!.state === "Stable" && group!.members.length === 2 &&
      group!.members.every(({ assigned }) => assigned.length === 1);
  });
  await fails("group delete team", 1, /NON_EMPTY_GROUP: stop its members first/);
  await fails("group reset team --to earliest --topic shared", 1, /stop them first/);
  await good("produce shared --partition 0", { input: "p0\n" });
  await good("produce shared --partition 1", { input: "p1\n" });
  await until("each has its record", () => one.out().length + two.out().length === 6);
  assert.deepEqual([one.out(), two.out()].toSorted(), ["p0\n", "p1\n"]);
  assert.equal((await two.end()).code, 0);
  await good("produce shared --partition 0", { input: "q0\n" });
  await good("produce shared --partition 1", { input: "q1\n" });
  await until("the first has all", () => /q0/.test(one.out()) && /q1/.test(one.out()));
  assert.equal((await one.end()).code, 0);
  assert.equal(await offsetsOf("team"), "0@2+0 1@2+0");
});

test("aborted records are left out of read_committed, and what is open holds it up", async () => {
  await good("topic create txn");
  const kafka = new Kafka({ brokers: [bootstrap], logLevel: logLevel.NOTHING });
  const producer = kafka.producer({
    transactionalId: "cli",
    maxInFlightRequests: 1,
    idempotent: true,
  });
  await producer.connect();
  const write = async (value: string, how: "commit" | "abort" | "open") => {
    const transaction = await producer.transaction();
    await transaction.send({ topic: "txn", messages: [{ value }] });
    if (how !== "open") await transaction[how]();
    return transaction;
  };
  await write("good", "commit");
  await write("bad", "abort");
  const open = await write("open", "open");
  const committed = "consume txn --isolation read_committed --until-end";
  assert.equal(await good(committed), "good\n");
  assert.equal(await good("consume txn --until-end"), "good\nbad\nopen\n");
  await open.commit();
  assert.equal(await good(committed), "good\nopen\n");
  await producer.disconnect();
});

test("a group of the new protocol is described with its members", async () => {
  await good("topic create modern --partitions 2");
  const env = createSystemEnv({ logFormat: "text", logLevel: "error" });
  const address = { host: broker.kafka.host, port: broker.kafka.port };
  const member = await BrokerConnection.open(address, env.clock, 5_000);
  const joined = await member.call(consumerGroupHeartbeatApi, {
    groupId: "kip848",
    memberId: "11111111-1111-1111-1111-111111111111",
    memberEpoch: 0,
    rebalanceTimeoutMs: 30_000,
    subscribedTopicNames: ["modern"],
    topicPartitions: [],
  }, { timeoutMs: 5_000 });
  assert.equal(joined.errorCode, 0, joined.errorMessage ?? "");
  await until("its partitions are assigned", async () => {
    const text = await good("group describe kip848");
    return /^kip848: \w+ \(consumer, assignor uniform\)\n/.test(text) &&
      text.includes("modern:0,1");
  });
  member.close();
});

test("a share group is described, moved, given up and deleted; groups have settings", async () => {
  await good("topic create shares --partitions 2");
  await good("produce shares --partition 0", { input: "a\nb\nc\n" });
  const env = createSystemEnv({ logFormat: "text", logLevel: "error" });
  const address = { host: broker.kafka.host, port: broker.kafka.port };
  const member = await BrokerConnection.open(address, env.clock, 5_000);
  const say = async (memberEpoch: number) => {
    const answer = await member.call(shareGroupHeartbeatApi, {
      groupId: "sharers",
      memberId: "11111111-1111-1111-1111-111111111111",
      memberEpoch,
      subscribedTopicNames: memberEpoch < 0 ? null : ["shares"],
    }, { timeoutMs: 5_000 });
    assert.equal(answer.errorCode, 0, answer.errorMessage ?? "");
    return answer.memberEpoch;
  };
  let epoch = await say(0);
  await until("its partitions are assigned", async () => {
    epoch = await say(epoch);
    const text = await good("group describe sharers");
    return text.startsWith("sharers: Stable (share, assignor simple)\n") &&
      text.includes("shares:0,1");
  });
  assert.match(await good("group list"), /^sharers +Stable +share$/m);
  await fails("group reset sharers --to 1 --topic shares", 1, /NON_EMPTY_GROUP/);
  await say(-1);
  member.close();
  await good("group reset sharers --to 1 --topic shares:0");
  const { groups: [found] } = await json<Described>("group describe sharers");
  assert.deepEqual(
    found!.offsets.map(({ partition, offset, end, lag }) => [
      partition,
      offset,
      end,
      lag,
    ]),
    [[0, 1, 3, 2]],
  );
  await good("group reset sharers --shift 1");
  assert.equal(await offsetsOf("sharers"), "0@2+1");
  await fails("group delete-offsets sharers --topic shares:0", 2, /whole topics only/);
  await good("group delete-offsets sharers --topic shares");
  assert.equal(await offsetsOf("sharers"), "");
  await good("config set group sharers share.auto.offset.reset=earliest");
  assert.equal(await good("config get group sharers share.auto.offset.reset"), "earliest\n");
  await fails("config set group sharers share.session.timeout.ms=1", 1, /greater than or equal/);
  await good("config unset group sharers share.auto.offset.reset");
  assert.equal(await good("group delete sharers"), "deleted sharers\n");
  await fails("group describe sharers", 4, /GROUP_ID_NOT_FOUND/);
});

test("a slow standard output holds up the reading, a closed input does not lose a record", async () => {
  await good("topic create slow");
  const line = "x".repeat(1_000);
  await good("produce slow", { input: `${line}\n`.repeat(3_000) });
  let open: () => void = () => {};
  const gate = new Promise<void>((resolve) => void (open = resolve));
  let pieces = 0;
  const done = skerry("consume slow --until-end", {
    onWrite() {
      pieces += 1;
      return gate;
    },
  });
  await until("the first piece is written", () => pieces > 0);
  for (let turn = 0; turn < 20; turn++) await new Promise((next) => setTimeout(next, 0));
  assert.equal(pieces, 1);
  open();
  assert.equal((await done).out.length, 3_000 * 1_001);
});

test("whichever broker is asked, requests find the leader and the coordinator", async () => {
  const dir = tempDir();
  const options = {
    store: `dir:${dir.path}`,
    httpListen: "off",
    kafka: { "group.initial.rebalance.delay.ms": "0" },
  };
  const first = await createBroker({ ...options, nodeId: 1 });
  // The second node reads of the topic when it starts, not when it looks again.
  await good("topic create wide --partitions 8", { at: `127.0.0.1:${first.kafka.port}` });
  const second = await createBroker({ ...options, nodeId: 2 });
  try {
    const at = `127.0.0.1:${second.kafka.port}`;
    const keys = Array.from({ length: 64 }, (_, i) => `k${i}:v${i}\n`);
    await good("produce wide -k :", { at, input: keys.join("") });
    const { topics: [topic] } = await json<
      { topics: { partitions: { leader: number; end: number }[] }[] }
    >("topic describe wide", { at });
    assert.ok(topic!.partitions.every(({ leader }) => leader === 1));
    assert.equal(topic!.partitions.reduce((sum, { end }) => sum + end, 0), 64);
    const read = await good("consume wide -g both --until-end -k : --format key-value", { at });
    assert.deepEqual(
      read.split("\n").toSorted(),
      ["", ...keys.map((key) => key.trim())].toSorted(),
    );
    await good("topic truncate wide --to latest", { at });
    assert.equal(await good("consume wide --until-end", { at }), "");
    assert.match(await good("group list", { at }), /^both +Empty/m);
    assert.equal(await good("config get broker 2 node.id", { at }), "2\n");
    await good("group delete both", { at });
  } finally {
    await second.close();
    await first.close();
    dir.remove();
  }
});
