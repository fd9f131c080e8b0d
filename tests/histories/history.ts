/**
 * What clients did and saw, as events with one monotonic time: an operation is invoked, and ends as "ok", as
 * "fail" (it did certainly not happen) or as "info" (nobody knows; also when there is no end at all).
 */

export type Isolation = "committed" | "uncommitted";
/** Offset and value. */
export type Row = readonly [number, string];

/** A batch for one partition; `producer` is one incarnation of a client, `txn` the name of its transaction. */
export interface Produce {
  readonly f: "produce";
  readonly producer: string;
  readonly partition: string;
  readonly values: readonly string[];
  readonly txn: string | null;
  /** For copies: what each value was made of, as `partition@offset`. */
  readonly sources?: readonly string[];
}

/** Becoming the producer of a transactional id, which fences the one before. */
export interface Init {
  readonly f: "init";
  readonly producer: string;
  readonly id: string;
}

export interface End {
  readonly f: "end";
  readonly producer: string;
  readonly txn: string;
  readonly commit: boolean;
}

export interface Read {
  readonly f: "read";
  readonly reader: string;
  readonly partition: string;
  readonly isolation: Isolation;
  /** Where it began; null: the client does not say. */
  readonly from: number | null;
}

export type Call = Produce | Init | End | Read;

export interface ReadResult {
  readonly rows: readonly Row[];
  /** Where the next read begins. */
  readonly next?: number;
  readonly highWatermark?: number;
  readonly lastStableOffset?: number;
}

export interface ProduceResult {
  /** Of the first value; -1: acknowledged without one. */
  readonly offset: number;
}

export type Event =
  | { readonly at: number; readonly op: number; readonly kind: "invoke"; readonly call: Call }
  | {
    readonly at: number;
    readonly op: number;
    readonly kind: "ok";
    readonly result: ReadResult | ProduceResult | null;
  }
  | {
    readonly at: number;
    readonly op: number;
    readonly kind: "fail" | "info";
    readonly why: string;
  }
  /** Before the first request of a transaction. */
  | {
    readonly at: number;
    readonly kind: "txn";
    readonly txn: string;
    readonly id: string;
    readonly producer: string;
    readonly timeoutMs: number;
  }
  /** All of a partition, read when everything was over. */
  | {
    readonly at: number;
    readonly kind: "final";
    readonly partition: string;
    readonly committed: readonly Row[];
    readonly uncommitted: readonly Row[];
    readonly highWatermark: number;
    readonly lastStableOffset: number;
  }
  /** `group` has copied the inputs into the outputs, each record once; where its offsets are in the end. */
  | {
    readonly at: number;
    readonly kind: "copied";
    readonly group: string;
    readonly outputs: readonly string[];
    readonly positions: Readonly<Record<string, number>>;
  };

type Noted<E> = E extends Event ? Omit<E, "at"> : never;

export class History {
  readonly events: Event[] = [];
  #lastOp = 0;

  note(event: Noted<Event>): void {
    this.events.push({ at: performance.now(), ...event });
  }

  invoke(call: Call): number {
    const op = ++this.#lastOp;
    this.note({ op, kind: "invoke", call });
    return op;
  }

  ok(op: number, result: ReadResult | ProduceResult | null): void {
    this.note({ op, kind: "ok", result });
  }

  /** `certain`: it did not happen and will not. */
  failed(op: number, why: string, certain: boolean): void {
    this.note({ op, kind: certain ? "fail" : "info", why });
  }

  ndjson(): string {
    return this.events.map((event) => `${JSON.stringify(event)}\n`).join("");
  }
}

export function parseHistory(text: string): Event[] {
  return text.split("\n").filter((line) => line !== "").map((line) => JSON.parse(line) as Event);
}
