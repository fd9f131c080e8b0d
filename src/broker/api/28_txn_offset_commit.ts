/**
 * TxnOffsetCommit (key 28), versions 0-5.
 * Behaviour: offsets count once the transaction commits; until then readers of stable offsets are told
 * UNSTABLE_OFFSET_COMMIT, and the offsets do not expire. A plain commit that comes later wins. Member and generation
 * are checked only if they are given; the state of the group is not looked at.
 * Version notes: 2 leader epochs (KIP-320) · 3 the member (KIP-447) · 4 TRANSACTION_ABORTABLE · 5 adds the group's
 * partition to the transaction itself (KIP-890).
 */
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import {
  txnOffsetCommitApi,
  type TxnOffsetCommitRequest,
  type TxnOffsetCommitResponse,
} from "../../protocol/message/28_txn_offset_commit.ts";
import { partitionKey } from "../../controller/image.ts";
import { faultToCode } from "../fault_to_code.ts";
import { checkTxnCommit } from "../group/consumer/caller.ts";
import { checkIdentity, isStorable } from "../group/group.ts";
import { stillOpen } from "../group/coordinator.ts";
import { NEVER, type OffsetEntry } from "../group/offset_table.ts";
import type { GroupServices } from "../group/services.ts";
import type { GroupEntry, Shard } from "../group/shard.ts";
import type { Handler } from "../handler.ts";
import { OFFSETS_TOPIC } from "../topic_name.ts";
import type { TxnPartition } from "../txn/transaction.ts";
import { type Verified, type VerifyMode, verifyOne } from "../txn/verify.ts";
import { entryOf, partitionError, type Rules, rulesOf } from "./08_offset_commit.ts";

const OLD_ERRORS_BEFORE = 2;
const ABORTABLE_SINCE = 4;
const ADD_SINCE = 5;

type RequestPartition = TxnOffsetCommitRequest["topics"][number]["partitions"][number];

function answer(
  request: TxnOffsetCommitRequest,
  errorOf: (partition: RequestPartition) => ErrorName,
): TxnOffsetCommitResponse {
  return {
    throttleTimeMs: 0,
    topics: request.topics.map(({ name, partitions }) => ({
      name,
      partitions: partitions.map((partition) => ({
        partitionIndex: partition.partitionIndex,
        errorCode: errorCode(errorOf(partition)),
      })),
    })),
  };
}

function checkCaller(
  entry: GroupEntry | undefined,
  { generationId, memberId, groupInstanceId }: TxnOffsetCommitRequest,
): ErrorName {
  if (entry !== undefined && entry.consumer !== null) {
    const consumers = entry.consumer.group;
    const error = checkTxnCommit(consumers, memberId, groupInstanceId, generationId);
    // The request has no word of its own for it.
    return error === "STALE_MEMBER_EPOCH" ? "ILLEGAL_GENERATION" : error;
  }
  if (entry !== undefined && entry.share !== null) return "GROUP_ID_NOT_FOUND";
  const group = entry?.group;
  if (group === undefined || group.state === "Dead") {
    return generationId < 0 ? "NONE" : "ILLEGAL_GENERATION";
  }
  if (generationId < 0 && group.members.size === 0) return "NONE";
  if (generationId < 0 && memberId === "" && groupInstanceId === null) return "NONE";
  const identity = checkIdentity(group, memberId, groupInstanceId);
  if (identity !== "NONE") return identity;
  return generationId === group.generation ? "NONE" : "ILLEGAL_GENERATION";
}

function modeOf(version: number, isV2: boolean): VerifyMode {
  if (version >= ADD_SINCE && isV2) return "add";
  return version >= ABORTABLE_SINCE ? "abortable" : "old";
}

