/** Command line to words: subcommand, option values, repeated --set, and the help text. Pure. */
import { environmentName, OPTION_NAMES, OPTIONS } from "../config/options.ts";

export interface Arguments {
  /** The first word; `help` when there is none. */
  readonly command: string;
  /** The words behind it; only `inspect` takes one. */
  readonly operands: readonly string[];
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

interface ToolOption {
  /** Commands that know it. */
  readonly of: readonly string[];
  /** Whether it is on or off, and may stand without a value. */
  readonly isSwitch: boolean;
  readonly help: string;
}

/** Options that `serve` does not know. */
export const TOOL_OPTIONS: Readonly<Record<string, ToolOption>> = {
  "json": {
    of: ["inspect", "fsck", "copy", "features", "cost"],
    isSwitch: true,
    help: "one JSON document instead of lines",
  },
  "repair": { of: ["fsck"], isSwitch: true, help: "delete what no node will ever look at again" },
  "accept-loss": {
    of: ["fsck"],
    isSwitch: true,
    help: "with --repair: cut a WAL that keeps its node from starting",
  },
  "to": {
    of: ["copy"],
    isSwitch: false,
    help: "store for the copy: dir:PATH or s3://BUCKET/PREFIX",
  },
  "metrics": {
    of: ["cost"],
    isSwitch: false,
    help: "URL of a node's metrics, or a file with them",
  },
  "seconds": { of: ["cost"], isSwitch: false, help: "time between the two looks at a URL [10]" },
};

interface Command {
  /** Whether it knows all options of a broker: where its store lies is among them. */
  readonly isConfigured: boolean;
  /** Whether it reads the file of --config all the same. */
  readonly readsFile?: boolean;
  readonly operands: number;
}

const COMMANDS: Readonly<Record<string, Command>> = {
  serve: { isConfigured: true, operands: 0 },
  inspect: { isConfigured: true, operands: 1 },
  fsck: { isConfigured: true, operands: 0 },
  copy: { isConfigured: true, operands: 0 },
  features: { isConfigured: true, operands: 0 },
  cost: { isConfigured: false, readsFile: true, operands: 0 },
  help: { isConfigured: false, operands: 0 },
};

/** Options that may stand without a value. */
const BARE: ReadonlySet<string> = new Set([
  "create-cluster",
  "s3-path-style",
  ...Object.keys(TOOL_OPTIONS).filter((name) => TOOL_OPTIONS[name]!.isSwitch),
]);

const KNOWN: ReadonlySet<string> = new Set([
  ...OPTION_NAMES,
  ...Object.keys(TOOL_OPTIONS),
  "set",
  "config",
]);

function collectValue(name: string, value: string, into: Collected): void {
  if (name === "set") into.sets.push(value);
  else if (name === "config" && into.configFile === null) into.configFile = value;
  else if (name === "config") into.errors.push("Cannot use --config: given twice");
  else if (TOOL_OPTIONS[name]?.isSwitch === true && value !== "true" && value !== "false") {
    into.errors.push(`Cannot use --${name}=${value}: allowed are true and false`);
  } else if (name in into.flags) into.errors.push(`Cannot use --${name}: given twice`);
  else into.flags[name] = value;
}

function collectWord(word: string, next: string | undefined, into: Collected): number {
  if (word === "--help" || word === "-h") into.help = true;
  else if (word === "--version" || word === "-V") into.version = true;
  else if (word.startsWith("--")) return collectOption(word, next, into);
  else if (word.startsWith("-")) {
    into.errors.push(`Cannot use ${word}: options begin with two dashes: see skerry --help`);
  } else into.words.push(word);
  return 1;
}

/** Returns how many words were taken. */
function collectOption(word: string, next: string | undefined, into: Collected): number {
  const equals = word.indexOf("=");
  const name = equals < 0 ? word.slice(2) : word.slice(2, equals);
  const follows = next !== undefined && !next.startsWith("--");
  if (!KNOWN.has(name)) {
    into.errors.push(`Cannot use --${name}: unknown option: see skerry --help`);
    return equals < 0 && follows ? 2 : 1;
  }
  if (equals >= 0) collectValue(name, word.slice(equals + 1), into);
  else if (BARE.has(name) && next !== "true" && next !== "false") collectValue(name, "true", into);
  else if (!follows) into.errors.push(`Cannot use --${name}: no value given`);
  else {
    collectValue(name, next, into);
    return 2;
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
  const [command = "help", ...operands] = into.words;
  // An unknown one has a line of its own.
  const known = Object.hasOwn(COMMANDS, command) ? COMMANDS[command] : undefined;
  if (into.words.length === 0 && optionsGiven(into).length > 0) {
    into.errors.push(
      "Cannot tell what to run: put a command first, as in skerry serve --store ...",
    );
  }
  for (const word of operands.slice(known?.operands ?? 0)) {
    into.errors.push(`Cannot use ${JSON.stringify(word)}: one command at a time`);
  }
  if (known !== undefined && into.words.length > 0) {
    for (const name of optionsGiven(into).filter((one) => !knows(command, known, one))) {
      into.errors.push(`Cannot use --${name}: ${command} does not know it`);
    }
  }
  return { ...into, command, operands };
}

/** Names of the options on the line, each once. */
export function optionsGiven(
  { flags, sets, configFile }: Pick<Arguments, "flags" | "sets" | "configFile">,
): string[] {
  return [
    ...Object.keys(flags),
    ...(sets.length > 0 ? ["set"] : []),
    ...(configFile === null ? [] : ["config"]),
  ];
}

function knows(
  command: string,
  { isConfigured, readsFile = false }: Command,
  option: string,
): boolean {
  if (option === "config" && readsFile) return true;
  return TOOL_OPTIONS[option]?.of.includes(command) ?? isConfigured;
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
    "Usage: skerry serve [options]   runs a broker; without options one on this machine, on a directory",
    "       skerry inspect KEY|FILE [--store ...] [--json]   any stored object in words",
    "       skerry fsck [--store ...] [--json] [--repair [--accept-loss]]   prove a store at rest",
    "       skerry copy --store FROM --to TO [--cluster-id NEW] [--json]   a cluster under another id",
    "       skerry features [--store ...] [--json]   feature levels, for upgrades and rollbacks",
    "       skerry cost --metrics URL|FILE [--seconds N] [--config FILE] [--json]   what its requests cost",
    "",
    "Commands that speak to a running broker, each with a --help of its own:",
    "       skerry topic list|describe|create|alter|delete|truncate",
    "       skerry group list|describe|reset|delete|delete-offsets",
    "       skerry config get|set|unset",
    "       skerry produce TOPIC   skerry consume TOPIC",
    "",
    "Options of the others, with [defaults]:",
    ...rows,
    `  --${"set".padEnd(15)} PROPERTY=VALUE, may be repeated`,
    `  ${"".padEnd(17)} a Kafka broker property, or one of Skerry's own: skerry.*`,
    `  --${
      "config".padEnd(15)
    } FILE: JSON with the names above, "kafka": {"PROPERTY": VALUE} and "prices" for cost`,
    ...Object.entries(TOOL_OPTIONS).map(([name, { of, help }]) =>
      `  --${name.padEnd(15)} (${of.join(", ")}) ${help}`
    ),
    `  --${"help".padEnd(15)} this text`,
    `  --${"version".padEnd(15)} the version`,
    "",
    `Each option can also stand in the environment: ${
      environmentName("kafka-listen")
    }=HOST:PORT and so on,`,
    `${
      environmentName("set")
    }="PROPERTY=VALUE;PROPERTY=VALUE". What is given twice counts in this order:`,
    "option, environment, file, default. Stores of kind s3: take their credentials from",
    "AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY and AWS_SESSION_TOKEN.",
    "",
    "Exit codes of the others:",
    "  0  stopped as asked",
    "  2  wrong configuration, or a store that cannot be used or reached",
    "  4  another process with this node id took over",
    "  5  stored data is damaged or missing: nothing was changed, the last line names it",
    "  1  anything else: a bug; of fsck also that a node wrote meanwhile",
    "141  nobody reads what a tool prints any more",
    "",
    "Examples:",
    "  skerry serve",
    "  skerry serve --store s3://my-bucket/skerry --kafka-listen 0.0.0.0:9092 --advertise edge-7:9092",
    "  skerry serve --store memory: --set num.partitions=3 --http-listen off",
    "",
  ].join("\n");
}
