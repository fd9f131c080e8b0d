/** `skerry fsck`: proves a store at rest; on request it deletes orphans, or cuts a WAL that cannot be recovered. */
import type { Env } from "../env/env.ts";
import type { Finding } from "../inspect/finding.ts";
import { findingLine } from "../inspect/finding.ts";
import { fsck, type FsckResult, type FsckSummary } from "../inspect/fsck.ts";
import type { BrokenWal } from "../inspect/fsck_wal.ts";
import { type CutWal, cutWal, deleteOrphans, Orphans } from "../inspect/repair.ts";
import type { ObjectStore } from "../object/object_store.ts";
import type { Arguments } from "./args.ts";
import { EXIT } from "./exit.ts";
import { printer } from "./printer.ts";
import { configFault, isSet, openToolStore, runTool, toolEnv } from "./tool_store.ts";

/** What is said, as lines or as one JSON document that is written as it grows. */
class Output {
  readonly #json: boolean;
  readonly #print = printer();
  /** Findings come one after the other; each waits for the one before. */
  #written: Promise<void> = Promise.resolve();
  #separator = "\n";

  constructor(json: boolean) {
    this.#json = json;
    if (json) this.#write('{"findings":[');
  }

  #write(text: string): void {
    this.#written = this.#written.then(() => this.#print.text(text));
    // `end` reports it.
    this.#written.catch(() => {});
  }

  readonly finding = (finding: Finding): void => {
    if (this.#json) this.#element(finding);
    else this.#write(`${findingLine(finding)}\n`);
  };

  action(word: string, key: string, detail: string): void {
    if (this.#json) this.#element({ severity: "action", kind: word, key, detail });
    else this.#write(`${"action".padEnd(11)} ${word.padEnd(8)} ${key}  ${detail}\n`);
  }

  #element(value: object): void {
    this.#write(this.#separator + JSON.stringify(value));
    this.#separator = ",\n";
  }

  async end(summary: FsckSummary): Promise<void> {
    const text = this.#json
      ? `\n],"summary":${JSON.stringify(summary)}}\n`
      : `${summaryLines(summary).join("\n")}\n`;
    this.#write(text);
    await this.#written;
    await this.#print.end();
  }
}

const VERDICTS: Readonly<Record<FsckSummary["verdict"], string>> = {
  clean: "CLEAN",
  damaged: "DAMAGED",
  changed: "NOT JUDGED: a node wrote metadata while the store was read; stop it and ask again",
  empty: "EMPTY: no cluster lies here",
};

function summaryLines(summary: FsckSummary): string[] {
  const { dataObjects, walObjects, metadataEntries, streams, orphanBytes, garbageBytes } = summary;
  return [
    `cluster ${
      summary.clusterId ?? "none"
    }, metadata up to ${summary.position}: ${streams} streams, ` +
    `${dataObjects} data objects, ${walObjects} WAL objects, ${metadataEntries} metadata entries, ` +
    `${summary.bytes} bytes in ${summary.keys} keys`,
    `reclaimable: ${garbageBytes} bytes by the node itself, ${orphanBytes} bytes by fsck --repair`,
    `${VERDICTS[summary.verdict]}${summary.damages > 0 ? ` (${summary.damages} findings)` : ""}`,
  ];
}

function exitOf({ verdict }: FsckSummary): number {
  if (verdict === "clean") return EXIT.ok;
  if (verdict === "empty") return EXIT.config;
  return verdict === "changed" ? EXIT.unexpected : EXIT.data;
}

type Repaired = "done" | "nothing" | "refused";

async function repair(
  { rest, summary, brokenWals }: FsckResult,
  orphans: Orphans,
  acceptLoss: boolean,
  output: Output,
): Promise<Repaired> {
  if (rest === null || summary.verdict === "changed") return "refused";
  const deleted = await deleteOrphans(rest, summary.position, orphans);
  if (deleted === null) return "refused";
  for (const key of deleted.gone) output.action("deleted", key, "orphan");
  for (const key of deleted.failed) output.action("failed", key, "it could not be deleted");
  const wals = acceptLoss ? brokenWals : [];
  for (const wal of wals) {
    const cut = await cutWal(rest, summary.position, wal);
    if (cut === null) return "refused";
    showCut(wal, cut, output);
  }
  return deleted.gone.length + wals.length > 0 ? "done" : "nothing";
}

function showCut(
  { row, firstBad }: BrokenWal,
  { gone, failed, lost }: CutWal,
  output: Output,
): void {
  const detail =
    `slot of node ${row.nodeId} epoch ${row.epoch}, whose WAL ends before slot ${firstBad} now`;
  for (const key of gone) output.action("deleted", key, detail);
  for (const key of failed) output.action("failed", key, "it could not be deleted");
  for (const { streamId, start, end } of lost) {
    output.action(
      "lost",
      `stream ${streamId}`,
      `[${start}, ${end}), as far as slots could be read`,
    );
  }
}

async function checkAndRepair(args: Arguments, env: Env, store: ObjectStore): Promise<number> {
  const output = new Output(isSet(args, "json"));
  const orphans = new Orphans();
  const report = (finding: Finding) => {
    orphans.take(finding);
    output.finding(finding);
  };
  let result = await fsck({ store, env, report });
  let repaired: Repaired = "nothing";
  if (isSet(args, "repair") && result.summary.verdict !== "empty") {
    repaired = await repair(result, orphans, isSet(args, "accept-loss"), output);
    if (repaired === "done") result = await fsck({ store, env, report: output.finding });
    if (repaired === "refused") {
      const why = "the metadata cannot be read, or a node wrote it meanwhile";
      output.action("refused", "repair", why);
    }
  }
  await output.end(result.summary);
  const exit = exitOf(result.summary);
  return repaired === "refused" && exit === EXIT.ok ? EXIT.unexpected : exit;
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
