/**
 * WriteTxnMarkers (key 27), versions 1-2.
 * Behaviour: writes markers as a coordinator would, for tools that end a transaction which hangs; answered once they
 * are durable. A marker of an old epoch is refused, and so is one of an old coordinator epoch.
 * Version notes: 2 says by which rules the epoch is judged (KIP-1228).
 */
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import {
  writeTxnMarkersApi,
  type WriteTxnMarkersRequest,
  type WriteTxnMarkersResponse,
} from "../../protocol/message/27_write_txn_markers.ts";
import { isClamped } from "../../protocol/primitive.ts";
import type { GroupServices } from "../group/services.ts";
import type { Handler } from "../handler.ts";
import { inGroups } from "../many.ts";
import type { TxnPartition } from "../txn/transaction.ts";
import type { TransactionMarker } from "../../log/partition_log.ts";

const V2 = 2;

type Asked = WriteTxnMarkersRequest["markers"][number];

function markerOf(asked: Asked): TransactionMarker {
  const { producerId, producerEpoch, coordinatorEpoch } = asked;
  return {
    producerId,
    producerEpoch,
    coordinatorEpoch,
    commit: asked.transactionResult,
    isTransactionsV2: asked.transactionVersion >= V2,
  };
}

async function write({ env, transactions }: GroupServices, asked: Asked) {
  const marker = markerOf(asked);
  const { producerId } = marker;
  const isNobody = producerId < 0 || isClamped(producerId);
  const mark = (at: TxnPartition): Promise<ErrorName> =>
    isNobody
      ? Promise.resolve("INVALID_PRODUCER_ID_MAPPING")
      : transactions.markers.write(at, marker);
  const topics = [];
  for (const { name, partitionIndexes } of asked.topics) {
    const partitions = await inGroups(env.clock, partitionIndexes, async (partition) => ({
      partitionIndex: partition,
      errorCode: errorCode(await mark({ topic: name, partition })),
    }));
    topics.push({ name, partitions });
  }
  return { producerId: asked.producerId, topics };
}

export function writeTxnMarkersHandler(
  services: GroupServices,
): Handler<WriteTxnMarkersRequest, WriteTxnMarkersResponse> {
  return {
    api: writeTxnMarkersApi,
    min: 1,
    max: 2,
    async handle(request) {
      const markers = [];
      for (const asked of request.markers) markers.push(await write(services, asked));
      return { markers };
    },
  };
}
