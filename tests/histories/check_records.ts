/** Rules about single records: where they are, in which order, and that nobody ever saw anything else there. */
import { type Facts, inRealTime, partitionsOf, type Produced, type Tell } from "./facts.ts";
import type { Row } from "./history.ts";

function acknowledged(facts: Facts, partition: string): Produced[] {
  return facts.produced.filter(({ call, outcome }) =>
    outcome === "ok" && call.partition === partition
  );
}

function rowsOf({ offset, call }: Produced): Row[] {
  return offset < 0 ? [] : call.values.map((value, i) => [offset + i, value]);
}

function mapOf(rows: readonly Row[]): Map<number, string> {
  return new Map(rows);
}

/** No two answers name the same offset. */
export function offsetUnique(facts: Facts, tell: Tell): void {
  for (const partition of partitionsOf(facts)) {
    const seen = new Map<number, string>();
    for (const [offset, value] of acknowledged(facts, partition).flatMap(rowsOf)) {
      const other = seen.get(offset);
      if (other !== undefined) tell(`${partition}@${offset}: acknowledged ${other} and ${value}`);
      seen.set(offset, value);
    }
  }
}

/** What was acknowledged is in the final log, every byte, at the offset of the answer. */
export function acknowledgedLost(facts: Facts, tell: Tell): void {
  for (const partition of partitionsOf(facts)) {
    const rows = facts.finals.get(partition)?.uncommitted ?? [];
    const log = mapOf(rows);
    const values = new Set(rows.map(([, value]) => value));
    for (const one of acknowledged(facts, partition)) {
      for (const value of one.call.values) {
        if (!values.has(value)) tell(`${partition}: ${value} was acknowledged at ${one.offset}`);
      }
      for (const [offset, value] of rowsOf(one)) {
        const found = log.get(offset);
        if (values.has(value) && found !== value) {
          tell(`${partition}@${offset}: ${value} was acknowledged here, and there is ${found}`);
        }
      }
    }
  }
}

export function recordTwice(facts: Facts, tell: Tell): void {
  const seen = new Map<string, string>();
  for (const { partition, uncommitted } of facts.finals.values()) {
    for (const [offset, value] of uncommitted) {
      const place = `${partition}@${offset}`;
      const other = seen.get(value);
      if (other !== undefined) tell(`${value} is at ${other} and at ${place}`);
      seen.set(value, place);
    }
  }
}

/** Every record was written by somebody, into this partition, and its write did not fail. */
export function neverWritten(facts: Facts, tell: Tell): void {
  const look = (partition: string, rows: readonly Row[], who: string) => {
    for (const [offset, value] of rows) {
      const one = facts.byValue.get(value);
      if (one?.call.partition !== partition) tell(`${who}: ${partition}@${offset}: ${value}`);
      else if (one.outcome === "fail") tell(`${who}: ${partition}@${offset}: ${value} was refused`);
    }
  };
  for (const { partition, uncommitted } of facts.finals.values()) {
    look(partition, uncommitted, "final");
  }
  for (const { call, result } of facts.reads) look(call.partition, result.rows, call.reader);
}

/** Records of one producer are in the order in which it sent them. */
export function producerOrder(facts: Facts, tell: Tell): void {
  const rank = new Map<string, number>();
  for (const { call } of facts.produced) {
    for (const value of call.values) rank.set(value, rank.size);
  }
  for (const { partition, uncommitted } of facts.finals.values()) {
    const last = new Map<string, Row>();
    for (const [offset, value] of uncommitted) {
      const producer = facts.byValue.get(value)?.call.producer;
      if (producer === undefined) continue;
      const before = last.get(producer);
      if (before !== undefined && rank.get(before[1])! > rank.get(value)!) {
        tell(`${partition}: ${before[1]} at ${before[0]} is before ${value} at ${offset}`);
      }
      last.set(producer, [offset, value]);
    }
  }
}

/** Acknowledged before another was sent: a smaller offset. */
export function realTimeOrder(facts: Facts, tell: Tell): void {
  for (const partition of partitionsOf(facts)) {
    const all = acknowledged(facts, partition).filter(({ offset }) => offset >= 0);
    let most = -1;
    inRealTime(all, all, {
      over: ({ offset, call }) => void (most = Math.max(most, offset + call.values.length - 1)),
      starts({ offset, call }) {
        if (offset <= most) {
          tell(`${partition}: ${call.values[0]} at ${offset} was sent after ${most} was answered`);
        }
      },
    });
  }
}

