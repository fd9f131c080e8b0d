/** Readers of transactional and compacted topics, of committed records or of all: some pages from anywhere, or a whole log. */
import { type Random, randomInt } from "../../../src/env/random.ts";
import { watermarkSeen } from "../checker/history.ts";
import {
  committedByList,
  committedByMarkers,
  type SeenBatch,
  type SeenRecord,
} from "../checker/log_view.ts";
import { KafkaClient, NoAnswer } from "../kafka_client.ts";
import { chance, pick } from "../world.ts";
import { isTransient, pauseOf, unexpected } from "./context.ts";
import { fetchLog, type LogAnswer } from "./log_fetch.ts";
import { historyOf, type Place, type Semantics } from "./semantics_context.ts";

const TIMEOUT_MS = 15_000;
const PAGES_MAX = 12;

export interface Read {
  readonly batches: readonly SeenBatch[];
  /** What a reader of committed records keeps; all of them for the other kind. */
  readonly records: readonly SeenRecord[];
  /** Reached what may be read. */
  readonly isWhole: boolean;
}

interface ReadOptions {
  readonly place: Place;
  readonly from: number;
  readonly isCommitted: boolean;
  readonly pagesMax: number;
  readonly maxBytes: () => number;
}

export class LogReader {
  readonly #play: Semantics;
  readonly #name: string;
  readonly #random: Random;
  readonly #client: KafkaClient;

  constructor(play: Semantics, name: string) {
    const { world, cluster } = play.context;
    this.#play = play;
    this.#name = name;
    this.#random = world.random(name);
    this.#client = new KafkaClient(world, cluster, name);
  }

  async run(pauseMs: number): Promise<void> {
    const { context, places } = this.#play;
    while (!context.over) {
      await context.world.sleep(pauseOf(context, this.#random, pauseMs));
      if (context.over) continue;
      // While nothing happens it is a read that opens a partition after a restart: only then is it compacted.
      const place = pick(this.#random, places);
      const seen = watermarkSeen(historyOf(context, place), Infinity);
      await this.read({
        place,
        from: pick(this.#random, [0, 0, randomInt(this.#random, seen + 1)]),
        isCommitted: chance(this.#random, 0.7),
        pagesMax: PAGES_MAX,
        maxBytes: () => chance(this.#random, 0.3) ? 300 : 1_000_000,
      });
    }
  }

  /** All that there is from an offset on; tries until it is answered. */
  async whole(place: Place, isCommitted: boolean, from = 0): Promise<Read> {
    for (;;) {
      const read = await this.read({
        place,
        from,
        isCommitted,
        pagesMax: Infinity,
        maxBytes: () => 100_000,
      });
      if (read.isWhole) return read;
      await this.#play.context.world.sleep(100);
    }
  }

  /** Offsets of a partition as it is now; null without an answer. */
  async marks(place: Place): Promise<Pick<LogAnswer, "stable" | "watermark"> | null> {
    const seen = watermarkSeen(historyOf(this.#play.context, place), Infinity);
    const answer = await this.#page(place, seen, true, 100);
    return answer === null || answer.code !== 0 ? null : answer;
  }

  async read(options: ReadOptions): Promise<Read> {
    const { place, from, isCommitted, pagesMax } = options;
    const { context, transactions, compacted } = this.#play;
    const history = historyOf(context, place);
    const beganMs = context.world.nowMs;
    const batches: SeenBatch[] = [];
    const records: SeenRecord[] = [];
    let isWhole = false;
    let to = from;
    for (let offset = from, page = 0; page < pagesMax && !isWhole && !context.over; page++) {
      const answer = await this.#page(place, offset, isCommitted, options.maxBytes());
      if (answer === null || answer.code !== 0) break;
      this.#checkPlaces(place, offset, isCommitted, answer);
      const end = isCommitted ? answer.stable : answer.watermark;
      batches.push(...answer.batches);
      const kept = isCommitted
        ? committedByList(answer.batches, answer.aborted)
        : answer.batches.flatMap((batch) => batch.records);
      records.push(...kept.filter((one) => one.offset >= from));
      offset = Math.max(offset, (answer.batches.at(-1)?.lastOffset ?? -1) + 1);
      isWhole = offset >= end;
      to = end;
    }
    for (const one of records) {
      if (isCommitted) transactions.seenCommitted(history, one);
      else transactions.seen(history, one);
    }
    if (isWhole && isCommitted && place.topic.isCompacted) {
      compacted.check({ history, from, to, beganMs, records });
    }
    return { batches, records, isWhole };
  }

  async #page(
    place: Place,
    offset: number,
    isCommitted: boolean,
    maxBytes: number,
  ): Promise<LogAnswer | null> {
    const { context, transactions } = this.#play;
    const history = historyOf(context, place);
    const seen = transactions.stableSeen(history);
    const askedMs = context.world.nowMs;
    try {
      const answer = await fetchLog(context, this.#client, {
        history,
        offset,
        isCommitted,
        maxBytes,
        waitMs: 0,
        timeoutMs: TIMEOUT_MS,
      });
      const { code, error, by, stable, watermark } = answer;
      if (code === 0) transactions.stable(history, { stable, watermark, by, askedMs, seen });
      // One that was replaced does not know the newest records, or the topic.
      else if (!isTransient(error) && !context.cluster.isReplaced(by)) {
        unexpected(context, `${this.#name} reading ${place.topic.name} from ${offset}`, code);
      }
      return answer;
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error;
      return null;
    }
  }

  /** Without a hole where nothing is compacted; never nothing where there is something, nor what is not to be read yet. */
  #checkPlaces(
    { topic, partition }: Place,
    asked: number,
    isCommitted: boolean,
    { batches, stable, watermark }: LogAnswer,
  ): void {
    const { world } = this.#play.context;
    const where = `I12: ${topic.name}-${partition} read from ${asked}`;
    const end = isCommitted ? stable : watermark;
    let next = asked;
    for (const { baseOffset, lastOffset, records } of batches) {
      if (lastOffset < next || baseOffset > next && !topic.isCompacted) {
        return world.violated(`${where}: ${baseOffset} to ${lastOffset} where ${next} should be`);
      }
      if (!topic.isCompacted && records.length !== lastOffset - baseOffset + 1) {
        return world.violated(`${where}: a batch at ${baseOffset} lacks records`);
      }
      next = lastOffset + 1;
    }
    if (batches.length > 0 && next > end) {
      world.violated(`${where} shows offset ${next - 1}, its end is ${end}`);
    }
    if (next === asked && asked < end) world.violated(`${where} shows nothing, its end is ${end}`);
  }
}

/** Both ways to tell what is committed agree; null when they do. Of what was read first some may be compacted by now. */
export function disagreement(committed: Read, all: Read): string | null {
  const there = new Set(all.records.map(({ offset }) => offset));
  const byList = committed.records.map(({ offset }) => offset).filter((at) => there.has(at));
  const byMarkers = committedByMarkers(all.batches).map(({ offset }) => offset);
  if (byList.join() === byMarkers.join()) return null;
  return `lists of aborted transactions leave ${byList.join(" ")}, markers ${byMarkers.join(" ")}`;
}
