/** `skerry copy`: a cluster into another store under another cluster id; a backup, and the way back from one. */
import { openStore } from "../adapters/open_store.ts";
import { parseStore, storeName } from "../config/options.ts";
import { copyCluster, type CopySummary } from "../inspect/copy.ts";
import { retryingStore } from "../object/retrying.ts";
import type { Arguments } from "./args.ts";
import { EXIT } from "./exit.ts";
import { printer } from "./printer.ts";
import { configFault, configOf, isSet, openToolStore, runTool, toolEnv } from "./tool_store.ts";

function lines(summary: CopySummary, from: string, to: string): string[] {
  const { dataObjects, walSlots, bytes, position } = summary;
  return [
    `Copied cluster ${summary.from} of ${from}, as it was at metadata entry ${position},`,
    `to cluster ${summary.clusterId} in ${to}:`,
    `${dataObjects} data objects, ${walSlots} WAL slots, ${bytes} bytes written.`,
    "Prove it with skerry fsck before it is used.",
  ];
}

export function copyCommand(args: Arguments): Promise<number> {
  return runTool(async () => {
    const to = parseStore(args.flags["to"] ?? "");
    if (to === null || to.kind === "memory") {
      throw configFault("Cannot copy: give --to dir:PATH or --to s3://BUCKET/PREFIX");
    }
    const env = toolEnv();
    const config = await configOf(args);
    const from = await openToolStore(args, env, "read");
    const target = retryingStore(
      await openStore({ ...config, createCluster: true, store: to }, env),
      env,
    );
    const { clusterId } = config;
    const summary = await copyCluster({ from, to: target, env, clusterId });
    const print = printer();
    if (isSet(args, "json")) await print.line(JSON.stringify(summary));
    else {
      for (const line of lines(summary, storeName(config.store), storeName(to))) {
        await print.line(line);
      }
    }
    await print.end();
    return EXIT.ok;
  });
}