/** An offset has one record, for whoever reads it and whenever, and it does not go away. */
export function readChanged(facts: Facts, tell: Tell): void {
  const seen = new Map<string, string>();
  const look = (partition: string, rows: readonly Row[], who: string) => {
    for (const [offset, value] of rows) {
      const place = `${partition}@${offset}`;
      const other = seen.get(place);
      if (other !== undefined && other !== value) tell(`${place}: ${other}, and ${value} (${who})`);
      seen.set(place, value);
    }
  };
  for (const { call, result } of facts.reads) look(call.partition, result.rows, call.reader);
  for (const one of facts.produced) {
    if (one.outcome === "ok") look(one.call.partition, rowsOf(one), "its acknowledgement");
  }
  for (const { partition, uncommitted, committed } of facts.finals.values()) {
    look(partition, uncommitted, "final");
    look(partition, committed, "final");
    const log = mapOf(uncommitted);
    for (const { call, result } of facts.reads) {
      if (call.partition !== partition) continue;
      for (const [offset, value] of result.rows) {
        if (!log.has(offset)) tell(`${partition}@${offset}: ${value} was read, and is gone`);
      }
    }
  }
}

/** A read passes over nothing that is there in the end, and its offsets rise. */
export function readGap(facts: Facts, tell: Tell): void {
  for (const { call, result } of facts.reads) {
    const { partition, reader, from } = call;
    const { rows, next } = result;
    for (let i = 1; i < rows.length; i++) {
      if (rows[i]![0] <= rows[i - 1]![0]) {
        tell(`${reader}: ${partition}: ${rows[i]![0]} after ${rows[i - 1]![0]}`);
      }
    }
    if (from === null || next === undefined) continue;
    const shown = mapOf(rows);
    for (const offset of facts.finals.get(partition)?.[call.isolation] ?? []) {
      if (offset[0] >= next) break;
      if (offset[0] >= from && !shown.has(offset[0])) {
        tell(`${reader}: ${partition}: ${from} to ${next} without ${offset[0]}, ${call.isolation}`);
      }
    }
  }
}

/** High watermark and last stable offset never fall, and what was acknowledged is below the former. */
export function marksBack(facts: Facts, tell: Tell): void {
  for (const partition of partitionsOf(facts)) {
    const reads = facts.reads.filter(({ call }) => call.partition === partition);
    for (const mark of ["highWatermark", "lastStableOffset"] as const) {
      let most = -1;
      const starts = (at: number | undefined) => {
        if (at !== undefined && at < most) tell(`${partition}: ${mark} ${at} after ${most}`);
      };
      inRealTime(reads, reads, {
        over: ({ result }) => void (most = Math.max(most, result[mark] ?? -1)),
        starts: ({ result }) => starts(result[mark]),
      });
      for (const { result } of reads) most = Math.max(most, result[mark] ?? -1);
      starts(facts.finals.get(partition)?.[mark]);
    }
    let end = 0;
    inRealTime(acknowledged(facts, partition), reads, {
      over: ({ offset, call }) => void (end = Math.max(end, offset + call.values.length)),
      starts({ result: { highWatermark } }) {
        if (highWatermark !== undefined && highWatermark < end) {
          tell(`${partition}: high watermark ${highWatermark}, and ${end - 1} was acknowledged`);
        }
      },
    });
  }
}

/** The final reads differ by aborted records only: nothing that is outside of transactions is hidden. */
export function finalDiffers(facts: Facts, tell: Tell): void {
  for (const { partition, committed, uncommitted } of facts.finals.values()) {
    const shown = mapOf(committed);
    const all = mapOf(uncommitted);
    for (const [offset, value] of committed) {
      if (all.get(offset) !== value) tell(`${partition}@${offset}: only committed readers see it`);
    }
    for (const [offset, value] of uncommitted) {
      const txn = facts.byValue.get(value)?.call.txn;
      if (txn === null && !shown.has(offset)) tell(`${partition}@${offset}: ${value} is hidden`);
    }
  }
}
