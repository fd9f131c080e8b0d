/**
 * InitProducerId (key 22), versions 0-5.
 * Behaviour: ids come from blocks reserved in the metadata log; what a process has not used is never
 * used, so no id appears twice, restarts included. Every call without a transactional id gives a new id
 * with epoch 0. Deviations: there are no transactions, a transactional id finds no coordinator.
 * Version notes: 2 flexible · 3 carries the old id and epoch, which only transactions need (KIP-360).
 */
import { PRODUCER_ID_BLOCK } from "../../lib/limits.ts";
import { SingleFlight } from "../../lib/single_flight.ts";
import { errorCode, type ErrorName } from "../../protocol/error_code.ts";
import {
  initProducerIdApi,
  type InitProducerIdRequest,
  type InitProducerIdResponse,
} from "../../protocol/message/22_init_producer_id.ts";
import { faultToCode } from "../fault_to_code.ts";
import type { BrokerServices, Handler } from "../handler.ts";

function failed(error: ErrorName): InitProducerIdResponse {
  return { throttleTimeMs: 0, errorCode: errorCode(error), producerId: -1, producerEpoch: -1 };
}

/** Hands out the ids of one reserved block after the other. */
class ProducerIds {
  readonly #services: BrokerServices;
  readonly #refilling = new SingleFlight<"block", ErrorName | null>();
  #next = 0;
  #end = 0;

  constructor(services: BrokerServices) {
    this.#services = services;
  }

  async #refill(): Promise<ErrorName | null> {
    const by = this.#services.requester();
    const decided = await this.#services.metadata.submit(
      { type: "alloc-producer-ids", by, count: PRODUCER_ID_BLOCK },
    );
    if (!decided.ok) return "COORDINATOR_NOT_AVAILABLE";
    this.#next = decided.first;
    this.#end = decided.first + PRODUCER_ID_BLOCK;
    return null;
  }

  /** Many may wait for one block; who finds it used up asks for another. */
  async take(): Promise<number | ErrorName> {
    while (this.#next >= this.#end) {
      const error = await this.#refilling.run("block", () => this.#refill());
      if (error !== null) return error;
    }
    const id = this.#next;
    this.#next += 1;
    return id;
  }
}

export function initProducerIdHandler(
  services: BrokerServices,
): Handler<InitProducerIdRequest, InitProducerIdResponse> {
  const ids = new ProducerIds(services);

  return {
    api: initProducerIdApi,
    min: 0,
    max: 5,
    async handle({ transactionalId }) {
      if (transactionalId === "") return failed("INVALID_REQUEST");
      if (transactionalId !== null) return failed("COORDINATOR_NOT_AVAILABLE");
      try {
        const id = await ids.take();
        if (typeof id === "string") return failed(id);
        const none = errorCode("NONE");
        return { throttleTimeMs: 0, errorCode: none, producerId: id, producerEpoch: 0 };
      } catch (error) {
        return failed(faultToCode(error, "coordinator"));
      }
    },
  };
}
