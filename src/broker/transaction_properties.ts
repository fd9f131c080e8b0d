/** The broker properties of transactions, with Kafka's names. */
import { TOPIC_PARTITIONS_MAX } from "../lib/limits.ts";
import { INT_MAX, type Property } from "./property.ts";

function int(name: string, fallback: number, documentation: string): Property {
  return { name, type: "int", fallback: String(fallback), min: 1n, max: INT_MAX, documentation };
}

export const TRANSACTION_PROPERTIES: readonly Property[] = [
  {
    ...int(
      "transaction.state.log.num.partitions",
      8,
      "Partitions of __transaction_state, fixed when it is created.",
    ),
    max: BigInt(TOPIC_PARTITIONS_MAX),
  },
  int(
    "transaction.max.timeout.ms",
    900_000,
    "Longest time that a producer may ask for its transactions.",
  ),
  int(
    "transaction.abort.timed.out.transaction.cleanup.interval.ms",
    10_000,
    "How often transactions that are open for too long are looked for.",
  ),
  int(
    "transactional.id.expiration.ms",
    604_800_000,
    "How long a transactional id lives that nobody uses.",
  ),
  int(
    "transaction.remove.expired.transaction.cleanup.interval.ms",
    3_600_000,
    "How often such ids are looked for.",
  ),
];
