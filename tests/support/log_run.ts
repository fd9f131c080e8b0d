/** A partition log under random operations: appends become durable one by one, and work ends or meets a crash. */
import assert from "node:assert/strict";
import type { Harness } from "./partition_harness.ts";

/** What the node does by itself; without `ends` it meets a crash after so many writes. */
export interface Maintenance {
  readonly op: "tick" | "close" | "crash";
  readonly writes: number;
  readonly ends: boolean;
}

function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

export abstract class LogRun {
  readonly h: Harness;

  constructor(h: Harness) {
    this.h = h;
  }

  /** The log ends here after a crash: what the model has above it is gone. */
  abstract cutAt(end: number): void;

  /** Lets so many appends become durable, one by one, with the log running in between. */
  async pump(howMany: number): Promise<void> {
    for (let i = 0; i < howMany; i++) {
      this.h.streams.confirm(1);
      await turn();
    }
  }

  async drain<T>(work: Promise<T>): Promise<T> {
    const state = { isDone: false };
    const done = work.finally(() => (state.isDone = true));
    done.catch(() => {});
    while (!state.isDone) await this.pump(1);
    return await done;
  }

  async crash(): Promise<void> {
    this.h.streams.crash();
    await this.drain(this.h.open());
    const end = this.h.log.logEndOffset;
    this.cutAt(end);
    assert.equal(this.h.log.highWatermark, end);
  }

  async maintain({ op, writes, ends }: Maintenance): Promise<void> {
    const { log } = this.h;
    if (op === "crash") return await this.crash();
    const work = op === "tick" ? log.tick(this.h.nowMs) : log.close();
    if (ends) {
      await this.drain(work);
      if (op === "close") await this.drain(this.h.open());
      return;
    }
    work.catch(() => {});
    await turn();
    await this.pump(writes);
    await this.crash();
    await work.catch(() => {});
  }

  async deleteRecords(share: number): Promise<void> {
    const { log } = this.h;
    const span = log.highWatermark - log.logStartOffset;
    await this.drain(log.deleteRecords(log.logStartOffset + Math.floor(span * share)));
  }
}
