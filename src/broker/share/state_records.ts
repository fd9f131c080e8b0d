/** States of share partitions as records of `__share_group_state`, in Kafka's own format, and back. */
import { toBase64Url } from "../../lib/base64.ts";
import { DecodeError, viewOf } from "../../lib/bytes.ts";
import { uuidBytes } from "../../lib/uuid.ts";
import {
  shareSnapshotKey,
  shareSnapshotValue,
  shareUpdateKey,
  shareUpdateValue,
} from "../../protocol/message/share_state.ts";
import { decodeGrowing, decodeVersioned, encodeVersioned } from "../../protocol/versioned.ts";
import type { KeyValue } from "../shard/shard_log.ts";
import type { ShareState, ShareStateChange } from "./share_state.ts";
import type { SharePartitionKey } from "./share_states.ts";
import type { StateBatch } from "./window.ts";

const SNAPSHOT = 0;
const UPDATE = 1;
const VALUE_VERSION = 0;
const STATE_IDS = { available: 0, acknowledged: 2, archived: 4 } as const;
const STATES: ReadonlyMap<number, StateBatch["state"]> = new Map([
  [STATE_IDS.available, "available"],
  [STATE_IDS.acknowledged, "acknowledged"],
  [STATE_IDS.archived, "archived"],
]);

/** Kafka's text of a share partition, whose hash says where its state is: the topic id as its clients print it. */
export function coordinatorKey({ groupId, topicId, partition }: SharePartitionKey): string {
  return `${groupId}:${toBase64Url(uuidBytes(topicId))}:${partition}`;
}

function storedBatches(batches: readonly StateBatch[]) {
  return batches.map(({ first, last, state, count }) => ({
    firstOffset: first,
    lastOffset: last,
    deliveryState: STATE_IDS[state],
    deliveryCount: count,
  }));
}

export function snapshotRecord(key: SharePartitionKey, state: ShareState): KeyValue {
  return {
    key: encodeVersioned(shareSnapshotKey, SNAPSHOT, key),
    value: encodeVersioned(shareSnapshotValue, VALUE_VERSION, {
      snapshotEpoch: state.snapshotEpoch,
      stateEpoch: state.stateEpoch,
      leaderEpoch: state.leaderEpoch,
      startOffset: state.startOffset,
      createTimestamp: state.createdAtMs,
      writeTimestamp: state.writtenAtMs,
      stateBatches: storedBatches(state.batches),
      deliveryCompleteCount: state.finalCount,
    }),
  };
}

export function updateRecord(
  key: SharePartitionKey,
  snapshotEpoch: number,
  change: ShareStateChange,
): KeyValue {
  return {
    key: encodeVersioned(shareUpdateKey, UPDATE, key),
    value: encodeVersioned(shareUpdateValue, VALUE_VERSION, {
      snapshotEpoch,
      leaderEpoch: change.leaderEpoch,
      startOffset: change.startOffset,
      stateBatches: storedBatches(change.batches),
      deliveryCompleteCount: change.finalCount,
    }),
  };
}

export function shareTombstone(key: SharePartitionKey): KeyValue {
  return { key: encodeVersioned(shareSnapshotKey, SNAPSHOT, key), value: null };
}

export type ShareRecord =
  /** Null: the state has ended. */
  | {
    readonly kind: "snapshot";
    readonly key: SharePartitionKey;
    readonly state: ShareState | null;
  }
  | {
    readonly kind: "update";
    readonly key: SharePartitionKey;
    readonly snapshotEpoch: number;
    readonly change: ShareStateChange;
  }
  | { readonly kind: "unknown" };

interface StoredBatch {
  readonly firstOffset: number;
  readonly lastOffset: number;
  readonly deliveryState: number;
  readonly deliveryCount: number;
}

function batchesOf(stored: readonly StoredBatch[]): StateBatch[] {
  let next = 0;
  return stored.map(({ firstOffset: first, lastOffset: last, deliveryState, deliveryCount }) => {
    const state = STATES.get(deliveryState);
    if (state === undefined || first < next || last < first) {
      throw new DecodeError(`Cannot read a share state: ${deliveryState} of ${first} to ${last}`);
    }
    next = last + 1;
    return { first, last, state, count: deliveryCount };
  });
}

function snapshotOf(value: Uint8Array): ShareState {
  const stored = decodeGrowing(shareSnapshotValue, value);
  return {
    snapshotEpoch: stored.snapshotEpoch,
    stateEpoch: stored.stateEpoch,
    leaderEpoch: stored.leaderEpoch,
    startOffset: stored.startOffset,
    finalCount: stored.deliveryCompleteCount,
    createdAtMs: stored.createTimestamp,
    writtenAtMs: stored.writeTimestamp,
    batches: batchesOf(stored.stateBatches),
  };
}

/** Throws DecodeError on a record that nothing of ours or Kafka's has written. */
export function readShareRecord(key: Uint8Array, value: Uint8Array | null): ShareRecord {
  if (key.length < 2) throw new DecodeError("Cannot read a share state: its key is cut off");
  const kind = viewOf(key).getInt16(0);
  if (kind === SNAPSHOT) {
    const at = decodeVersioned(shareSnapshotKey, key);
    return { kind: "snapshot", key: at, state: value === null ? null : snapshotOf(value) };
  }
  if (kind !== UPDATE || value === null) return { kind: "unknown" };
  const stored = decodeGrowing(shareUpdateValue, value);
  const change = {
    leaderEpoch: stored.leaderEpoch,
    startOffset: stored.startOffset,
    finalCount: stored.deliveryCompleteCount,
    batches: batchesOf(stored.stateBatches),
  };
  const { snapshotEpoch } = stored;
  return { kind: "update", key: decodeVersioned(shareUpdateKey, key), snapshotEpoch, change };
}
