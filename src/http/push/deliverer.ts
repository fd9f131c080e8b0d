/**
 * One subscription at work: sends what its partitions hold, as much at once as the handler takes, and commits how
 * far that is. A handler that is away is left alone for a while and then asked with one delivery at a time.
 */
import type { Cancel } from "../../env/clock.ts";
import { isFault, messageOf } from "../../lib/errors.ts";
import { PUSH_REPEAT_MS_MAX } from "../../lib/limits.ts";
import { takePermits } from "../permit_wait.ts";
import { ProblemError } from "../problem.ts";
import { rawBytes } from "../record_json.ts";
import { Commits } from "./commits.ts";
import { deadLetterOf } from "./dead_letter.ts";
import { bodyBytes, deliveryOf } from "./delivery.ts";
import type { PushServices } from "./push_port.ts";
import { isAlone, judge, type Judged, pauseMs } from "./retry.ts";
import type { Sender } from "./sender.ts";
import { type Source, Sources } from "./sources.ts";
import type { Subscription } from "./subscription.ts";
import type { Held } from "./window.ts";

export interface DelivererStatus {
  readonly inFlight: number;
  readonly heldBytes: number;
  /** Since this node delivers. */
  readonly delivered: number;
  readonly failed: number;
  readonly deadLetters: number;
  readonly problem: string | null;
}

type Failed = Extract<Judged, { isTaken: false }>;
type Part = "reads" | "commits" | "handler" | "deadLetters";
const PARTS: readonly Part[] = ["commits", "deadLetters", "reads", "handler"];

export class Deliverer {
  readonly #services: PushServices;
  readonly #sender: Sender;
  readonly #stop = new AbortController();
  readonly #sources: Sources;
  readonly #commits: Commits;
  readonly #problems = new Map<Part, string>();
  readonly subscription: Subscription;
  #inFlight = 0;
  /** Deliveries at once that the handler seems to bear. */
  #room: number;
  #failures = 0;
  #notBeforeMs = 0;
  #turn = 0;
  #cancel: Cancel = () => {};
  #counts = { delivered: 0, failed: 0, deadLetters: 0 };

