/**
 * What a client's program has said, and the tables made of it. A program prints a line per behaviour,
 * `behaviour<TAB>pass|fail|skip<TAB>detail`, and one `version<TAB>text`; whatever else it prints is kept
 * for whoever looks for the reason. What it has not told of has failed: nothing is left out silently.
 */
import { type Kind, KINDS } from "./behaviours.ts";

export type Verdict = "pass" | "fail" | "skip";

export interface Result {
  readonly verdict: Verdict;
  readonly detail: string;
}

export interface Ran {
  readonly client: string;
  readonly kind: Kind;
  readonly version: string;
  readonly results: ReadonlyMap<string, Result>;
  /** Of the whole client: why it was not run, or how its program ended. */
  readonly note: string | null;
}

const LINE = /^([^\t]+)\t(pass|fail|skip)\t?(.*)$/;
const VERSION = /^version\t(.+)$/m;

/** Why the client could not be run; it has no results. */
export function notRun(client: string, kind: Kind, why: string): Ran {
  return { client, kind, version: "", results: new Map(), note: `not run: ${why}` };
}

/** `ended` is null when the program ended by itself with 0. */
export function readResults(
  client: string,
  kind: Kind,
  output: string,
  ended: string | null,
): Ran {
  const known: readonly string[] = KINDS[kind];
  const results = new Map<string, Result>();
  for (const line of output.split("\n")) {
    const [, name, verdict, detail] = LINE.exec(line.trimEnd()) ?? [];
    if (name === undefined) continue;
    if (!known.includes(name)) results.set(name, failed("no behaviour of the list"));
    else if (results.has(name)) results.set(name, failed("told twice"));
    else results.set(name, { verdict: verdict as Verdict, detail: detail ?? "" });
  }
  for (const name of known) {
    if (!results.has(name)) {
      results.set(name, failed(`no result${ended === null ? "" : `: ${ended}`}`));
    }
  }
  const version = VERSION.exec(output)?.[1]?.trim() ?? "";
  return { client, kind, version, results, note: ended };
}

function failed(detail: string): Result {
  return { verdict: "fail", detail };
}

export function count(all: readonly Ran[], verdict: Verdict): number {
  const results = all.flatMap(({ results }) => [...results.values()]);
  return results.filter((result) => result.verdict === verdict).length;
}

const SIGNS: Readonly<Record<Verdict, string>> = { pass: "✓", fail: "✗", skip: "–" };

/** Behaviours down, clients across. */
export function rowsOf(all: readonly Ran[], kind: Kind): readonly (readonly string[])[] {
  const columns = all.filter((ran) => ran.kind === kind && ran.results.size > 0);
  if (columns.length === 0) return [];
  const names = new Set<string>([
    ...KINDS[kind],
    ...columns.flatMap((ran) => [...ran.results.keys()]),
  ]);
  return [
    ["", ...columns.map(({ client }) => client)],
    ["version", ...columns.map(({ version }) => version)],
    ...[...names].map((name) => [
      name,
      ...columns.map(({ results }) => SIGNS[results.get(name)?.verdict ?? "fail"]),
    ]),
  ];
}

export function plainTable(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, at) => Math.max(...rows.map((row) => row[at]!.length)));
  return rows.map((row) => row.map((cell, at) => cell.padEnd(widths[at]!)).join("  ").trimEnd())
    .join("\n");
}

function escaped(text: string): string {
  return text.replaceAll("|", "\\|").replaceAll("<", "&lt;");
}

function markdownTable([head, ...rest]: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]) => `| ${cells.map(escaped).join(" | ")} |`;
  return [line(head!), `|${head!.map(() => " --- ").join("|")}|`, ...rest.map(line)].join("\n");
}

/** Failures with their details, and clients that were not run. */
export function remarks(all: readonly Ran[]): string[] {
  return all.flatMap(({ client, results, note }) => [
    ...(results.size === 0 && note !== null ? [`${client}: ${note}`] : []),
    ...[...results].filter(([, { verdict }]) => verdict === "fail")
      .map(([name, { detail }]) => `${client}, ${name}: ${detail}`),
  ]);
}

/** Why cells of the table have no verdict; one line per client and reason. */
export function lacks(all: readonly Ran[]): string[] {
  return all.flatMap(({ client, results }) => {
    const reasons = new Map<string, string[]>();
    for (const [name, { verdict, detail }] of results) {
      if (verdict === "skip") reasons.set(detail, [...(reasons.get(detail) ?? []), name]);
    }
    return [...reasons].map(([why, names]) => `${client}: ${why} (${names.join(", ")})`);
  });
}

/** The generated part of docs/compat.md. */
export function markdown(all: readonly Ran[]): string {
  const section = (title: string, lines: readonly string[]) =>
    lines.length === 0 ? [] : [title, "", ...lines.map((line) => `- ${escaped(line)}`), ""];
  const table = (title: string, kind: Kind) => {
    const rows = rowsOf(all, kind);
    return rows.length === 0 ? [] : [title, "", markdownTable(rows), ""];
  };
  return [
    `${count(all, "pass")} passed, ${count(all, "fail")} failed; ${
      count(all, "skip")
    } are not offered by the client.`,
    "",
    ...table("## Clients", "client"),
    ...table("## Kafka's command line tools", "tools"),
    ...table("## Kafka Streams", "streams"),
    ...table("## Share groups", "share"),
    ...table("## Kafka Connect", "connect"),
    ...table("## A schema registry", "registry"),
    ...section("## Failed, or not run", remarks(all)),
    ...section("## Not offered", lacks(all)),
  ].join("\n");
}

const REGION = /(<!-- from npm run compat -->\n)[\s\S]*?(<!-- end -->)/;

export function withTables(doc: string, all: readonly Ran[]): string {
  if (!REGION.test(doc)) throw new Error("there is no place for the tables");
  return doc.replace(
    REGION,
    (_, begin: string, end: string) => `${begin}\n${markdown(all)}\n${end}`,
  );
}
