/**
 * Nodes whose code is broken on purpose, one method at a time, in what transactions and topic compaction promise.
 * Each must be caught: else the checkers are blind.
 */
import type { ErrorName } from "../../src/protocol/error_code.ts";
import { Markers } from "../../src/broker/txn/markers.ts";
import { Transactions } from "../../src/broker/txn/transactions.ts";
import { TxnShard } from "../../src/broker/txn/txn_shard.ts";
import { PendingOffsets } from "../../src/broker/group/pending_offsets.ts";
import { AbortedTransactions } from "../../src/log/aborted_transactions.ts";
import { CleanedStreams } from "../../src/log/clean/cleaned_streams.ts";
import { OffsetMap } from "../../src/log/clean/offset_map.ts";
import { OpenTransactions } from "../../src/log/open_transactions.ts";
import { ProducerState } from "../../src/log/producer_state.ts";

export interface BrokenCode {
  /** Breaks it; what it returns mends it. */
  readonly plant: () => () => void;
  /** The rule that has to notice. */
  readonly caughtBy: RegExp;
  /** An early seed in which it is caught; later ones would do too. */
  readonly from: number;
}

/** Puts another method in the place of one of a class, which it may still call. */
function replacing<T, K extends keyof T>(
  of: { readonly prototype: T },
  method: K,
  by: (original: T[K]) => T[K],
): () => () => void {
  return () => {
    const { prototype } = of;
    const original = prototype[method];
    prototype[method] = by(original);
    return () => void (prototype[method] = original);
  };
}

/** By what such a node does. */
export const BROKEN_CODE: ReadonlyMap<string, BrokenCode> = new Map<string, BrokenCode>([
  ["does not hold the last stable offset for an open transaction", {
    plant: replacing(OpenTransactions, "firstUnstable", () => () => null),
    caughtBy: /last stable offset .* passes .* which is open|is shown as committed/,
    from: 1,
  }],
  ["does not send the markers of an end that it finds after a crash", {
    plant: replacing(TxnShard, "start", () => () => {}),
    caughtBy: /^I18: (the end of all transactions|no peace)/,
    from: 1,
  }],
  ["takes no open transaction from a snapshot", {
    plant: replacing(ProducerState, "load", (load) =>
      function (this: ProducerState, entries) {
        load.call(this, entries.map((one) => ({ ...one, currentTxnFirstOffset: null })));
      }),
    caughtBy: /last stable offset|is shown as committed|lists of aborted transactions/,
    from: 7,
  }],
  ["forgets aborted transactions", {
    plant: replacing(AbortedTransactions, "add", () => () => {}),
    caughtBy: /is shown as committed|lists of aborted transactions/,
    from: 1,
  }],
  ["turns some commits into aborts", {
    plant: replacing(Markers, "send", (send) =>
      function (this: Markers, row, ...rest) {
        const isTurned = row.status === "PrepareCommit" && row.partitions.size === 2;
        return send.call(this, isTurned ? { ...row, status: "PrepareAbort" } : row, ...rest);
      }),
    caughtBy: /is committed: \d+ of \d+ records are seen|has offset|is newer/,
    from: 1,
  }],
  ["gives two producers the same epoch", {
    plant: replacing(Transactions, "initProducerId", (init) => {
      const given = new Map<string, Awaited<ReturnType<typeof init>>>();
      return async function (this: Transactions, ask) {
        const answer = given.get(ask.transactionalId) ?? await init.call(this, ask);
        if (answer.ok) given.set(ask.transactionalId, answer);
        return answer;
      };
    }),
    caughtBy: /is given to/,
    from: 1,
  }],
  ["lets a producer go on that was followed", {
    plant: () => {
      const letThrough = (error: ErrorName) => error === "PRODUCER_FENCED" ? "NONE" : error;
      const mend = [
        replacing(Transactions, "add", (add) =>
          async function (this: Transactions, ...ask) {
            return letThrough(await add.apply(this, ask));
          })(),
        replacing(Transactions, "verify", (verify) =>
          async function (this: Transactions, ...ask) {
            const found = await verify.apply(this, ask);
            return new Map([...found].map(([name]) => [name, "NONE"]));
          })(),
      ];
      return () => mend.forEach((one) => one());
    },
    caughtBy: /of a producer that was followed/,
    from: 1,
  }],
  ["publishes no offsets of transactions", {
    plant: replacing(PendingOffsets, "end", (end) =>
      function (this: PendingOffsets, marker) {
        end.call(this, marker);
        return [];
      }),
    caughtBy: /has offset/,
    from: 1,
  }],
  ["drops the newest record of a key", {
    plant: replacing(OffsetMap, "get", (get) =>
      function (this: OffsetMap, key) {
        return get.call(this, key) + 1;
      }),
    caughtBy: /is newer/,
    from: 1,
  }],
  ["compacts nothing away", {
    plant: replacing(OffsetMap, "get", () => () => -1),
    // A deletion that goes without what it hides shows an old value again.
    caughtBy: /is not compacted|ends with offset/,
    from: 2,
  }],
  ["leaves the streams of passes that were replaced", {
    plant: replacing(CleanedStreams, "tidy", () => () => Promise.resolve()),
    caughtBy: /^I11: stream \d+ of .* is left/,
    from: 1,
  }],
]);
