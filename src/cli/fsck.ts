/** `skerry fsck`: proves a store at rest; on request it deletes orphans, or cuts a WAL that cannot be recovered. */
import type { Env } from "../env/env.ts";
import type { Finding } from "../inspect/finding.ts";
import { fsck, type FsckResult, type FsckSummary } from "../inspect/fsck.ts";
import type { BrokenWal } from "../inspect/fsck_wal.ts";
import { type CutWal, cutWal, deleteOrphans, Orphans } from "../inspect/repair.ts";
import type { ObjectStore } from "../object/object_store.ts";
import type { Arguments } from "./args.ts";
import { EXIT } from "./exit.ts";
import { Output } from "./fsck_output.ts";
import { printer } from "./printer.ts";
import { configFault, isSet, openToolStore, runTool, toolEnv } from "./tool_store.ts";

function exitOf({ verdict }: FsckSummary): number {
  if (verdict === "clean") return EXIT.ok;
  if (verdict === "empty") return EXIT.config;
  return verdict === "changed" ? EXIT.unexpected : EXIT.data;
}

type Repaired =
  | { readonly kind: "done" | "nothing" }
  | { readonly kind: "refused"; readonly why: string };

const STALE: Repaired = {
  kind: "refused",
  why: "the metadata is damaged or its end is lost, so it cannot say what may go: " +
    "bring it back from a copy; nothing was deleted",
};
const WRITTEN: Repaired = {
  kind: "refused",
  why: "a node wrote metadata meanwhile: stop it and ask again",
};

async function repair(
  { rest, summary, brokenWals }: FsckResult,
  orphans: Orphans,
  acceptLoss: boolean,
  output: Output,
): Promise<Repaired> {
  if (summary.verdict === "changed") return WRITTEN;
  if (rest === null) return STALE;
  const deleted = await deleteOrphans(rest, summary.position, orphans);
  if (deleted === null) return WRITTEN;
  for (const key of deleted.gone) await output.action("deleted", key, "orphan");
  for (const key of deleted.failed) await output.action("failed", key, "it could not be deleted");
  const wals = acceptLoss ? brokenWals : [];
  for (const wal of wals) {
    const cut = await cutWal(rest, summary.position, wal);
    if (cut === null) return WRITTEN;
    await showCut(wal, cut, output);
  }
  return { kind: deleted.gone.length + wals.length > 0 ? "done" : "nothing" };
}

async function showCut(
  { row, firstBad }: BrokenWal,
  { gone, failed, lost }: CutWal,
  output: Output,
): Promise<void> {
  const detail =
    `slot of node ${row.nodeId} epoch ${row.epoch}, whose WAL ends before slot ${firstBad} now`;
  for (const key of gone) await output.action("deleted", key, detail);
  for (const key of failed) await output.action("failed", key, "it could not be deleted");
  for (const { streamId, start, end } of lost) {
    await output.action(
      "lost",
      `stream ${streamId}`,
      `[${start}, ${end}), as far as slots could be read`,
    );
  }
}

async function checkAndRepair(args: Arguments, env: Env, store: ObjectStore): Promise<number> {
  const output = new Output(isSet(args, "json"), printer());
  const orphans = new Orphans();
  const report = async (finding: Finding) => {
    orphans.take(finding);
    await output.finding(finding);
  };
  let result = await fsck({ store, env, report });
  let repaired: Repaired = { kind: "nothing" };
  if (isSet(args, "repair") && result.summary.verdict !== "empty") {
    repaired = await repair(result, orphans, isSet(args, "accept-loss"), output);
    if (repaired.kind === "done") result = await fsck({ store, env, report: output.finding });
    if (repaired.kind === "refused") await output.action("refused", "repair", repaired.why);
  }
  await output.end(result.summary);
  const exit = exitOf(result.summary);
  return repaired.kind === "refused" && exit === EXIT.ok ? EXIT.unexpected : exit;
}

export function fsckCommand(args: Arguments): Promise<number> {
  return runTool(async () => {
    const repairs = isSet(args, "repair");
    if (isSet(args, "accept-loss") && !repairs) {
      throw configFault("Cannot use --accept-loss: it needs --repair");
    }
    const env = toolEnv();
    const store = await openToolStore(args, env, repairs ? "repair" : "read");
    return await checkAndRepair(args, env, store);
  });
}
