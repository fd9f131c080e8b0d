/**
 * Recovery of dead incarnations, of this node id or of one that is gone: seal the WAL, bring what it holds and
 * metadata lacks into objects, close its streams in one entry, delete the slots. Every step may be repeated
 * after a crash: until the last entry nothing but unreferenced objects exists. Strict: a hole stops it before
 * anything is finished.
 */
import type { Env } from "../env/env.ts";
import type { NodeEpoch, NodeId } from "../lib/brand.ts";
import { FaultError, isFault, messageOf } from "../lib/errors.ts";
import { OBJECT_ID_BLOCK, RECOVERY_BYTES_MAX } from "../lib/limits.ts";
import { walEpochPrefix } from "../object/object_key.ts";
import type { ObjectStore } from "../object/object_store.ts";
import { refused } from "./engine_refusal.ts";
import type {
  NewStreamObject,
  NewStreamSetObject,
  ObjectManager,
  RecoveryCommit,
  RecoveryManager,
  WalToRecover,
} from "./ports.ts";
import { Replay } from "./recover_replay.ts";
import { IdPool } from "./upload/id_pool.ts";
import { uploadPlan } from "./upload/object_upload.ts";
import { UploadMemory } from "./upload/upload_memory.ts";
import { objectCount, planUpload, type UploadPlan } from "./upload/plan.ts";
import type { StreamRecord } from "./stream_record.ts";
import { recoverWal } from "./wal/recovery.ts";
import { collectSealedWal } from "./wal/wal_slots.ts";

export interface RecoverNodeOptions {
  readonly env: Env;
  readonly store: ObjectStore;
  readonly clusterId: string;
  readonly nodeId: NodeId;
  readonly objects: ObjectManager;
  readonly recovery: RecoveryManager;
  /** Absent: those of this node's own earlier incarnations. */
  readonly wals?: readonly { readonly nodeId: NodeId; readonly epoch: NodeEpoch }[];
  /** Records held in memory before they are written. */
  readonly bytesMax?: number;
  /** Ids reserved at a time. */
  readonly idBlock?: number;
}

export interface RecoveredNode {
  readonly wals: number;
  readonly objects: number;
  /** WAL objects, and records in them, from the trim points on. */
  readonly slots: number;
  readonly records: number;
}

/**
 * Throws FaultError `data-loss` (nothing was finished), `fenced` (another recoverer or incarnation took
 * over), and what the store throws: then it can be called again.
 */
export async function recoverNode(options: RecoverNodeOptions): Promise<RecoveredNode> {
  const pending = options.wals ?? options.recovery.pendingRecoveries();
  const ids = new IdPool(options.objects, options.idBlock ?? OBJECT_ID_BLOCK);
  const sum = { wals: pending.length, objects: 0, slots: 0, records: 0 };
  for (const { nodeId, epoch } of pending) {
    try {
      const one = await recoverIncarnation(options, ids, nodeId, epoch);
      sum.objects += one.objects;
      sum.slots += one.slots;
      sum.records += one.records;
    } catch (error) {
      if (isFault(error, "data-loss")) await expectPending(options, nodeId, epoch);
      throw error;
    }
  }
  return sum;
}

/**
 * Slots are deleted once a recovery is finished: to a recoverer that was overtaken and does not know it
 * yet, that looks like a loss. Throws FaultError `fenced` in that case.
 */
async function expectPending(
  { objects, recovery }: RecoverNodeOptions,
  node: NodeId,
  epoch: NodeEpoch,
): Promise<void> {
  await objects.refresh();
  if (recovery.isPending(node, epoch)) return;
  throw overtaken(node, epoch);
}

function overtaken(node: NodeId, epoch: NodeEpoch): FaultError {
  const message = `Recovery of node ${node} epoch ${epoch} was finished by another recoverer`;
  return new FaultError("fenced", message, { retriable: false });
}

