/** `skerry topic list|describe|create|alter|delete|truncate`. */
import { createTopicsApi } from "../../protocol/message/19_create_topics.ts";
import { deleteTopicsApi } from "../../protocol/message/20_delete_topics.ts";
import { createPartitionsApi } from "../../protocol/message/37_create_partitions.ts";
import { ZERO_UUID } from "../../lib/uuid.ts";
import type { TopicView } from "../client/cluster.ts";
import { brokerFault, checkCode, CLIENT_EXIT, ClientFault } from "../client/fault.ts";
import { type Bounds, boundsOf } from "../client/place.ts";
import { answerOutcomes, countOf, outcomeOf, table, writeJson } from "./answer.ts";
import type { Call, Command } from "./command.ts";
import { type Setting, settingsOf } from "./configs.ts";
import { type OptionSpec, parsePair } from "./syntax.ts";
import { TRUNCATE } from "./truncate.ts";

const NAMES_MAX = 10_000;
const PARTITIONS_MAX = 1_000_000;
const REPLICATION_MAX = 32_767;
const DRY_RUN: OptionSpec = { value: null, help: "checks and changes nothing" };

async function list({ words, cluster, io }: Call): Promise<number> {
  const all = await cluster.retrying((leftMs) => cluster.topics(null, { leftMs }));
  const shown = all.filter(({ isInternal }) => words.isOn("internal") || !isInternal)
    .toSorted((a, b) => a.name < b.name ? -1 : 1);
  const topics = shown.map(({ name, topicId, isInternal, partitions }) => ({
    name,
    id: topicId,
    internal: isInternal,
    partitions: partitions.length,
  }));
  if (words.json) await writeJson(io, { topics });
  else {
    const rows = topics.map(({ name, partitions }) => [name, String(partitions)]);
    await io.write(table(["TOPIC", "PARTITIONS"], rows));
  }
  return CLIENT_EXIT.ok;
}

interface Described {
  readonly topic: TopicView;
  readonly bounds: ReadonlyMap<number, Bounds>;
  /** Those that the topic has for itself. */
  readonly settings: readonly Setting[];
}

async function describeOne({ cluster }: Call, topic: TopicView): Promise<Described> {
  // Whoever has no leader has nobody to ask.
  const led = topic.partitions.filter(({ leader }) => leader >= 0);
  const numbers = led.map(({ partition }) => partition);
  const bounds = numbers.length === 0
    ? new Map<number, Bounds>()
    : await boundsOf(cluster, topic.name, numbers);
  const settings = await settingsOf(cluster, { type: "topic", name: topic.name }, []);
  return { topic, bounds, settings: settings.filter(({ source }) => source === "topic") };
}

function describedJson({ topic, bounds, settings }: Described): object {
  return {
    name: topic.name,
    id: topic.topicId,
    internal: topic.isInternal,
    configs: Object.fromEntries(settings.map(({ name, value }) => [name, value])),
    partitions: topic.partitions.map((one) => ({
      ...one,
      start: bounds.get(one.partition)?.start ?? null,
      end: bounds.get(one.partition)?.end ?? null,
    })),
  };
}

function describedText({ topic, bounds, settings }: Described): string {
  const rows = topic.partitions.map(({ partition, leader, leaderEpoch }) => {
    const { start = "-", end = "-" } = bounds.get(partition) ?? {};
    return [partition, leader < 0 ? "-" : leader, leaderEpoch, start, end].map(String);
  });
  const set = settings.map(({ name, value }) => `${name}=${value}`);
  return [
    `${topic.name}  ${countOf(topic.partitions.length, "partition")}  id ${topic.topicId}\n`,
    ...(set.length > 0 ? [`set: ${set.join("  ")}\n`] : []),
    table(["PARTITION", "LEADER", "EPOCH", "START", "END"], rows),
  ].join("");
}

async function describe(call: Call): Promise<number> {
  const { words, cluster, io } = call;
  const found: Described[] = [];
  const faults: ClientFault[] = [];
  for (const name of words.operands) {
    try {
      const topic = await cluster.retrying((leftMs) => cluster.topic(name, { leftMs }));
      found.push(await describeOne(call, topic));
    } catch (fault) {
      if (!(fault instanceof ClientFault)) throw fault;
      faults.push(fault);
    }
  }
  if (words.json) await writeJson(io, { topics: found.map(describedJson) });
  else await io.write(found.map(describedText).join("\n"));
  for (const { message } of faults) io.note(message);
  if (faults.length === 0) return CLIENT_EXIT.ok;
  return found.length > 0 ? CLIENT_EXIT.failed : faults[0]!.exit;
}

