/**
 * POST records:stream: a record per line in, a result per line out, in the same order, while both go on. A line
 * that is refused is a result like others. The body is not read further while the client leaves too many results
 * untaken; what is held of it is a line, and the records under way under their permits.
 */
import type { Cancel } from "../../env/clock.ts";
import { messageOf } from "../../lib/errors.ts";
import { toUtf8 } from "../../lib/bytes.ts";
import {
  HTTP_JSON_BYTES_RATIO,
  HTTP_STREAM_GROUP_RECORDS,
  HTTP_STREAM_UNTAKEN_RECORDS_MAX,
  WRITE_STALL_MS,
} from "../../lib/limits.ts";
import { lineElement, recordOfElement } from "../body.ts";
import { jsonText } from "../json_text.ts";
import { takePermits } from "../permit_wait.ts";
import type { RecordInput, Written } from "../port.ts";
import { type Problem, ProblemError } from "../problem.ts";
import { resultOf } from "./answer_produce.ts";
import type { ProduceServices, Target } from "./held_request.ts";
import { LineReader, type LinesEnd, type Splitter } from "./line_reader.ts";

/** How records come and how it is told what became of them. */
export interface StreamForm<R extends RecordInput> {
  /** Null for lines. */
  readonly splitter: Splitter | null;
  /** Sent at once: hosts send the head with the first byte, and some clients wait for it. */
  readonly begin: string;
  /** Throws ProblemError. */
  readonly parse: (text: string, where: string) => R;
  readonly shown: (written: Written, record: R) => Record<string, unknown>;
  /** One that is no record; counted from one. */
  readonly refused: (problem: Problem, number: number) => Record<string, unknown>;
  /** The last line, if there is one. */
  readonly end: (
    end: { readonly reason: LinesEnd } | Problem,
    counts: { readonly records: number; readonly failed: number },
  ) => Record<string, unknown> | null;
}

/** A line as a record, or what is wrong with it. */
type Parsed<R> = R | Refused;

interface Refused {
  readonly problem: Problem;
  readonly number: number;
}

/** Results of neighbouring lines. */
interface Group {
  readonly count: number;
  readonly results: Promise<readonly Record<string, unknown>[]>;
}

export interface RecordStreamOptions<R extends RecordInput> {
  readonly services: ProduceServices;
  readonly request: Request;
  readonly target: Target;
  readonly form: StreamForm<R>;
  /** Nothing is held any more. Called once. */
  readonly release: () => void;
}

const INTERNAL: Problem = {
  status: 500,
  title: "Internal error",
  detail: "Cannot answer: the broker logged why",
};

function problemIn({ status, title, detail, more }: Problem): Record<string, unknown> {
  return { error: { status, title, detail, ...more } };
}

/** Lines of JSON, and results as lines. */
export function lineForm(bare: boolean): StreamForm<RecordInput> {
  return {
    splitter: null,
    begin: "\n",
    parse: (text, where) => recordOfElement(lineElement(text, where), bare),
    shown: resultOf,
    refused: (problem, line) => problemIn({ ...problem, more: { ...problem.more, line } }),
    end: (end, counts) => ({
      end: { ...counts, ...("reason" in end ? end : problemIn(end)) },
    }),
  };
}

function isRefused<R extends RecordInput>(parsed: Parsed<R>): parsed is Refused {
  return "problem" in parsed;
}

export class RecordStream<R extends RecordInput> {
  readonly #options: RecordStreamOptions<R>;
  readonly #lines: LineReader;
  readonly #groups: Group[] = [];
  readonly #onGone = () => this.#finish();
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null;
  #untaken = 0;
  #line = 0;
  #records = 0;
  #failed = 0;
  /** Why nothing more is read; null while it is. */
  #end: { readonly reason: LinesEnd } | Problem | null = null;
  #isBegun = false;
  #isOver = false;
  #wakeReader: () => void = () => {};
  #wakeWriter: () => void = () => {};
  #cancelStall: Cancel = () => {};

  constructor(options: RecordStreamOptions<R>) {
    this.#options = options;
    const { request, services: { rooms }, form: { splitter } } = options;
    this.#lines = new LineReader(request, rooms, splitter ?? undefined);
  }

  open(): ReadableStream<Uint8Array> {
    const { signal } = this.#options.request;
    const source: UnderlyingDefaultSource<Uint8Array> = {
      start: (controller) => {
        this.#controller = controller;
        signal.addEventListener("abort", this.#onGone, { once: true });
        if (signal.aborted) this.#finish();
        else this.#pump().catch((error: unknown) => this.#stopReading(error));
        this.#expectPull();
      },
      pull: () => this.#send(),
      cancel: () => this.#finish(),
    };
    return new ReadableStream(source, { highWaterMark: 0 });
  }

  async #pump(): Promise<void> {
    while (!this.#isOver) {
      const lines = await this.#lines.next();
      if (typeof lines === "string") return this.#close({ reason: lines });
      for (let at = 0; at < lines.length && !this.#isOver; at += HTTP_STREAM_GROUP_RECORDS) {
        await this.#append(lines.slice(at, at + HTTP_STREAM_GROUP_RECORDS));
        await this.#roomForMore();
      }
    }
  }

