/**
 * Puts the records of several calls into one request. What waits while requests are under way makes the next one
 * larger; a call whose records make trouble is sent again by itself, so that it harms no other.
 */
import { SkerryError } from "./errors.ts";
import type { Http } from "./http.ts";
import { type Outcome, send } from "./produce.ts";

export interface ProducerOptions {
  /** How long a record may wait for others. Default 0: those of the same turn of the event loop go together. */
  readonly lingerMs?: number;
  /** Of one request, about. Default 1,000,000. */
  readonly batchBytesMax?: number;
  /** Requests at a time. Default 1, which keeps the order of the calls; more do not. */
  readonly inFlightMax?: number;
  /** What may wait in memory, about; then `produce` fails with `buffer-full`. Default 32 MiB. */
  readonly bufferBytesMax?: number;
  /** From the first attempt to the last. Default 2 min; the broker knows repeats for 10. */
  readonly deliveryTimeoutMs?: number;
}

interface Call {
  readonly outcomes: Outcome[];
  left: number;
  readonly done: (outcomes: readonly Outcome[]) => void;
  readonly fail: (error: unknown) => void;
}

/** A record that waits. */
interface Entry {
  readonly call: Call;
  readonly index: number;
  readonly line: string;
}

const RECORDS_MAX = 10_000;
/** The broker takes 32 MiB, and characters may take three bytes. */
const BATCH_CHARS_MAX = 8_000_000;
/** Refusals that the log gives to all that stands behind such a record in its partition. */
const RECORD_FAULTS = [
  "MESSAGE_TOO_LARGE",
  "RECORD_LIST_TOO_LARGE",
  "INVALID_RECORD",
  "INVALID_TIMESTAMP",
];

function isRecordFault(outcome: Outcome): boolean {
  if (!(outcome instanceof SkerryError)) return false;
  const { status, kafka, code } = outcome;
  return RECORD_FAULTS.includes(code) || (kafka === null && (status === 400 || status === 413));
}

export class Batcher {
  readonly #http: Http;
  readonly #path: string;
  readonly #lingerMs: number;
  readonly #batchMax: number;
  readonly #inFlightMax: number;
  readonly #bufferMax: number;
  readonly #deliveryTimeoutMs: number;
  #waiting: Entry[] = [];
  #waitingChars = 0;
  /** Of all that has no outcome yet. */
  #heldChars = 0;
  #inFlight = 0;
  /** What waits has waited long enough. */
  #isDue = false;
  /** It will be due. */
  #isArmed = false;
  readonly #calls = new Set<Promise<unknown>>();

  constructor(http: Http, path: string, options: ProducerOptions) {
    this.#http = http;
    this.#path = path;
    this.#lingerMs = options.lingerMs ?? 0;
    this.#batchMax = Math.min(options.batchBytesMax ?? 1_000_000, BATCH_CHARS_MAX);
    this.#inFlightMax = options.inFlightMax ?? 1;
    this.#bufferMax = options.bufferBytesMax ?? 33_554_432;
    this.#deliveryTimeoutMs = options.deliveryTimeoutMs ?? 120_000;
  }

  /** An outcome for each line. Throws SkerryError when too much waits already. */
  async add(lines: readonly string[]): Promise<readonly Outcome[]> {
    if (this.#heldChars > this.#bufferMax) {
      const message = "Cannot take more records until others are stored";
      throw new SkerryError(message, { code: "buffer-full", retriable: true });
    }
    const added = new Promise<readonly Outcome[]>((done, fail) => {
      const call = { outcomes: [], left: lines.length, done, fail };
      for (const [index, line] of lines.entries()) {
        this.#waiting.push({ call, index, line });
        this.#waitingChars += line.length;
        this.#heldChars += line.length;
      }
    });
    this.#calls.add(added);
    this.#begin();
    try {
      return await added;
    } finally {
      this.#calls.delete(added);
    }
  }

  /** Sends what waits, and resolves when all that was given before has its outcome. */
  async flush(): Promise<void> {
    this.#isDue = true;
    this.#pump();
    await Promise.allSettled(this.#calls);
  }

  #begin(): void {
    if (!this.#isArmed) {
      this.#isArmed = true;
      const due = () => {
        this.#isArmed = false;
        this.#isDue = true;
        this.#pump();
      };
      if (this.#lingerMs > 0) this.#http.host.after(this.#lingerMs, due);
      else void Promise.resolve().then(due);
    }
    this.#pump();
  }

  #pump(): void {
    while (
      this.#inFlight < this.#inFlightMax && this.#waiting.length > 0 &&
      (this.#isDue || this.#waitingChars >= this.#batchMax)
    ) {
      this.#inFlight += 1;
      void this.#sendAll(this.#take()).finally(() => {
        this.#inFlight -= 1;
        this.#pump();
      });
    }
    if (this.#waiting.length === 0) this.#isDue = false;
  }

  #take(): readonly Entry[] {
    let count = 0;
    let chars = 0;
    for (const { line } of this.#waiting) {
      if (count === RECORDS_MAX || (count > 0 && chars + line.length > this.#batchMax)) break;
      count += 1;
      chars += line.length;
    }
    this.#waitingChars -= chars;
    return this.#waiting.splice(0, count);
  }

  /** Never rejects. */
  async #sendAll(entries: readonly Entry[]): Promise<void> {
    const troubled = await this.#send(entries, new Set(entries.map(({ call }) => call)).size > 1);
    for (const call of new Set(troubled.map((entry) => entry.call))) {
      await this.#send(troubled.filter((entry) => entry.call === call), false);
    }
  }

  /** Settles all but those that are to be sent by themselves. */
  async #send(entries: readonly Entry[], isShared: boolean): Promise<readonly Entry[]> {
    const troubled: Entry[] = [];
    try {
      const lines = entries.map(({ line }) => line);
      const options = { deliveryTimeoutMs: this.#deliveryTimeoutMs };
      const outcomes = await send(this.#http, this.#path, lines, options);
      for (const [i, entry] of entries.entries()) {
        const outcome = outcomes[i]!;
        if (isShared && isRecordFault(outcome)) troubled.push(entry);
        else this.#settle(entry, outcome);
      }
    } catch (error) {
      for (const { call, line } of entries) {
        this.#heldChars -= line.length;
        call.fail(error);
      }
    }
    return troubled;
  }

  #settle({ call, index, line }: Entry, outcome: Outcome): void {
    this.#heldChars -= line.length;
    call.outcomes[index] = outcome;
    call.left -= 1;
    if (call.left === 0) call.done(call.outcomes);
  }
}