/** What the log and the transaction's coordinator say, in the words of a group's coordinator. */
function renamed(error: ErrorName, version: number): ErrorName {
  switch (error) {
    case "NOT_ENOUGH_REPLICAS":
    case "OUT_OF_ORDER_SEQUENCE_NUMBER":
    case "REQUEST_TIMED_OUT":
      return "COORDINATOR_NOT_AVAILABLE";
    case "NOT_LEADER_OR_FOLLOWER":
      return "NOT_COORDINATOR";
    case "MESSAGE_TOO_LARGE":
    case "RECORD_LIST_TOO_LARGE":
      return "INVALID_COMMIT_OFFSET_SIZE";
    case "COORDINATOR_LOAD_IN_PROGRESS":
      return version < OLD_ERRORS_BEFORE ? "COORDINATOR_NOT_AVAILABLE" : error;
    default:
      return error;
  }
}

interface Checked {
  readonly offsets: readonly OffsetEntry[];
  readonly errors: ReadonlyMap<RequestPartition, ErrorName>;
}

function check(rules: Rules, request: TxnOffsetCommitRequest): Checked {
  const nowMs = rules.services.env.clock.nowMs();
  const offsets = new Map<string, OffsetEntry>();
  const errors = new Map<RequestPartition, ErrorName>();
  for (const { name, partitions } of request.topics) {
    const row = rules.services.topics.find(name);
    for (const partition of partitions) {
      const error = partitionError(rules, row, partition, 0);
      errors.set(partition, error);
      if (row === undefined || error !== "NONE") continue;
      const entry = entryOf(row, partition, nowMs, NEVER);
      offsets.set(partitionKey(row.topicId, partition.partitionIndex), entry);
    }
  }
  return { offsets: [...offsets.values()], errors };
}

function verify(
  { env, transactions }: GroupServices,
  shard: Shard,
  at: TxnPartition,
  request: TxnOffsetCommitRequest,
  version: number,
): Promise<Verified> {
  const { transactionalId, producerId, producerEpoch } = request;
  const producer = { producerId, producerEpoch };
  const mode = modeOf(version, transactions.isV2);
  const ask = { transactionalId, producer, partition: at, mode };
  return verifyOne(env, transactions, ask, () => shard.pending.verify(producer, mode === "add"));
}

async function commit(
  services: GroupServices,
  shard: Shard,
  request: TxnOffsetCommitRequest,
  offsets: readonly OffsetEntry[],
  version: number,
): Promise<ErrorName> {
  const { groupId, producerId, producerEpoch } = request;
  const partition = await services.coordinator.partitionOf(groupId);
  if (typeof partition === "string") return partition;
  const at = { topic: OFFSETS_TOPIC, partition };
  const { error, verification } = await verify(services, shard, at, request, version);
  if (error !== "NONE") return error;
  if (shard.closed) return "NOT_COORDINATOR";
  const entry = shard.findOrCreate(groupId);
  if (!shard.pending.hasRoomFor(groupId, offsets)) {
    shard.reschedule(entry);
    return "INVALID_COMMIT_OFFSET_SIZE";
  }
  try {
    return await shard.commitPending(entry, { producerId, producerEpoch }, offsets, verification);
  } catch (failure) {
    return faultToCode(failure, "coordinator");
  }
}

export function txnOffsetCommitHandler(
  services: GroupServices,
): Handler<TxnOffsetCommitRequest, TxnOffsetCommitResponse> {
  const rules = rulesOf(services);
  return {
    api: txnOffsetCommitApi,
    min: 0,
    max: 5,
    async handle(request, { version }) {
      const fail = (error: ErrorName) => answer(request, () => renamed(error, version));
      if (request.groupId === "" || !isStorable(request.groupId)) return fail("INVALID_GROUP_ID");
      if (request.transactionalId === "") return fail("INVALID_REQUEST");
      const found = stillOpen(await services.coordinator.shardOf(request.groupId));
      if (!found.ok) return fail(found.error);
      const refused = checkCaller(found.shard.find(request.groupId), request);
      if (refused !== "NONE") return fail(refused);
      const { offsets, errors } = check(rules, request);
      const stored = offsets.length === 0
        ? "NONE"
        : await commit(services, found.shard, request, offsets, version);
      return answer(request, (partition) => {
        const error = errors.get(partition)!;
        return error === "NONE" ? renamed(stored, version) : error;
      });
    },
  };
}
