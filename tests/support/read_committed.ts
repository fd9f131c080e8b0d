/** What a reader of committed records makes of fetch answers, as Kafka's consumers do. */
import assert from "node:assert/strict";
import { isControlBatch, isTransactionalBatch } from "../../src/protocol/record_batch.ts";
import { batchesOf, type Quirks, textOf } from "../quirks/quirks.ts";

/** Values of a partition from an offset on, without those of aborted transactions. */
export async function committedValues(
  q: Quirks,
  topic: string,
  partition = 0,
  from = 0,
): Promise<string[]> {
  const found: string[] = [];
  for (let at = from;;) {
    const answer = await q.fetch(topic, at, { isolationLevel: 1, partition });
    assert.equal(answer.error, "NONE");
    const batches = batchesOf(answer.records);
    if (batches.length === 0) return found;
    const aborted = (answer.abortedTransactions ?? [])
      .toSorted((a, b) => a.firstOffset - b.firstOffset);
    const skipped = new Set<number>();
    for (const one of batches) {
      const last = one.baseOffset + one.lastOffsetDelta;
      while (aborted[0] !== undefined && aborted[0].firstOffset <= last) {
        skipped.add(aborted.shift()!.producerId);
      }
      if (isControlBatch(one)) skipped.delete(one.producerId);
      else if (!isTransactionalBatch(one) || !skipped.has(one.producerId)) {
        const wanted = one.records.filter(({ offset }) => offset >= from);
        found.push(...wanted.map(({ value }) => textOf(value) ?? ""));
      }
      at = last + 1;
    }
  }
}
