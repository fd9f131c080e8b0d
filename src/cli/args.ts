/** Command line to words: subcommand, option values, repeated --set, and the help text. Pure. */
import { environmentName, OPTION_NAMES, OPTIONS } from "../config/options.ts";

export interface Arguments {
  /** The first word; `help` when there is none. */
  readonly command: string;
  readonly flags: Readonly<Record<string, string>>;
  readonly sets: readonly string[];
  /** --config FILE. */
  readonly configFile: string | null;
  readonly help: boolean;
  readonly version: boolean;
  readonly errors: readonly string[];
}

interface Collected {
  readonly flags: Record<string, string>;
  readonly sets: string[];
  readonly words: string[];
  readonly errors: string[];
  configFile: string | null;
  help: boolean;
  version: boolean;
}

/** Options that may stand without a value. */
const BARE = new Set(["s3-path-style"]);

function collectValue(name: string, value: string, into: Collected): void {
  if (name === "set") into.sets.push(value);
  else if (name === "config") into.configFile = value;
  else if (name in into.flags) into.errors.push(`Cannot use --${name}: given twice`);
  else into.flags[name] = value;
}

function collectWord(word: string, next: string | undefined, into: Collected): number {
  if (word === "--help" || word === "-h") into.help = true;
  else if (word === "--version" || word === "-V") into.version = true;
  else if (!word.startsWith("--")) into.words.push(word);
  else {
    const equals = word.indexOf("=");
    const name = equals < 0 ? word.slice(2) : word.slice(2, equals);
    if (equals >= 0) collectValue(name, word.slice(equals + 1), into);
    else if (BARE.has(name) && next !== "true" && next !== "false") {
      collectValue(name, "true", into);
    } else if (next === undefined) into.errors.push(`Cannot use --${name}: no value given`);
    else {
      collectValue(name, next, into);
      return 2;
    }
  }
  return 1;
}

export function parseArguments(argv: readonly string[]): Arguments {
  const into: Collected = {
    flags: {},
    sets: [],
    words: [],
    errors: [],
    configFile: null,
    help: false,
    version: false,
  };
  for (let i = 0; i < argv.length;) i += collectWord(argv[i]!, argv[i + 1], into);
  const [command = "help", ...extra] = into.words;
  for (const word of extra) {
    into.errors.push(`Cannot use ${JSON.stringify(word)}: one command at a time`);
  }
  return { ...into, command };
}

export function helpText(version: string): string {
  const rows = OPTION_NAMES.map((name) => {
    const option = OPTIONS[name];
    const fallback = option.fallback === null ? "" : ` [${option.fallback}]`;
    return `  --${name.padEnd(15)} ${option.allowed}${fallback}\n  ${"".padEnd(17)} ${option.help}`;
  });
  return [
    `skerry ${version}: a Kafka-compatible broker over one bucket`,
    "",
    "Usage: skerry serve [options]",
    "",
    "Options:",
    ...rows,
    `  --${"set".padEnd(15)} kafka.property=value; may be repeated`,
    `  --${"config".padEnd(15)} a JSON file with the names above and "kafka": {...}`,
    `  --${"help".padEnd(15)} this text`,
    `  --${"version".padEnd(15)} the version`,
    "",
    `Each option is also read from the environment, for example ${
      environmentName("kafka-listen")
    }.`,
    "Order: option, environment, file, default.",
    "Exit codes: 0 stopped, 2 configuration, 4 fenced by another process, 5 data that must not be served.",
    "",
  ].join("\n");
}
