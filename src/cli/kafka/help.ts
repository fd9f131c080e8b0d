/** Help texts of the commands that speak to a broker, and the table of their exit codes. Pure. */
import { COMMON_OPTIONS, type OptionSpec, type Syntax } from "./syntax.ts";

/** Code and meaning. */
export const EXIT_ROWS: readonly (readonly [code: number, meaning: string])[] = [
  [0, "done"],
  [1, "the broker refused, some of several failed, or the data cannot be used"],
  [2, "the words of the command are wrong"],
  [3, "no connection, or no outcome within --timeout"],
  [4, "no such topic, partition, group or key"],
  [130, "the second Ctrl-C cut it off"],
  [141, "nobody reads what it prints any more"],
];

const EXIT_LINES = [
  "Exit codes:",
  ...EXIT_ROWS.map(([code, meaning]) => `${String(code).padStart(3)}  ${meaning}`),
];

function optionRows(options: Readonly<Record<string, OptionSpec>>): string[] {
  const rows = Object.entries(options).map(([name, { value, short, fallback, help }]) => ({
    left: `${short === undefined ? "    " : `-${short}, `}--${name}${
      value === null ? "" : ` ${value}`
    }`,
    right: fallback === undefined ? help : `${help} [${fallback}]`,
  }));
  const width = Math.max(...rows.map(({ left }) => left.length));
  return rows.map(({ left, right }) => `  ${left.padEnd(width)}  ${right}`);
}

export function usageLine({ name, operands, options }: Syntax): string {
  const more = Object.keys(options).length > 0 ? " [options]" : "";
  return `skerry ${name}${operands === "" ? "" : ` ${operands}`}${more}`;
}

export function commandHelp(syntax: Syntax): string {
  const own = optionRows(syntax.options);
  return [
    `Usage: ${usageLine(syntax)}`,
    "",
    syntax.help,
    "",
    ...(own.length > 0 ? ["Options, with [defaults]:", ...own, ""] : []),
    "Options of every such command:",
    ...optionRows(COMMON_OPTIONS),
    "",
    ...EXIT_LINES,
    "",
  ].join("\n");
}

/** Of `skerry topic`, say: its commands in a line each. */
export function familyHelp(word: string, all: readonly Syntax[]): string {
  const rows = all.map((syntax) => `  ${usageLine(syntax)}\n      ${syntax.help}`);
  return [
    `Commands of skerry ${word}; each knows --help:`,
    ...rows,
    "",
    "Options of every such command:",
    ...optionRows(COMMON_OPTIONS),
    "",
    ...EXIT_LINES,
    "",
  ].join("\n");
}
