/**
 * Writes the generated parts of the documentation from the code: what stands between
 * `<!-- from the code: NAME -->` and `<!-- end -->`. NAME is a table below, or a source file, whose head
 * comment is shown. `--check` only says whether all is fresh.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { BROKER_PROPERTIES } from "../src/broker/broker_properties.ts";
import { TOPIC_PROPERTIES } from "../src/broker/topic_properties.ts";
import { environmentName, OPTION_NAMES, OPTIONS } from "../src/config/options.ts";
import type { Property } from "../src/broker/property.ts";
import { COMMANDS } from "../src/cli/kafka/run.ts";
import { EXIT_ROWS, usageLine } from "../src/cli/kafka/help.ts";
import { COMMON_OPTIONS, type OptionSpec } from "../src/cli/kafka/syntax.ts";
import { DESCRIBED_ROUTES } from "../src/http/app.ts";
import { METRICS } from "../src/env/metric_catalog.ts";
import * as limits from "../src/lib/limits.ts";
import { SECTIONS } from "../tests/differential/allowed.ts";

const HANDLERS = "src/broker/api";
const REGION = /(<!-- from the code: (\S+) -->\n)([\s\S]*?)(<!-- end -->)/g;
const DOCS = "docs";

/** The head comment of a source file, line by line, without its stars. */
function headOf(file: string): string[] {
  const text = readFileSync(file, "utf8");
  const long = /^\/\*\*\n([\s\S]*?)\n \*\//.exec(text)?.[1];
  const short = /^\/\*\* (.*) \*\/\n/.exec(text)?.[1];
  return (long ?? short ?? "").split("\n").map((line) => line.replace(/^ \* ?/, ""));
}

// --- docs/apis.md -------------------------------------------------------------------------------

/** Paragraphs that begin with `Word:` become list items. */
function apiSection(file: string): string[] {
  const items: string[] = [];
  for (const line of headOf(join(HANDLERS, file))) {
    if (/^[A-Z][a-z ]+:/.test(line) || items.length === 0) items.push(line);
    else items[items.length - 1] += ` ${line}`;
  }
  const [title, ...rest] = items;
  const match = /^(\w+) \(key (\d+)\), versions? ([\d-]+)/.exec(title!);
  if (match === null) {
    throw new Error(`${file}: the head does not begin with "Name (key N), versions A-B"`);
  }
  const list = rest.map((item) => `- ${item.replace(/^([A-Z][a-z ]+):/, "**$1.**")}`);
  return [`## ${match[1]} (${match[2]}): ${match[3]}`, "", ...list, ""];
}

function handlers(): string[] {
  return readdirSync(HANDLERS).filter((file) => /^\d\d_.*(?<!\.test)\.ts$/.test(file)).toSorted();
}

function apis(): string[] {
  return handlers().flatMap(apiSection);
}

// --- docs/kafka_differences.md -------------------------------------------------------------------

/** What the heads of the handlers call deviations. */
function deviations(): string[] {
  const items = handlers().flatMap((file) => {
    const [title, , ...lines] = apiSection(file);
    const name = title!.replace("## ", "").replace(/ \(.*/, "");
    const found = lines.find((line) => line.startsWith("- **Deviations.**"));
    return found === undefined ? [] : [found.replace("Deviations", name)];
  });
  return [...items, ""];
}

/** The reasons of the comparison with Kafka, once each. */
function comparedAnswers(): string[] {
  return SECTIONS.flatMap(({ title, rules }) => {
    const reasons = new Set(rules.map(({ reason }) => reason));
    const own = [...reasons].filter((reason) => !reason.startsWith("Follows from"));
    return [`### ${title}`, "", ...own.map((reason) => `- ${reason}`), ""];
  });
}

// --- docs/formats.md ----------------------------------------------------------------------------

/** Text as it is; indented lines are a layout and keep their columns. */
function head(file: string): string[] {
  const text = headOf(file).join("\n")
    .replace(/(?:^ {2}.*(?:\n|$))+/gm, (layout) => {
      const lines = layout.trimEnd().split("\n").map((line) => line.slice(2));
      return `\`\`\`text\n${lines.join("\n")}\n\`\`\`\n`;
    });
  return [`[${file}](../${file})`, "", text, ""];
}

// --- tables -------------------------------------------------------------------------------------

function table(columns: readonly string[], rows: readonly (readonly string[])[]): string[] {
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell) => cell.replaceAll("|", "\\|")).join(" | ")} |`;
  return [line(columns), line(columns.map(() => "---")), ...rows.map(line), ""];
}

function code(text: string): string {
  return text === "" ? "" : `\`${text}\``;
}

function options(): string[] {
  const rows = OPTION_NAMES.map((name) => {
    const { fallback, allowed, help } = OPTIONS[name];
    return [code(`--${name}`), code(environmentName(name)), code(fallback ?? ""), allowed, help];
  });
  return table(["option", "variable", "default", "allowed", "what"], rows);
}

function properties(all: readonly Property[]): string[] {
  const rows = all.map(({ name, fallback, type, words, documentation, dynamic }) => [
    code(name),
    words === undefined ? type : words.join(", "),
    code(fallback),
    dynamic === true ? `${documentation} Live.` : documentation,
  ]);
  return table(["property", "type", "default", "what"], rows);
}