  async #roomForMore(): Promise<void> {
    while (this.#untaken >= HTTP_STREAM_UNTAKEN_RECORDS_MAX && !this.#isOver) {
      await new Promise<void>((resolve) => (this.#wakeReader = resolve));
    }
  }

  /** Resolves once the records have their places, so that the next ones come behind them. */
  async #append(lines: readonly Uint8Array[]): Promise<void> {
    const { services: { producePermits, env }, request } = this.#options;
    const bytes = lines.reduce((sum, { length }) => sum + length, 0) * HTTP_JSON_BYTES_RATIO;
    await takePermits(producePermits, bytes, env.clock, request);
    const parsed = lines.flatMap((line) => this.#parse(line));
    let admit = (): void => {};
    const admitted = new Promise<void>((resolve) => (admit = resolve));
    const results = this.#produce(parsed, admit).finally(() => {
      producePermits.release(bytes);
      admit();
    });
    results.catch(() => {});
    if (parsed.length > 0) this.#add({ count: parsed.length, results });
    await admitted;
  }

  #parse(line: Uint8Array): Parsed<R>[] {
    this.#line += 1;
    try {
      const text = jsonText(line);
      if (text.trim() === "") return [];
      const { form, target } = this.#options;
      const record = form.parse(text, `line ${this.#line}`);
      return [target.partition === null ? record : { ...record, partition: target.partition }];
    } catch (error) {
      if (!(error instanceof ProblemError)) throw error;
      return [{ problem: error.problem, number: this.#line }];
    }
  }

  async #produce(
    parsed: readonly Parsed<R>[],
    onAdmitted: () => void,
  ): Promise<readonly Record<string, unknown>[]> {
    const { services: { gateway }, target, form } = this.#options;
    const records = parsed.filter((one): one is R => !isRefused(one));
    const written = records.length === 0
      ? []
      : await gateway.produce(target.topic, records, { onAdmitted });
    let next = 0;
    return parsed.map((one) => {
      const outcome = isRefused(one) ? null : written[next++]!;
      this.#records += 1;
      if (outcome?.ok !== true) this.#failed += 1;
      return isRefused(one) ? form.refused(one.problem, one.number) : form.shown(outcome!, one);
    });
  }

  #add(group: Group): void {
    this.#groups.push(group);
    this.#untaken += group.count;
    this.#wakeWriter();
  }

  #close(end: { readonly reason: LinesEnd } | Problem): void {
    this.#end ??= end;
    this.#lines.stop();
    this.#wakeWriter();
  }

  #stopReading(error: unknown): void {
    if (error instanceof ProblemError) return this.#close(error.problem);
    const { log } = this.#options.services.env;
    log.log("error", "http-handler-failed", { error: messageOf(error) });
    this.#close(INTERNAL);
  }

  /** One chunk for each time that the client asks: an empty line, then the results of a group, or the last line. */
  async #send(): Promise<void> {
    this.#cancelStall();
    // Hosts send the head with the first byte, and some clients wait for it before they send a record.
    if (!this.#isBegun) return this.#begin();
    while (this.#groups.length === 0 && this.#end === null && !this.#isOver) {
      await new Promise<void>((resolve) => (this.#wakeWriter = resolve));
    }
    if (this.#isOver) return;
    const group = this.#groups.shift();
    if (group === undefined) return this.#sendEnd();
    try {
      const results = await group.results;
      this.#enqueue(results.map((result) => `${JSON.stringify(result)}\n`).join(""));
      this.#untaken -= group.count;
      this.#wakeReader();
    } catch (error) {
      // Which of its records are stored is not known, so nothing may follow.
      this.#groups.length = 0;
      this.#stopReading(error);
      this.#sendEnd();
    }
  }

  #begin(): void {
    this.#isBegun = true;
    this.#enqueue(this.#options.form.begin);
  }

  #sendEnd(): void {
    const counts = { records: this.#records, failed: this.#failed };
    const end = this.#options.form.end(this.#end ?? INTERNAL, counts);
    if (end !== null) this.#enqueue(`${JSON.stringify(end)}\n`);
    if (this.#isOver) return;
    this.#controller?.close();
    this.#finish();
  }

  #enqueue(text: string): void {
    if (this.#isOver) return;
    this.#controller?.enqueue(toUtf8(text));
    this.#expectPull();
  }

  /** A client that takes no results does not hold them for ever. */
  #expectPull(): void {
    const { clock } = this.#options.services.env;
    this.#cancelStall();
    if (this.#isOver) return;
    this.#cancelStall = clock.after(WRITE_STALL_MS, () => {
      this.#controller?.error(new Error("The client does not read"));
      this.#finish();
    });
  }

  #finish(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#cancelStall();
    this.#options.request.signal.removeEventListener("abort", this.#onGone);
    this.#lines.stop();
    this.#wakeReader();
    this.#wakeWriter();
    this.#options.release();
  }
}
