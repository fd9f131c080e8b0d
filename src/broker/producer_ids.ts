/** Producer ids out of blocks that are reserved in the metadata log; what a process has not used is never used. */
import { PRODUCER_ID_BLOCK } from "../lib/limits.ts";
import { SingleFlight } from "../lib/single_flight.ts";
import type { ErrorName } from "../protocol/error_code.ts";
import type { BrokerServices } from "./handler.ts";

export class ProducerIds {
  readonly #services: Pick<BrokerServices, "requester" | "metadata">;
  readonly #refilling = new SingleFlight<"block", ErrorName | null>();
  #next = 0;
  #end = 0;

  constructor(services: Pick<BrokerServices, "requester" | "metadata">) {
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

  /** Many may wait for one block; who finds it used up asks for another. Throws FaultError. */
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