const UNITS: Readonly<Record<string, readonly (readonly [number, string])[]>> = {
  BYTES: [[2 ** 20, "MiB"], [2 ** 10, "KiB"], [1, "bytes"]],
  MS: [[86_400_000, "d"], [3_600_000, "h"], [60_000, "min"], [1_000, "s"], [1, "ms"]],
};

/** The unit stands last in a limit's name, before MAX or MIN. */
function amount(name: string, value: number): string {
  const unit = UNITS[/(?<!_PER)_(BYTES|MS)(_MAX|_MIN)?$/.exec(name)?.[1] ?? ""] ?? [];
  const [size, word] = unit.find(([each]) => value % each === 0) ?? [1, ""];
  return `${(value / size).toLocaleString("en")} ${word}`.trim();
}

function limitRows(): string[] {
  const files = [
    "src/lib/limits.ts",
    "src/lib/clean_limits.ts",
    "src/lib/compaction_limits.ts",
    "src/lib/transaction_limits.ts",
    "src/lib/read_limits.ts",
    "src/lib/http_limits.ts",
  ];
  const source = files.map((path) => readFileSync(path, "utf8")).join("");
  const found = source.matchAll(/\/\*\*\s*((?:(?!\*\/)[\s\S])*?)\s*\*\/\nexport const (\w+)/g);
  const values = limits as Readonly<Record<string, number>>;
  const rows = [...found].map(([, why, name]) => {
    const text = why!.replace(/(^|\n )\* /g, " ").trim();
    return [code(name!), amount(name!, values[name!]!), text];
  });
  return table(["limit", "value", "why"], rows);
}

function metrics(): string[] {
  const rows = Object.entries(METRICS).map(([name, { kind, labels, help, bad }]) => [
    code(name),
    kind,
    labels.join(", "),
    help,
    bad ?? "",
  ]);
  return table(["metric", "type", "labels", "what", "when it is bad"], rows);
}

function optionTable(all: Readonly<Record<string, OptionSpec>>): string[] {
  const rows = Object.entries(all).map(([name, { value, short, fallback, help }]) => [
    code(`--${name}${value === null ? "" : ` ${value}`}`) +
    (short === undefined ? "" : `, ${code(`-${short}`)}`),
    code(fallback ?? ""),
    help,
  ]);
  return rows.length === 0 ? [] : table(["option", "default", "what"], rows);
}

/** docs/cli.md: every command with its options. */
function commands(): string[] {
  return [
    "Options of all of them:",
    "",
    ...optionTable(COMMON_OPTIONS),
    ...COMMANDS.flatMap((command) => [
      `### ${command.name}`,
      "",
      code(usageLine(command)),
      "",
      command.help,
      "",
      ...optionTable(command.options),
    ]),
  ];
}

// --- docs/http.md -------------------------------------------------------------------------------

/** Where the words about a chapter of routes begin. */
const CHAPTERS: Readonly<Record<string, string>> = {
  produce: "#produce",
  read: "#read",
  groups: "#groups",
  push: "#push",
  topics: "#topics",
  cluster: "#cluster",
  sockets: "#websockets",
  system: "#health",
};

/** Routes of one chapter stand together, in the order of the table. */
function httpRoutes(): string[] {
  const rows = Object.keys(CHAPTERS).flatMap((tag) =>
    DESCRIBED_ROUTES.filter((one) => one.tag === tag)
      .map((
        { method, path, summary },
      ) => [code(`${method} ${path}`), summary, `[${tag}](${CHAPTERS[tag]})`])
  );
  return table(["route", "what", "chapter"], rows);
}

const TABLES: Readonly<Record<string, () => string[]>> = {
  "apis": apis,
  "deviations": deviations,
  "compared-answers": comparedAnswers,
  "cli": commands,
  "cli-exits": () => table(["exit code", "meaning"], EXIT_ROWS.map((row) => row.map(String))),
  "options": options,
  "http-routes": httpRoutes,
  "broker-properties": () => properties([...BROKER_PROPERTIES.values()]),
  "topic-properties": () => properties(TOPIC_PROPERTIES),
  "limits": limitRows,
  "metrics": metrics,
};

// --- pages --------------------------------------------------------------------------------------

export interface Page {
  readonly path: string;
  readonly written: string;
  readonly rendered: string;
}

function render(name: string): string {
  const lines = TABLES[name]?.() ?? head(name);
  return `\n${lines.join("\n")}\n`;
}

/** Every page with a generated part, as it stands and as it should. */
export function generatedPages(): readonly Page[] {
  return readdirSync(DOCS).filter((file) => file.endsWith(".md")).map((file) => {
    const path = join(DOCS, file);
    const written = readFileSync(path, "utf8");
    const rendered = written.replace(
      REGION,
      (_, begin: string, name: string, _old: string, end: string) =>
        `${begin}${render(name)}${end}`,
    );
    return { path, written, rendered };
  }).filter(({ written }) => written.includes("<!-- from the code: "));
}

/** Only words count: the formatter owns line breaks, columns and escapes. */
export function sameWords(a: string, b: string): boolean {
  const words = (text: string) =>
    text.replace(/-{3,}/g, "---").replaceAll("\\", "").split(/\s+/).join(" ").trim();
  return words(a) === words(b);
}

if (import.meta.main) {
  const stale = generatedPages().filter(({ written, rendered }) => !sameWords(written, rendered));
  for (const { path } of stale) console.log(path);
  if (process.argv.includes("--check")) process.exit(stale.length === 0 ? 0 : 1);
  for (const { path, rendered } of stale) writeFileSync(path, rendered);
}
