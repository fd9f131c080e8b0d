/** Waits for what a broker makes when it is first asked for: coordinators, and a block of producer ids. */
import { findCoordinatorApi } from "../../../src/protocol/message/10_find_coordinator.ts";
import { describeGroupsApi } from "../../../src/protocol/message/15_describe_groups.ts";
import { initProducerIdApi } from "../../../src/protocol/message/22_init_producer_id.ts";
import type { Script } from "../script.ts";

type Part = "group" | "transaction" | "producer ids";

async function found(script: Script, keyType: number): Promise<void> {
  const asked = { keyType, coordinatorKeys: ["d-ready"] };
  await script.until(
    findCoordinatorApi,
    4,
    asked,
    ({ coordinators: [one] }) => one?.errorCode === 0,
  );
}

async function firstProducer(script: Script, transactionalId: string | null): Promise<void> {
  const asked = { transactionalId, transactionTimeoutMs: 60_000 };
  await script.until(initProducerIdApi, 4, asked, ({ errorCode }) => errorCode === 0);
}

export async function ready(script: Script, ...parts: readonly Part[]): Promise<void> {
  if (parts.includes("group")) {
    await found(script, 0);
    // The coordinator is known before it has loaded.
    const asked = { groups: ["d-ready"] };
    await script.until(describeGroupsApi, 5, asked, ({ groups: [one] }) => one?.errorCode === 0);
  }
  if (parts.includes("transaction")) {
    await found(script, 1);
    await firstProducer(script, "d-ready");
  }
  if (parts.includes("producer ids")) await firstProducer(script, null);
}
