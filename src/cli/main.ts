/** Entry of the executable: picks the command, prints, and turns outcomes into exit codes. */
import { helpText, parseArguments } from "./args.ts";
import { VERSION } from "../lib/version.ts";
import { EXIT } from "./exit.ts";
import { serve } from "./serve.ts";

async function main(argv: readonly string[]): Promise<number> {
  const args = parseArguments(argv);
  if (args.version) {
    process.stdout.write(`skerry ${VERSION}\n`);
    return EXIT.ok;
  }
  if (args.help || args.command === "help") {
    process.stdout.write(helpText(VERSION));
    return EXIT.ok;
  }
  if (args.errors.length > 0) {
    process.stderr.write(args.errors.map((line) => `${line}\n`).join(""));
    return EXIT.config;
  }
  if (args.command === "serve") return await serve(args);
  process.stderr.write(`Cannot run ${JSON.stringify(args.command)}: allowed are serve, help\n`);
  return EXIT.config;
}

process.exit(await main(process.argv.slice(2)));