async function recoverIncarnation(
  options: RecoverNodeOptions,
  ids: IdPool,
  node: NodeId,
  epoch: NodeEpoch,
): Promise<Omit<RecoveredNode, "wals">> {
  const { env, store, clusterId, recovery } = options;
  const began = await recovery.beginRecovery(node, epoch);
  if (!began.ok) {
    // Another recoverer was done with it between our look and our entry.
    const isDone = began.reason !== "fenced" && !recovery.isPending(node, epoch);
    if (isDone) return { objects: 0, slots: 0, records: 0 };
    throw refused(`Recovery of node ${node} epoch ${epoch}`, began);
  }
  const { wal } = began;
  const recoverer = { recovererNodeId: options.nodeId };
  const { records, sealedSlot } = await recoverWal({ store, env, clusterId, wal, ...recoverer });
  const replay = new Replay(walEpochPrefix(clusterId, node, epoch), wal.streams);
  const written = new WrittenObjects(options, ids);
  let count = 0;
  for await (const record of records) {
    expectHeld(options, node, epoch, record);
    count += 1;
    replay.add(record);
    if (replay.bytes >= (options.bytesMax ?? RECOVERY_BYTES_MAX)) await written.write(replay);
  }
  await written.write(replay);
  await finish(options, wal, { ...written.objects(), ends: replay.ends(), sealedSlot });
  env.log.log("info", "wal-recovered", {
    node,
    epoch,
    streams: wal.streams.length,
    objects: written.count,
    sealedSlot,
  });
  return { objects: written.count, slots: sealedSlot - wal.walTrim, records: count };
}

/** The end of the metadata log is lost when a record's stream was never opened by it: nothing may be finished. */
function expectHeld(
  { clusterId, recovery }: RecoverNodeOptions,
  node: NodeId,
  epoch: NodeEpoch,
  { streamId, baseOffset }: StreamRecord,
): void {
  if (recovery.canHaveHeld(node, epoch, streamId)) return;
  const where = walEpochPrefix(clusterId, node, epoch);
  throw new FaultError(
    "data-loss",
    `WAL ${where} has offset ${baseOffset} of stream ${streamId}, which metadata says it never opened: ` +
      "the end of the metadata log is lost",
    { retriable: false },
  );
}

async function finish(
  { env, store, clusterId, recovery }: RecoverNodeOptions,
  { nodeId, epoch, recovery: token }: WalToRecover,
  result: Omit<RecoveryCommit, "wal">,
): Promise<void> {
  const answer = await recovery.finishRecovery({
    wal: { nodeId, epoch, recovery: token },
    ...result,
  });
  if (!answer.ok) {
    const isDone = answer.reason !== "fenced" && !recovery.isPending(nodeId, epoch);
    if (isDone) throw overtaken(nodeId, epoch);
    throw refused(`End of the recovery of node ${nodeId} epoch ${epoch}`, answer);
  }
  try {
    await collectSealedWal(store, clusterId, { nodeId, epoch, sealedSlot: result.sealedSlot });
  } catch (error) {
    // Only space: whoever collects sealed WALs tries again.
    env.log.log("warn", "wal-slots-left", { node: nodeId, epoch, error: messageOf(error) });
  }
}

/** Objects of one recovery. Only the first block may have a stream set object: the commit names just one. */
class WrittenObjects {
  readonly #options: RecoverNodeOptions;
  readonly #memory = new UploadMemory();
  readonly #ids: IdPool;
  readonly #streamObjects: NewStreamObject[] = [];
  #streamSetObject: NewStreamSetObject | null = null;

  constructor(options: RecoverNodeOptions, ids: IdPool) {
    this.#options = options;
    this.#ids = ids;
  }

  get count(): number {
    return this.#streamObjects.length + (this.#streamSetObject === null ? 0 : 1);
  }

  async write(replay: Replay): Promise<void> {
    const runs = replay.takeBlock().runs();
    if (runs.length === 0) return;
    const plan: UploadPlan = this.#streamSetObject === null
      ? planUpload(runs)
      : { streamSet: [], streamObjects: runs };
    const ids = await this.#ids.take(objectCount(plan));
    const { clock } = this.#options.env;
    const target = { ...this.#options, clock, memory: this.#memory };
    const uploaded = await uploadPlan(target, plan, ids);
    this.#streamSetObject ??= uploaded.streamSetObject;
    this.#streamObjects.push(...uploaded.streamObjects);
  }

  objects(): Pick<RecoveryCommit, "streamSetObject" | "streamObjects"> {
    return { streamSetObject: this.#streamSetObject, streamObjects: this.#streamObjects };
  }
}
