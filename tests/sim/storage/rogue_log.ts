/** Writes entries into the metadata log that nobody has checked: what a wrong `decide` or a wrong loop would do. */
import { decodeEntry, encodeEntry, type Writer } from "../../../src/controller/entry.ts";
import { encodeRecord, type MetadataRecord } from "../../../src/controller/record.ts";
import { Replica } from "../../../src/controller/replica.ts";
import { type NodeEpoch, nodeId, type Position, position } from "../../../src/lib/brand.ts";
import { isFault } from "../../../src/lib/errors.ts";
import { uuidOf } from "../../../src/lib/uuid.ts";
import { logKey } from "../../../src/object/object_key.ts";
import type { ObjectStore } from "../../../src/object/object_store.ts";
import type { SimProcess } from "../process.ts";
import { CLUSTER_ID } from "./cluster_id.ts";

const ROGUE = nodeId(99);
const ATTEMPTS_MAX = 20;

export class RogueLog {
  readonly #line: ObjectStore;
  readonly #process: SimProcess;
  readonly #incarnation: string;
  #commands = 0;

  constructor(line: ObjectStore, process: SimProcess) {
    this.#line = line;
    this.#process = process;
    this.#incarnation = uuidOf(process.env.random.derive("rogue").bytes(16));
  }

  async append(...records: readonly MetadataRecord[]): Promise<void> {
    const command = ++this.#commands;
    const writer: Writer = {
      nodeId: ROGUE,
      epoch: position(0) as number as NodeEpoch,
      incarnation: this.#incarnation,
      firstCommand: command,
      lastCommand: command,
    };
    await this.#write(writer, records);
  }

  /** The entry once more, with the numbers of its commands. */
  async repeat(at: Position): Promise<void> {
    const got = await this.#line.get(logKey(CLUSTER_ID, at));
    if (got === null) return;
    const { writer, records } = decodeEntry(got.bytes);
    await this.#write(writer, records);
  }

  async #write(writer: Writer, records: readonly MetadataRecord[]): Promise<void> {
    const replica = new Replica(CLUSTER_ID);
    for (let attempt = 0; attempt < ATTEMPTS_MAX && this.#process.alive; attempt++) {
      try {
        await this.#follow(replica);
        const at = position(replica.state.at + 1);
        const { featureLevel } = replica.state;
        const previous = replica.lastHash;
        const head = { at, previous, clusterId: CLUSTER_ID, writer, featureLevel };
        const bytes = encodeEntry(head, records.map(encodeRecord));
        if ((await this.#line.put(logKey(CLUSTER_ID, at), bytes, { ifAbsent: true })).created) {
          return;
        }
      } catch (error) {
        if (!isFault(error)) throw error;
      }
    }
  }

  async #follow(replica: Replica): Promise<void> {
    for (;;) {
      const got = await this.#line.get(logKey(CLUSTER_ID, position(replica.state.at + 1)));
      if (got === null) return;
      replica.take(got.bytes);
    }
  }
}
