/**
 * AddOffsetsToTxn (key 25), versions 0-4.
 * Behaviour: adds the partition of `__consumer_offsets` that holds the group's offsets to the transaction.
 * Version notes: 2 PRODUCER_FENCED (KIP-588).
 */
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import {
  addOffsetsToTxnApi,
  type AddOffsetsToTxnRequest,
  type AddOffsetsToTxnResponse,
} from "../../protocol/message/25_add_offsets_to_txn.ts";
import { isStorable } from "../group/group.ts";
import type { GroupServices } from "../group/services.ts";
import type { Handler } from "../handler.ts";
import { OFFSETS_TOPIC } from "../topic_name.ts";

const FENCED_SINCE = 2;

async function add(
  { coordinator, transactions }: GroupServices,
  { transactionalId, producerId, producerEpoch, groupId }: AddOffsetsToTxnRequest,
): Promise<ErrorName> {
  if (transactionalId === "") return "INVALID_REQUEST";
  if (!isStorable(groupId)) return "INVALID_GROUP_ID";
  const partition = await coordinator.partitionOf(groupId);
  if (typeof partition === "string") return partition;
  const producer = { producerId, producerEpoch };
  const partitions = [{ topic: OFFSETS_TOPIC, partition }];
  return await transactions.add(transactionalId, producer, partitions, false);
}

export function addOffsetsToTxnHandler(
  services: GroupServices,
): Handler<AddOffsetsToTxnRequest, AddOffsetsToTxnResponse> {
  return {
    api: addOffsetsToTxnApi,
    min: 0,
    max: 4,
    async handle(request, { version }) {
      const error = await add(services, request);
      const isRenamed = error === "PRODUCER_FENCED" && version < FENCED_SINCE;
      return {
        throttleTimeMs: 0,
        errorCode: errorCode(isRenamed ? "INVALID_PRODUCER_EPOCH" : error),
      };
    },
  };
}
