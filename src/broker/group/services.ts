/** What the handlers of the group APIs are built from. */
import type { BrokerServices } from "../handler.ts";
import type { Coordinator } from "./coordinator.ts";

export interface GroupServices extends BrokerServices {
  readonly coordinator: Coordinator;
}
