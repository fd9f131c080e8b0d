/**
 * Wraps an ObjectStore with faults that a test chooses per call: fail before or after the effect,
 * wait, or hang until aborted. Counts calls, so that "fail the n-th call" loops know when to end.
 */
import type { Clock } from "../../src/env/clock.ts";
import { sleep } from "../../src/env/clock.ts";
import { FaultError } from "../../src/lib/errors.ts";
import type { FaultCode } from "../../src/lib/errors.ts";
import type { ObjectStore } from "../../src/object/object_store.ts";

export type StoreOp = "put" | "putParts" | "get" | "head" | "list" | "delete";

export interface StoreCall {
  readonly op: StoreOp;
  /** The key, the prefix of a listing, or the first key of a delete. */
  readonly key: string;
  /** Counts all calls of the store, from 1. */
  readonly number: number;
  readonly isConditional: boolean;
}

export type StoreFault =
  /** Nothing happens, and the caller is told so. */
  | { readonly kind: "fail"; readonly code?: FaultCode }
  /** It happens, but the caller gets a fault: a lost answer. */
  | { readonly kind: "lose-answer"; readonly code?: FaultCode }
  /** It happens after this time. */
  | { readonly kind: "delay"; readonly delayMs: number }
  /** No answer until the caller aborts; the effect comes or not. */
  | { readonly kind: "hang"; readonly happens: boolean }
  /** The caller gets a fault now, the effect comes this much later. */
  | { readonly kind: "late"; readonly delayMs: number }
  /** It happens and is answered, and happens once more this much later: a duplicate. */
  | { readonly kind: "repeat"; readonly delayMs: number }
  /** A black hole: a fault after this time of silence; the effect comes or not. */
  | { readonly kind: "silence"; readonly delayMs: number; readonly happens: boolean };

export type FaultPlan = (call: StoreCall) => StoreFault | undefined;

export interface FaultyStore extends ObjectStore {
  /** All calls so far, in order. */
  readonly calls: readonly StoreCall[];
  count(op: StoreOp): number;
  /** Replaces the plan; no argument ends all faults. */
  setPlan(plan?: FaultPlan): void;
}

/** A plan that lets one call, counted over all operations or over those given, meet the fault. */
export function faultOnCall(nth: number, fault: StoreFault, ops?: readonly StoreOp[]): FaultPlan {
  let seen = 0;
  return ({ op }) => (ops === undefined || ops.includes(op)) && ++seen === nth ? fault : undefined;
}

function untilAborted(signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted === true) return resolve();
    signal?.addEventListener("abort", () => resolve(), { once: true });
  });
}

export function faultyStore(store: ObjectStore, clock: Clock, first?: FaultPlan): FaultyStore {
  const calls: StoreCall[] = [];
  let plan = first;

  function fault(call: StoreCall, code: FaultCode = "store-unavailable"): FaultError {
    return new FaultError(code, `Injected into ${call.op} ${call.key} (call ${call.number})`, {
      retriable: true,
    });
  }

  function note(op: StoreOp, key: string, isConditional = false): StoreCall {
    const call = { op, key, number: calls.length + 1, isConditional };
    calls.push(call);
    return call;
  }

  async function meet<T>(
    call: StoreCall,
    work: () => Promise<T>,
    signal?: AbortSignal,
  ): Promise<T> {
    const met = plan?.(call);
    if (met?.kind === "fail") throw fault(call, met.code);
    if (met?.kind === "late") {
      clock.after(met.delayMs, () => void work().catch(() => undefined));
      throw fault(call);
    }
    if (met?.kind === "hang") {
      if (met.happens) await work();
      await untilAborted(signal);
      throw fault(call, "aborted");
    }
    if (met?.kind === "silence") {
      if (met.happens) await work();
      await sleep(clock, met.delayMs, signal);
      throw fault(call, signal?.aborted === true ? "aborted" : "store-unavailable");
    }
    if (met?.kind === "repeat") clock.after(met.delayMs, () => void work().catch(() => undefined));
    if (met?.kind === "delay") await sleep(clock, met.delayMs, signal);
    const value = await work();
    if (met?.kind === "lose-answer") throw fault(call, met.code);
    return value;
  }

  return {
    calls,
    count: (op) => calls.filter((call) => call.op === op).length,
    setPlan(next) {
      plan = next;
    },
    put(key, body, options) {
      // A late effect must have the bytes of the call, whatever the caller does with its buffer then.
      const bytes = body.slice();
      const { signal: _signal, ...rest } = options ?? {};
      return meet(
        note("put", key, options?.ifAbsent === true),
        () => store.put(key, bytes, rest),
        options?.signal,
      );
    },
    putParts: (key, parts) => meet(note("putParts", key), () => store.putParts(key, parts)),
    get: (key, options) => meet(note("get", key), () => store.get(key, options), options?.signal),
    head: (key) => meet(note("head", key), () => store.head(key)),
    async *list(prefix, options) {
      await meet(note("list", prefix), async () => undefined);
      yield* store.list(prefix, options);
    },
    delete: (keys) => meet(note("delete", keys[0] ?? ""), () => store.delete(keys)),
    close: () => store.close(),
  };
}