async function create({ words, cluster, io }: Call): Promise<number> {
  const name = words.operands[0]!;
  const numPartitions = words.integer("partitions", 1, PARTITIONS_MAX) ?? -1;
  const replicationFactor = words.integer("replication", 1, REPLICATION_MAX) ?? -1;
  const configs = words.all("config").map((text) => {
    const [key, value] = parsePair(text, "--config");
    return { name: key, value };
  });
  const dryRun = words.isOn("dry-run");
  const outcome = await outcomeOf(name, () =>
    cluster.retrying(async (leftMs) => {
      const connection = await cluster.any();
      const { topics: [answer] } = await connection.call(createTopicsApi, {
        topics: [{ name, numPartitions, replicationFactor, assignments: [], configs }],
        timeoutMs: Math.ceil(leftMs),
        validateOnly: dryRun,
      }, { timeoutMs: leftMs });
      if (answer === undefined) throw brokerFault(`create topic ${name}`, "UNKNOWN_SERVER_ERROR");
      const { errorCode: code, errorMessage: message, numPartitions: partitions } = answer;
      checkCode(`create topic ${name}`, code, { message });
      const count = partitions > 0 ? ` with ${countOf(partitions, "partition")}` : "";
      return {
        said: dryRun ? `${name} would be created${count}` : `created ${name}${count}`,
        detail: { created: !dryRun, ...(partitions > 0 ? { partitions } : {}) },
      };
    }));
  const isThere = outcome.fault?.error === "TOPIC_ALREADY_EXISTS" && words.isOn("if-not-exists");
  const told = isThere
    ? { name, fault: null, said: `${name} is there already`, detail: { created: false } }
    : outcome;
  return await answerOutcomes(io, words.json, [told]);
}

async function remove({ words, cluster, io }: Call): Promise<number> {
  const names = [...new Set(words.operands)];
  const outcomes = await Promise.all(
    names.map((name) =>
      outcomeOf(name, () =>
        cluster.retrying(async (leftMs) => {
          const connection = await cluster.any();
          const { responses: [answer] } = await connection.call(deleteTopicsApi, {
            topics: [{ name, topicId: ZERO_UUID }],
            topicNames: [name],
            timeoutMs: Math.ceil(leftMs),
          }, { timeoutMs: leftMs });
          const code = answer?.errorCode ?? 0;
          const message = answer?.errorMessage ?? null;
          checkCode(`delete topic ${name}`, code, { message });
          return { said: `deleted ${name}`, detail: { deleted: true } };
        }))
    ),
  );
  const told = outcomes.map((one) =>
    words.isOn("if-exists") && one.fault?.exit === CLIENT_EXIT.notFound
      ? {
        name: one.name,
        fault: null,
        said: `${one.name} is not there`,
        detail: { deleted: false },
      }
      : one
  );
  return await answerOutcomes(io, words.json, told);
}

async function alter({ words, cluster, io }: Call): Promise<number> {
  const name = words.operands[0]!;
  words.required("partitions");
  const count = words.integer("partitions", 1, PARTITIONS_MAX)!;
  const dryRun = words.isOn("dry-run");
  const outcome = await outcomeOf(name, () =>
    cluster.retrying(async (leftMs) => {
      const connection = await cluster.any();
      const { results: [answer] } = await connection.call(createPartitionsApi, {
        topics: [{ name, count, assignments: null }],
        timeoutMs: Math.ceil(leftMs),
        validateOnly: dryRun,
      }, { timeoutMs: leftMs });
      const message = answer?.errorMessage ?? null;
      const code = answer?.errorCode ?? 0;
      checkCode(`alter topic ${name}`, code, { message });
      const would = dryRun ? "would have" : "has";
      return {
        said: `${name} ${would} ${countOf(count, "partition")}`,
        detail: { partitions: count },
      };
    }));
  return await answerOutcomes(io, words.json, [outcome]);
}

export const TOPIC_COMMANDS: readonly Command[] = [
  {
    name: "topic list",
    operands: "",
    operandsMin: 0,
    operandsMax: 0,
    help: "All topics.",
    options: { "internal": { value: null, help: "those of the broker itself too" } },
    run: list,
  },
  {
    name: "topic describe",
    operands: "TOPIC...",
    operandsMin: 1,
    operandsMax: NAMES_MAX,
    help: "Partitions with leaders and offsets, and what is set.",
    options: {},
    run: describe,
  },
  {
    name: "topic create",
    operands: "TOPIC",
    operandsMin: 1,
    operandsMax: 1,
    help: "Creates a topic.",
    options: {
      "partitions": { value: "N", help: "default: what the broker has in num.partitions" },
      "replication": { value: "N", help: "for other brokers: here the bucket is the replica" },
      "config": { value: "KEY=VALUE", repeats: true, help: "a setting, may be repeated" },
      "if-not-exists": { value: null, help: "accepts one that is there, as it is" },
      "dry-run": DRY_RUN,
    },
    run: create,
  },
  {
    name: "topic alter",
    operands: "TOPIC",
    operandsMin: 1,
    operandsMax: 1,
    help: "Adds partitions; keys may move to other ones. Settings: skerry config set.",
    options: {
      "partitions": { value: "N", help: "how many it shall have" },
      "dry-run": DRY_RUN,
    },
    run: alter,
  },
  {
    name: "topic delete",
    operands: "TOPIC...",
    operandsMin: 1,
    operandsMax: NAMES_MAX,
    help: "Deletes topics with all their records.",
    options: { "if-exists": { value: null, help: "accepts those that are not there" } },
    run: remove,
  },
  TRUNCATE,
];
