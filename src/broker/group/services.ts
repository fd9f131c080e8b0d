/** What the handlers of the group and transaction APIs are built from. */
import type { BrokerServices } from "../handler.ts";
import type { Transactions } from "../txn/transactions.ts";
import type { Coordinator } from "./coordinator.ts";

export interface GroupServices extends BrokerServices {
  readonly coordinator: Coordinator;
  readonly transactions: Transactions;
}
