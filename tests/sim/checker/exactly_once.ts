/**
 * An idempotent producer that never gave up finds its records once and in its order: no value twice, none
 * skipped. Behind a trimmed start the first records may be missing, nothing else.
 */
import type { World } from "../world.ts";
import { name, type PartitionHistory } from "./history.ts";
import type { WholeLog } from "./readable.ts";

/** `w3:17` is record 17 of producer w3. */
export function checkExactlyOnce(
  world: World,
  history: PartitionHistory,
  log: WholeLog,
  producer: string,
  /** Records that it has handed out, from 0. */
  sent: number,
): void {
  const where = `${name(history)}, producer ${producer}`;
  const numbers = log.records
    .filter(({ offset, value }) => offset >= log.logStart && value.startsWith(`${producer}:`))
    .map(({ value }) => Number(value.slice(producer.length + 1)));
  const first = numbers[0] ?? 0;
  if (first > 0 && log.logStart === 0) world.violated(`${where}: begins with record ${first}`);
  for (const [i, number] of numbers.entries()) {
    if (number !== first + i) {
      const kind = number < first + i ? "comes again" : "comes too early";
      const all = log.records.map(({ offset, value }) => `${offset}=${value}`).join(" ");
      return world.violated(`${where}: record ${number} ${kind}, ${first + i} was next: ${all}`);
    }
  }
  if (log.logStart === 0 && numbers.length !== sent) {
    world.violated(`${where}: ${numbers.length} records of ${sent}`);
  }
}
