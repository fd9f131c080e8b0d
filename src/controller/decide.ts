/**
 * Checks a command against the image that it will be applied to. Pure: an entry is accepted only on top
 * of exactly the image it was decided on, so any check made here holds when the records are applied.
 */
import { unreachable } from "../lib/assert.ts";
import type { Position } from "../lib/brand.ts";
import type { Command, Refused } from "./command.ts";
import { decideCommitCompaction } from "./decide_compaction.ts";
import { decidePurge, decideSweepEpoch } from "./decide_garbage.ts";
import { decideDeleteKv, decideProducerIds, decidePutKv, decideRaiseLevel } from "./decide_kv.ts";
import {
  decideAssignLeaders,
  decideBeginRecovery,
  decideFinishRecovery,
  decideForgetWal,
  decideMovePartition,
  decideRegister,
} from "./decide_nodes.ts";
import { decideCommitUpload, decideReserveIds } from "./decide_objects.ts";
import {
  decideCloseStream,
  decideCreateStream,
  decideDeleteStream,
  decideOpenStream,
  decideTrimStream,
} from "./decide_streams.ts";
import {
  decideAlterConfigs,
  decideCreatePartitions,
  decideCreateTopic,
  decideDeleteTopic,
  decideSetMetaStream,
} from "./decide_topics.ts";
import type { MetadataRecord } from "./record.ts";
import type { StateImage } from "./state.ts";

/** A verdict on some command; its result fits the command's type. */
export type AnyVerdict =
  | {
    readonly ok: true;
    readonly records: readonly MetadataRecord[];
    readonly result: object;
  }
  | Refused;

/** `at` is the position that the entry with the records will have. */
export function decide(image: StateImage, command: Command, at: Position): AnyVerdict {
  switch (command.type) {
    case "register-node":
      return decideRegister(image, command, at);
    case "begin-recovery":
      return decideBeginRecovery(image, command, at);
    case "finish-recovery":
      return decideFinishRecovery(image, command);
    case "assign-leaders":
      return decideAssignLeaders(image, command);
    case "move-partition":
      return decideMovePartition(image, command);
    case "create-topic":
      return decideCreateTopic(image, command);
    case "create-partitions":
      return decideCreatePartitions(image, command);
    case "delete-topic":
      return decideDeleteTopic(image, command);
    case "alter-topic-configs":
      return decideAlterConfigs(image, command);
    case "set-meta-stream":
      return decideSetMetaStream(image, command);
    case "create-stream":
      return decideCreateStream(image, command);
    case "open-stream":
      return decideOpenStream(image, command);
    case "close-stream":
      return decideCloseStream(image, command);
    case "trim-stream":
      return decideTrimStream(image, command);
    case "delete-stream":
      return decideDeleteStream(image, command);
    case "reserve-ids":
      return decideReserveIds(image, command);
    case "commit-upload":
      return decideCommitUpload(image, command);
    case "commit-compaction":
      return decideCommitCompaction(image, command);
    case "sweep-epoch":
      return decideSweepEpoch(image, command);
    case "purge":
      return decidePurge(image, command);
    case "forget-wal":
      return decideForgetWal(image, command);
    case "put-kv":
      return decidePutKv(image, command);
    case "delete-kv":
      return decideDeleteKv(image, command);
    case "raise-feature-level":
      return decideRaiseLevel(image, command);
    case "alloc-producer-ids":
      return decideProducerIds(image, command);
    default:
      return unreachable(command);
  }
}
