/**
 * Commands that share an entry: decided one on top of the other over one draft, until the entry is full.
 * The draft is folded in when the entry is in the log, and dropped when somebody else's was first.
 */
import { type Position, position } from "../lib/brand.ts";
import { FaultError } from "../lib/errors.ts";
import { METADATA_ENTRY_BYTES_MAX } from "../lib/limits.ts";
import type { Uuid } from "../lib/uuid.ts";
import type { NodeId } from "../lib/brand.ts";
import { apply } from "./apply.ts";
import type { Command } from "./command.ts";
import { type AnyVerdict, decide } from "./decide.ts";
import { encodeEntry, ENVELOPE_BYTES_MAX, type Writer } from "./entry.ts";
import { encodeRecord } from "./record.ts";
import type { Replica } from "./replica.ts";
import type { Draft } from "./state.ts";
import { refuse } from "./verdict.ts";

/** A command with its sequence in this incarnation. */
export interface Numbered {
  readonly sequence: number;
  readonly command: Command;
}

export type Settled =
  | { readonly kind: "decided"; readonly verdict: AnyVerdict }
  | { readonly kind: "failed"; readonly error: unknown };

export interface Batch {
  readonly at: Position;
  readonly draft: Draft;
  readonly writer: Writer;
  /** One per decided command, in order; commands behind them wait for the next entry. */
  readonly settled: readonly Settled[];
  /** Null when no command has anything to write. */
  readonly bytes: Uint8Array | null;
}

/** Their results are the entry's position, which must not be shared with another of their kind. */
const ALONE: ReadonlySet<Command["type"]> = new Set(["register-node", "begin-recovery"]);

interface Encoded {
  readonly settled: Settled;
  readonly records: readonly Uint8Array[];
  readonly bytes: number;
}

function decideOne(draft: Draft, command: Command, at: Position): Encoded {
  try {
    const verdict = decide(draft, command, at);
    if (!verdict.ok) return { settled: { kind: "decided", verdict }, records: [], bytes: 0 };
    const records = verdict.records.map(encodeRecord);
    const bytes = records.reduce((sum, record) => sum + record.length + 1, 0);
    if (bytes > METADATA_ENTRY_BYTES_MAX - ENVELOPE_BYTES_MAX) {
      const tooLarge = refuse("invalid", `${command.type} needs ${bytes} bytes of one entry`);
      return { settled: { kind: "decided", verdict: tooLarge }, records: [], bytes: 0 };
    }
    return { settled: { kind: "decided", verdict }, records, bytes };
  } catch (error) {
    // A malformed command is its caller's bug; the others in the batch go on.
    return { settled: { kind: "failed", error }, records: [], bytes: 0 };
  }
}

function writerOf(
  replica: Replica,
  commands: readonly Numbered[],
  { nodeId, incarnation }: Identity,
): Writer {
  const row = replica.state.nodes.get(nodeId);
  const epoch = row?.incarnation === incarnation ? row.epoch : position(0);
  return {
    nodeId,
    // 0 stands for an incarnation that is not registered yet.
    epoch: epoch as Writer["epoch"],
    incarnation,
    firstCommand: commands[0]!.sequence,
    lastCommand: commands.at(-1)!.sequence,
  };
}

export interface Identity {
  readonly nodeId: NodeId;
  readonly incarnation: Uuid;
}

/** Whether the log holds the command already, by what it says of our incarnation. */
function isApplied(replica: Replica, identity: Identity, sequence: number): boolean {
  const row = replica.state.writers.get(identity.nodeId);
  return row?.incarnation === identity.incarnation && sequence <= row.lastCommand;
}

const alreadyApplied: Settled = {
  kind: "failed",
  error: new FaultError("timeout", "The command was committed, but its result is lost", {
    retriable: true,
  }),
};

export function decideBatch(
  replica: Replica,
  commands: readonly Numbered[],
  identity: Identity,
): Batch {
  const at = position(replica.state.at + 1);
  const draft = replica.draft();
  const settled: Settled[] = [];
  const records: Uint8Array[] = [];
  let bytes = ENVELOPE_BYTES_MAX;
  for (const { sequence, command } of commands) {
    const alone = ALONE.has(command.type);
    if (alone && records.length > 0) break;
    if (isApplied(replica, identity, sequence)) {
      settled.push(alreadyApplied);
      continue;
    }
    const one = decideOne(draft, command, at);
    if (bytes + one.bytes > METADATA_ENTRY_BYTES_MAX) break;
    settled.push(one.settled);
    bytes += one.bytes;
    records.push(...one.records);
    if (one.settled.kind === "decided" && one.settled.verdict.ok) {
      for (const record of one.settled.verdict.records) apply(draft, record, at);
    }
    if (alone) break;
  }
  const writer = writerOf(replica, commands.slice(0, settled.length), identity);
  const { clusterId } = replica.state;
  const { featureLevel } = draft;
  const head = { at, previous: replica.lastHash, clusterId, writer, featureLevel };
  const entry = records.length === 0 ? null : encodeEntry(head, records);
  return { at, draft, writer, settled, bytes: entry };
}
