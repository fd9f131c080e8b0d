/**
 * Writes docs/apis.md from the head comments of the Kafka handlers. `--check` only says whether it is
 * fresh. The section behind the marker is written by hand and kept.
 */
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";

const HANDLERS = "src/broker/api";
const TARGET = "docs/apis.md";
const MARKER = "<!-- written by hand from here -->";

/** The head comment without its stars: paragraphs that begin with `Word:` become list items. */
function headOf(text: string): string[] {
  const head = /^\/\*\*\n([\s\S]*?)\n \*\//.exec(text)?.[1] ?? "";
  const lines = head.split("\n").map((line) => line.replace(/^ \* ?/, ""));
  const items: string[] = [];
  for (const line of lines) {
    if (/^[A-Z][a-z ]+:/.test(line) || items.length === 0) items.push(line);
    else items[items.length - 1] += ` ${line}`;
  }
  return items;
}

function section(file: string): string {
  const [title, ...rest] = headOf(readFileSync(join(HANDLERS, file), "utf8"));
  const match = /^(\w+) \(key (\d+)\), versions? ([\d-]+)/.exec(title!);
  if (match === null) {
    throw new Error(`${file}: the head does not begin with "Name (key N), versions A-B"`);
  }
  const items = rest.map((item) => `- ${item.replace(/^([A-Z][a-z ]+):/, "**$1.**")}`);
  return [`## ${match[1]} (${match[2]}): ${match[3]}`, "", ...items, ""].join("\n");
}

export function renderApis(byHand: string): string {
  const files = readdirSync(HANDLERS).filter((file) => /^\d\d_.*(?<!\.test)\.ts$/.test(file))
    .toSorted();
  return [
    "# Kafka APIs",
    "",
    "What ApiVersions lists, in order of the keys. Written by `bun scripts/write_docs.ts` from the handlers.",
    "",
    ...files.map(section),
    `${MARKER}${byHand}`,
  ].join("\n");
}

function byHandOf(text: string): string {
  return text.split(MARKER)[1] ?? "\n";
}

/** Only words count: the formatter owns the line breaks. */
export function sameWords(a: string, b: string): boolean {
  const words = (text: string) => text.split(/\s+/).join(" ").trim();
  return words(a) === words(b);
}

export function currentApis(): { readonly written: string; readonly rendered: string } {
  const written = readFileSync(TARGET, "utf8");
  return { written, rendered: renderApis(byHandOf(written)) };
}

if (import.meta.main) {
  const { written, rendered } = currentApis();
  if (process.argv.includes("--check")) process.exit(sameWords(written, rendered) ? 0 : 1);
  writeFileSync(TARGET, rendered);
}
