/** `skerry config get|set|unset`: settings of a topic, a broker or a group. */
import { CLIENT_EXIT } from "../client/fault.ts";
import { answerOutcomes, table, writeJson } from "./answer.ts";
import type { Call, Command } from "./command.ts";
import { ALL_BROKERS, changeSettings, type Resource, resourceText, settingsOf } from "./configs.ts";
import type { OptionSpec } from "./syntax.ts";
import { parsePair, WordFault } from "./syntax.ts";

const DRY_RUN: OptionSpec = { value: null, help: "checks and changes nothing" };
const WORDS_MAX = 1_000;

/** The first two operands. */
function resourceOf([type, name]: readonly string[]): Resource {
  if (type !== "topic" && type !== "broker" && type !== "group") {
    throw new WordFault(`${type}: allowed are topic, broker and group`);
  }
  const isBroker = name === ALL_BROKERS || /^\d+$/.test(name!);
  if (type === "broker" && !isBroker) {
    throw new WordFault(`${name}: allowed are the id of a broker and ${ALL_BROKERS}`);
  }
  return { type, name: name! };
}

async function get({ words, cluster, io }: Call): Promise<number> {
  const resource = resourceOf(words.operands);
  const keys = words.operands.slice(2);
  const all = await settingsOf(cluster, resource, keys);
  const shown = words.isOn("all") || keys.length > 0
    ? all
    : all.filter(({ isDefault }) => !isDefault);
  if (words.json) {
    const configs = shown.map(({ name, value, source, readOnly }) => (
      { name, value, source, readOnly }
    ));
    await writeJson(io, { resource, configs });
  } else if (keys.length === 1) {
    // What a script takes with $( ).
    await io.write(`${shown[0]!.value ?? ""}\n`);
  } else {
    const rows = shown.map(({ name, value, source }) => [name, value ?? "", source]);
    await io.write(table(["NAME", "VALUE", "SET BY"], rows));
  }
  return CLIENT_EXIT.ok;
}

async function change(
  { words, cluster, io }: Call,
  changes: readonly { readonly name: string; readonly value: string | null }[],
): Promise<number> {
  const resource = resourceOf(words.operands);
  const dryRun = words.isOn("dry-run");
  await changeSettings(cluster, resource, changes, dryRun);
  const outcomes = changes.map(({ name, value }) => {
    const done = value === null ? `${name} is back at its default` : `${name}=${value}`;
    const said = dryRun ? `${name} would be accepted` : done;
    return { name, fault: null, said: `${resourceText(resource)}: ${said}`, detail: { value } };
  });
  return await answerOutcomes(io, words.json, outcomes);
}

export const CONFIG_COMMANDS: readonly Command[] = [
  {
    name: "config get",
    operands: `topic|broker|group NAME [KEY...]`,
    operandsMin: 2,
    operandsMax: WORDS_MAX,
    help: "What is set, or the keys that are named; NAME of a broker is its id.",
    options: { "all": { value: null, help: "defaults too" } },
    run: get,
  },
  {
    name: "config set",
    operands: `topic|broker|group NAME KEY=VALUE...`,
    operandsMin: 3,
    operandsMax: WORDS_MAX,
    help: `Changes settings, all or none; the broker ${ALL_BROKERS} stands for all of them.`,
    options: { "dry-run": DRY_RUN },
    run: (call) =>
      change(
        call,
        call.words.operands.slice(2).map((word) => {
          const [name, value] = parsePair(word, "setting");
          return { name, value };
        }),
      ),
  },
  {
    name: "config unset",
    operands: `topic|broker|group NAME KEY...`,
    operandsMin: 3,
    operandsMax: WORDS_MAX,
    help: "Brings defaults back, all or none.",
    options: { "dry-run": DRY_RUN },
    run: (call) =>
      change(call, call.words.operands.slice(2).map((name) => ({ name, value: null }))),
  },
];
