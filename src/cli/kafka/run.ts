/** `skerry topic|group|config|produce|consume`: words to a command, its faults to one line and an exit code. */
import { messageOf } from "../../lib/errors.ts";
import { Cluster } from "../client/cluster.ts";
import { CLIENT_EXIT, ClientFault } from "../client/fault.ts";
import { EXIT } from "../exit.ts";
import { PipeClosed } from "../printer.ts";
import type { Command } from "./command.ts";
import { CONFIG_COMMANDS } from "./config.ts";
import { CONSUME } from "./consume.ts";
import { GROUP_COMMANDS } from "./group.ts";
import { commandHelp, familyHelp } from "./help.ts";
import type { Io } from "./io.ts";
import { PRODUCE } from "./produce.ts";
import { parseWords, WordFault } from "./syntax.ts";
import { TOPIC_COMMANDS } from "./topic.ts";

export const COMMANDS: readonly Command[] = [
  ...TOPIC_COMMANDS,
  ...GROUP_COMMANDS,
  ...CONFIG_COMMANDS,
  PRODUCE,
  CONSUME,
];

/** The first words that this file knows. */
export const FAMILIES: readonly string[] = [
  ...new Set(COMMANDS.map(({ name }) => name.split(" ", 1)[0]!)),
];

function commandOf(argv: readonly string[]): { command: Command; rest: readonly string[] } | null {
  for (const length of [2, 1]) {
    const name = argv.slice(0, length).join(" ");
    const command = COMMANDS.find((one) => one.name === name);
    if (command !== undefined) return { command, rest: argv.slice(length) };
  }
  return null;
}

async function familyAnswer(argv: readonly string[], io: Io): Promise<number> {
  const [family = "", word] = argv;
  const all = COMMANDS.filter(({ name }) => name.startsWith(`${family} `));
  if (word === undefined) {
    io.note(familyHelp(family, all).trimEnd());
    return CLIENT_EXIT.usage;
  }
  if (word === "--help" || word === "-h" || word === "help") {
    await io.write(familyHelp(family, all));
    return CLIENT_EXIT.ok;
  }
  const names = all.map(({ name }) => name.slice(family.length + 1)).join(", ");
  io.note(`Cannot run ${family} ${JSON.stringify(word)}: allowed are ${names}`);
  return CLIENT_EXIT.usage;
}

async function runCommand(
  command: Command,
  rest: readonly string[],
  io: Io,
): Promise<number> {
  const words = parseWords(command, rest);
  if (words.isOn("help")) {
    await io.write(commandHelp(command));
    return CLIENT_EXIT.ok;
  }
  const { bootstrap, timeoutMs } = words;
  const cluster = new Cluster({ bootstrap, timeoutMs, env: io.env });
  try {
    return await command.run({ words, cluster, io });
  } finally {
    await cluster.close();
  }
}

/** The exit code. `argv` begins with one of FAMILIES. */
export async function runKafka(argv: readonly string[], io: Io): Promise<number> {
  const found = commandOf(argv);
  try {
    if (found === null) return await familyAnswer(argv, io);
    return await runCommand(found.command, found.rest, io);
  } catch (error) {
    if (error instanceof PipeClosed) return EXIT.pipe;
    if (error instanceof WordFault) {
      const name = found?.command.name ?? "";
      io.note(`Cannot run skerry ${name}: ${error.message}: see skerry ${name} --help`);
      return CLIENT_EXIT.usage;
    }
    io.note(messageOf(error));
    return error instanceof ClientFault ? error.exit : EXIT.unexpected;
  }
}
