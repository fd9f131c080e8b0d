/** Entry of the executable: picks the command, prints, and turns outcomes into exit codes. */
import { type Arguments, helpText, parseArguments } from "./args.ts";
import { copyCommand } from "./copy.ts";
import { costCommand } from "./cost.ts";
import { VERSION } from "../lib/version.ts";
import { EXIT } from "./exit.ts";
import { featuresCommand } from "./features.ts";
import { fsckCommand } from "./fsck.ts";
import { inspectCommand } from "./inspect.ts";
import { processIo } from "./kafka/io.ts";
import { FAMILIES, runKafka } from "./kafka/run.ts";
import { serve } from "./serve.ts";

const COMMANDS: Readonly<Record<string, (args: Arguments) => Promise<number>>> = {
  serve,
  inspect: inspectCommand,
  fsck: fsckCommand,
  copy: copyCommand,
  features: featuresCommand,
  cost: costCommand,
};

async function main(argv: readonly string[]): Promise<number> {
  // These have options of their own, and none of a broker.
  if (FAMILIES.includes(argv[0] ?? "")) return await runKafka(argv, processIo());
  const args = parseArguments(argv);
  if (args.version) {
    process.stdout.write(`skerry ${VERSION}\n`);
    return EXIT.ok;
  }
  const isWrong = args.errors.length > 0;
  if (args.help || (args.command === "help" && !isWrong)) {
    process.stdout.write(helpText(VERSION));
    return EXIT.ok;
  }
  if (isWrong) {
    process.stderr.write(args.errors.map((line) => `${line}\n`).join(""));
    return EXIT.config;
  }
  const run = COMMANDS[args.command];
  if (run !== undefined) return await run(args);
  const names = [...Object.keys(COMMANDS), ...FAMILIES, "help"].join(", ");
  process.stderr.write(`Cannot run ${JSON.stringify(args.command)}: allowed are ${names}\n`);
  return EXIT.config;
}

process.exit(await main(process.argv.slice(2)));
