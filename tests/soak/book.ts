/**
 * What is known of one partition: the order in which its tail was read, what was acknowledged, and
 * samples of both for the cold readers. A broken promise is thrown as a Violation.
 */
import type { TopicPlan } from "./settings.ts";
import type { Told } from "./payload.ts";

export class Violation extends Error {}

const SAMPLE_OFFSETS = 32;
/** Clocks of the test, the broker and the store are the same; this is for what is under way. */
const SLACK_MS = 2_000;
/** Plain producers repeat batches whose answer was lost, and only one of them is ever acknowledged. */
const UNMATCHED_MAX = 2_000;

interface Sample extends Told {
  readonly offset: number;
  readonly timestampMs: number;
}

/** Follows the writers of one partition from any place on. */
export class OrderCheck {
  readonly #next = new Map<string, number>();

  /** Exactly once for idempotent writers; plain ones may repeat, but leave nothing out. */
  take({ writer, sequence }: Told): void {
    const next = this.#next.get(writer);
    if (next !== undefined) {
      const once = !writer.startsWith("plain");
      if (sequence > next) {
        throw new Violation(`${writer}: ${next} to ${sequence - 1} are missing`);
      }
      if (once && sequence < next) throw new Violation(`${writer}: ${sequence} is there twice`);
    }
    this.#next.set(writer, Math.max(next ?? 0, sequence + 1));
  }

  nextOf(writer: string): number | undefined {
    return this.#next.get(writer);
  }

  /** A reader that starts at the first offset must see every writer from 0 on. */
  expectFromStart(writer: string): void {
    if (!this.#next.has(writer)) this.#next.set(writer, 0);
  }
}

export class PartitionBook {
  readonly topic: TopicPlan;
  readonly partition: number;
  /** The offset that the tail reader waits for. */
  tail = 0;
  logStart = 0;
  /** Its topic is being deleted: nothing is promised any more. */
  deleted = false;
  /** Places where retention was faster than the tail reader. */
  skips = 0;
  readonly acknowledged = new Map<string, number>();
  #order = new OrderCheck();
  readonly #samples: Sample[] = [];
  /** Batches that only one of tail and answer has told of so far, by offset. */
  readonly #unmatched = new Map<number, Told & { readonly from: "tail" | "answer" }>();

  constructor(topic: TopicPlan, partition: number) {
    this.topic = topic;
    this.partition = partition;
  }

  get name(): string {
    return `${this.topic.name}-${this.partition}`;
  }

  /** `offset` is -1 when the broker only says that it has the batch already. */
  answered(offset: number, told: Told, count: number): void {
    const before = this.acknowledged.get(told.writer) ?? 0;
    this.acknowledged.set(told.writer, Math.max(before, told.sequence + count));
    if (offset >= 0 && offset >= this.logStart) this.#match(offset, { ...told, from: "answer" });
  }

  #match(offset: number, told: Told & { readonly from: "tail" | "answer" }): void {
    const other = this.#unmatched.get(offset);
    if (other === undefined || other.from === told.from) {
      this.#unmatched.set(offset, told);
      if (this.#unmatched.size > UNMATCHED_MAX) {
        this.#unmatched.delete(this.#unmatched.keys().next().value!);
      }
      return;
    }
    this.#unmatched.delete(offset);
    if (other.writer !== told.writer || other.sequence !== told.sequence) {
      throw new Violation(
        `${this.name} offset ${offset}: acknowledged and read are ${told.writer} ${told.sequence}` +
          ` and ${other.writer} ${other.sequence}`,
      );
    }
  }

  /** The tail reader got the next record. */
  read(offset: number, told: Told, timestampMs: number, isBase: boolean): void {
    if (offset !== this.tail) {
      throw new Violation(`${this.name}: offset ${offset} where ${this.tail} must follow`);
    }
    if (this.skips === 0) this.#order.expectFromStart(told.writer);
    this.#order.take(told);
    this.tail = offset + 1;
    if (isBase) this.#match(offset, { ...told, from: "tail" });
    if (offset % SAMPLE_OFFSETS === 0) this.#samples.push({ ...told, offset, timestampMs });
  }

  /** Any reader: the same record at the same offset, whoever asks. */
  compare(offset: number, { writer, sequence }: Told): void {
    if (offset % SAMPLE_OFFSETS !== 0) return;
    const sample = this.#sampleAt(offset);
    if (sample === null || (sample.writer === writer && sample.sequence === sequence)) return;
    throw new Violation(
      `${this.name} offset ${offset}: ${writer} ${sequence}, and it was ${sample.writer} ${sample.sequence}`,
    );
  }

  /** The log start that an answer tells: it only moves on, and only as retention allows. */
  started(logStart: number): void {
    if (logStart < 0 || this.deleted) return;
    if (logStart < this.logStart) return;
    const moved = logStart > this.logStart;
    this.logStart = logStart;
    if (!moved) return;
    const { retentionMs, retentionBytes } = this.topic;
    if (retentionMs === null && retentionBytes === null) {
      throw new Violation(
        `${this.name}: the log starts at ${logStart}, and nothing may be dropped`,
      );
    }
    if (retentionMs === null) return;
    const last = this.#samples.findLast(({ offset }) => offset < logStart);
    const ageMs = last === undefined ? Infinity : Date.now() - last.timestampMs;
    if (ageMs < retentionMs - SLACK_MS) {
      throw new Violation(`${this.name}: offset ${last!.offset} is gone after ${ageMs} ms`);
    }
  }

  /** The tail reader is behind the log start: it goes on there, and what follows is checked from there on. */
  skipTo(logStart: number): void {
    this.started(logStart);
    if (logStart <= this.tail) return;
    this.skips += 1;
    this.tail = logStart;
    this.#order = new OrderCheck();
  }

  /** At rest, when the tail was read to its end. */
  checkAcknowledged(): void {
    for (const [writer, next] of this.acknowledged) {
      const seen = this.#order.nextOf(writer);
      if (seen === undefined && this.skips > 0) continue;
      if (seen === undefined || seen < next) {
        throw new Violation(
          `${this.name}: ${writer} was acknowledged up to ${next - 1}, and ends at ${
            (seen ?? 0) - 1
          }`,
        );
      }
    }
  }

  #sampleAt(offset: number): Sample | null {
    let low = 0;
    let high = this.#samples.length - 1;
    while (low <= high) {
      const middle = (low + high) >> 1;
      const found = this.#samples[middle]!;
      if (found.offset === offset) return found;
      if (found.offset < offset) low = middle + 1;
      else high = middle - 1;
    }
    return null;
  }
}
