/** A script that uses a group over HTTP. */
import assert from "node:assert/strict";
import { drive, type FaultWorld } from "../faults/world.ts";

const RETRY_MS = 100;
const TURNS_MAX = 100;

export interface LeasedRecord {
  readonly topic: string;
  readonly partition: number;
  readonly offset: number;
  readonly value: string;
  readonly deliveryCount?: number;
}

export interface Lost {
  readonly topic: string;
  readonly partition: number;
  readonly from: number;
  readonly to: number;
}

export interface Polled {
  readonly member: string;
  readonly ack: string | null;
  readonly lost?: readonly Lost[];
  readonly records: readonly LeasedRecord[];
}

export interface Acked {
  readonly offsets: readonly {
    readonly topic: string;
    readonly partition: number;
    readonly committed: number | null;
  }[];
  readonly lost: readonly Lost[];
}

export interface Answered<T> {
  readonly status: number;
  readonly body: T;
}

export class HttpGroup {
  readonly #world: FaultWorld;
  readonly #path: string;

  constructor(world: FaultWorld, group = "g") {
    this.#world = world;
    this.#path = `/v1/groups/${encodeURIComponent(group)}`;
  }

  /** For callers that move time themselves. */
  async send<T>(
    method: string,
    path: string,
    body?: unknown,
    signal?: AbortSignal,
  ): Promise<Answered<T>> {
    const answer = await this.#world.fetch(`${this.#path}${path}`, {
      method,
      ...(signal === undefined ? {} : { signal }),
      ...(body === undefined
        ? {}
        : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
    });
    const text = await answer.text();
    return { status: answer.status, body: (text === "" ? null : JSON.parse(text)) as T };
  }

  async #ok<T>(method: string, path: string, body?: unknown): Promise<T> {
    const { clock } = this.#world;
    for (let turn = 0;; turn++) {
      assert.ok(turn < TURNS_MAX, "it never comes back");
      const what = `${method} ${path}`;
      const { status, body: answer } = await drive(clock, this.send<T>(method, path, body), what);
      if (status < 300) return answer;
      assert.equal(status, 503, JSON.stringify(answer));
      await clock.advance(RETRY_MS);
    }
  }

  poll(body: Readonly<Record<string, unknown>> = {}): Promise<Polled> {
    return this.#ok("POST", "/poll", { topics: ["t"], ...body });
  }

  ack(ack: string | null, body: Readonly<Record<string, unknown>> = {}): Promise<Acked> {
    return this.#ok("POST", "/ack", { ack, ...body });
  }

  get<T>(path: string): Promise<T> {
    return this.#ok("GET", path);
  }

  put<T>(path: string, body: unknown): Promise<T> {
    return this.#ok("PUT", path, body);
  }
}

export function offsetsOf({ records }: Polled): number[] {
  return records.map(({ offset }) => offset);
}
