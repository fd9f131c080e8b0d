/** What `fsck` says, as lines or as one JSON document that is written as it grows. */
import { type Finding, findingLine } from "../inspect/finding.ts";
import type { FsckSummary } from "../inspect/fsck.ts";
import type { Printer } from "./printer.ts";

export class Output {
  readonly #json: boolean;
  readonly #print: Printer;
  /** Stands before the next element of the document, or before its end. */
  #before = '{"findings":[';

  constructor(json: boolean, print: Printer) {
    this.#json = json;
    this.#print = print;
  }

  readonly finding = async (finding: Finding): Promise<void> => {
    if (this.#json) await this.#element(finding);
    else await this.#print.line(findingLine(finding));
  };

  async action(word: string, key: string, detail: string): Promise<void> {
    if (this.#json) await this.#element({ severity: "action", kind: word, key, detail });
    else await this.#print.line(`${"action".padEnd(11)} ${word.padEnd(8)} ${key}  ${detail}`);
  }

  /** Some come at once: what stands before the next is settled before this one is waited for. */
  async #element(value: object): Promise<void> {
    const text = `${this.#before}\n${JSON.stringify(value)}`;
    this.#before = ",";
    await this.#print.text(text);
  }

  async end(summary: FsckSummary): Promise<void> {
    const text = this.#json
      ? `${this.#before === "," ? "" : this.#before}\n],"summary":${JSON.stringify(summary)}}\n`
      : `${summaryLines(summary).join("\n")}\n`;
    await this.#print.text(text);
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
    `reclaimable: ${garbageBytes} bytes by the node itself, ${orphanBytes} bytes by an audit or fsck --repair`,
    `${VERDICTS[summary.verdict]}${summary.damages > 0 ? ` (${summary.damages} findings)` : ""}`,
  ];
}