  constructor(subscription: Subscription, services: PushServices, sender: Sender) {
    this.subscription = subscription;
    this.#services = services;
    this.#sender = sender;
    this.#room = subscription.maxInFlight;
    const { signal } = this.#stop;
    const onNews = () => this.#pump();
    this.#sources = new Sources({
      ...services,
      subscription,
      signal,
      onNews,
      onProblem: (problem) => this.#note("reads", problem),
    });
    this.#commits = new Commits({
      ...services,
      group: subscription.group,
      signal,
      sources: () => this.#sources.all(),
      onLost: () => this.#sources.forget(),
      onProblem: (problem) => {
        this.#note("commits", problem);
        if (problem === null) this.#pump();
      },
    });
  }

  start(): void {
    const { log } = this.#services.env;
    this.#sources.run().catch((error: unknown) => {
      log.log("error", "push-failed", {
        subscription: this.subscription.id,
        error: messageOf(error),
      });
    });
  }

  close(): void {
    this.#stop.abort();
    this.#cancel();
    this.#commits.close();
  }

  status(): DelivererStatus {
    const part = PARTS.find((one) => this.#problems.has(one));
    return {
      ...this.#counts,
      inFlight: this.#inFlight,
      heldBytes: this.#sources.heldBytes,
      problem: part === undefined ? null : this.#problems.get(part)!,
    };
  }

  #note(part: Part, problem: string | null): void {
    if (problem === null) this.#problems.delete(part);
    else this.#problems.set(part, problem);
  }

  /** Starts what may be sent now, in turns between the partitions, and comes back when the next is due. */
  #pump(): void {
    const { clock } = this.#services.env;
    if (this.#stop.signal.aborted) return;
    this.#commits.want();
    this.#cancel();
    const nowMs = clock.monotonicMs();
    const isOff = this.#problems.has("commits");
    const sources = this.#sources.all();
    if (nowMs >= this.#notBeforeMs && !isOff) {
      while (this.#inFlight < this.#room && this.#startNext(sources, nowMs));
    }
    const dues = sources.flatMap(({ window }) => window.nextDueMs(nowMs) ?? []);
    if (nowMs < this.#notBeforeMs) dues.push(this.#notBeforeMs);
    if (dues.length > 0) {
      const dueMs = Math.max(this.#notBeforeMs, Math.min(...dues));
      this.#cancel = clock.after(dueMs - nowMs, () => this.#pump());
    }
    this.#sources.wake();
  }

  #startNext(sources: readonly Source[], nowMs: number): boolean {
    const { batch, format } = this.subscription;
    const limits = format === "raw" ? { ...batch, records: 1 } : batch;
    for (let i = 0; i < sources.length; i++) {
      const at = (this.#turn + i) % sources.length;
      const taken = sources[at]!.window.take(nowMs, limits);
      if (taken.length === 0) continue;
      this.#turn = at + 1;
      this.#inFlight += 1;
      void this.#deliver(sources[at]!, taken);
      return true;
    }
    return false;
  }

  /** Never rejects. */
  async #deliver(source: Source, taken: readonly Held[]): Promise<void> {
    const { log } = this.#services.env;
    try {
      const { unsendable } = taken[0]!;
      if (unsendable === null) await this.#send(source, taken);
      else await this.#bury(source, taken, unsendable);
    } catch (error) {
      if (!isFault(error, "aborted")) {
        log.log("error", "push-delivery-failed", { error: messageOf(error) });
      }
      this.#putBack(source, taken, PUSH_REPEAT_MS_MAX);
    }
    this.#inFlight -= 1;
    this.#pump();
  }

  #putBack({ window }: Source, taken: readonly Held[], ms: number): void {
    const dueMs = this.#services.env.clock.monotonicMs() + ms;
    window.again(taken.filter(({ state }) => state === "sent"), dueMs, false);
  }

  async #send(source: Source, taken: readonly Held[]): Promise<void> {
    const { env } = this.#services;
    const answer = await this.#sender.send(
      this.subscription,
      bodyBytes(this.subscription, taken),
      () => deliveryOf(this.subscription, source.place, taken),
      this.#stop.signal,
    );
    if (this.#stop.signal.aborted && !answer.ok) return this.#putBack(source, taken, 0);
    const judged = judge(answer, env.clock.nowMs());
    if (!judged.isTaken) return await this.#failed(source, taken, judged);
    source.window.done(taken);
    this.#note("handler", null);
    this.#failures = 0;
    this.#room = Math.min(this.subscription.maxInFlight, this.#room + 1);
    this.#counts.delivered += taken.length;
    env.metrics.count("skerry_push_records_total", { outcome: "delivered" }, taken.length);
  }

  async #failed(source: Source, taken: readonly Held[], failed: Failed): Promise<void> {
    const { retry, deadLetter } = this.subscription;
    const { reason } = failed;
    this.#note("handler", `the handler ${reason}`);
    this.#counts.failed += 1;
    if (failed.isAboutHandler) this.#backOff(failed);
    for (const held of taken) held.attempts += 1;
    const isOver = (held: Held) => deadLetter !== null && held.attempts >= retry.attempts;
    const { clock, random } = this.#services.env;
    for (const held of taken.filter((one) => !isOver(one))) {
      const afterMs = pauseMs(held.attempts, retry, random.float(), failed.retryAfterMs);
      const alone = failed.isAboutRecords || isAlone(held.attempts, retry);
      source.window.again([held], clock.monotonicMs() + afterMs, alone);
    }
    const over = taken.filter(isOver);
    if (over.length > 0) await this.#bury(source, over, reason);
  }

  /** Once for all deliveries that were under way together. */
  #backOff({ retryAfterMs }: Failed): void {
    const { env: { clock, random } } = this.#services;
    const nowMs = clock.monotonicMs();
    if (nowMs < this.#notBeforeMs) return;
    this.#failures += 1;
    this.#room = 1;
    const { retry } = this.subscription;
    this.#notBeforeMs = nowMs + pauseMs(this.#failures, retry, random.float(), retryAfterMs);
  }

  /** To the dead-letter topic; until they are there, nothing behind them of the same key is sent. */
  async #bury(source: Source, held: readonly Held[], reason: string): Promise<void> {
    const { deadLetter, id, retry } = this.subscription;
    const problem = deadLetter === null
      ? `Cannot push offset ${held[0]!.offset} of ${source.place.topic}: ${reason}`
      : await this.#produce(deadLetter, source, held, reason);
    this.#note("deadLetters", problem);
    if (problem !== null) return this.#putBack(source, held, retry.maxMs);
    source.window.done(held);
    const { log, metrics } = this.#services.env;
    this.#counts.deadLetters += held.length;
    metrics.count("skerry_push_records_total", { outcome: "dead" }, held.length);
    log.log("warn", "push-dead-letter", { subscription: id, count: held.length, reason });
  }

  /** Null when they are stored. */
  async #produce(
    topic: string,
    { place }: Source,
    dead: readonly Held[],
    reason: string,
  ): Promise<string | null> {
    const { gateway, env, producePermits } = this.#services;
    const { id } = this.subscription;
    const records = dead.map((held) => deadLetterOf({ subscription: id, place, held, reason }));
    const bytes = dead.reduce((sum, { record }) => sum + (record ? rawBytes(record) : 0), 0);
    try {
      await takePermits(producePermits, bytes, env.clock, this.#stop);
      try {
        const written = await gateway.produce(topic, records);
        const refused = written.find((one) => !one.ok);
        if (refused === undefined || refused.ok) return null;
        return `Cannot write to ${topic}: ${refused.message ?? refused.error}`;
      } finally {
        producePermits.release(bytes);
      }
    } catch (error) {
      if (!(error instanceof ProblemError) && !isFault(error)) throw error;
      return `Cannot write to ${topic}: ${error.message}`;
    }
  }
}
