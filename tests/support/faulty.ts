/** Wraps any object of async methods: calls may fail, lose their answer after the work is done, or hang. */
import { FaultError } from "../../src/lib/errors.ts";

export type Verdict = "ok" | "fail" | "lost" | "hang";
export type Judge = (method: string) => Verdict;

function fault(method: string): FaultError {
  return new FaultError("store-unavailable", `Injected: ${method}`, { retriable: true });
}

async function judged(method: string, judge: Judge, work: () => unknown): Promise<unknown> {
  const verdict = judge(method);
  if (verdict === "hang") return await new Promise(() => {});
  if (verdict === "fail") throw fault(method);
  const result = await work();
  if (verdict === "lost") throw fault(method);
  return result;
}

async function* judgedList(
  judge: Judge,
  list: () => AsyncIterable<unknown>,
): AsyncGenerator {
  await judged("list", judge, () => null);
  yield* list();
}

/** Only methods named in `methods` are judged; others pass. */
export function faulty<T extends object>(target: T, methods: readonly string[], judge: Judge): T {
  return new Proxy(target, {
    get(object, name) {
      const value: unknown = Reflect.get(object, name);
      if (typeof value !== "function") return value;
      const call = (...args: unknown[]): unknown => Reflect.apply(value, object, args);
      if (typeof name !== "string" || !methods.includes(name)) return call;
      if (name === "list") {
        return (...args: unknown[]) =>
          judgedList(judge, () => call(...args) as AsyncIterable<unknown>);
      }
      return (...args: unknown[]) => judged(name, judge, () => call(...args));
    },
  });
}

export const STORE_METHODS = ["put", "putParts", "get", "head", "list", "delete"];
export const METADATA_METHODS = [
  "createStream",
  "openStream",
  "closeStream",
  "trimStream",
  "deleteStream",
  "reserveIds",
  "commitUpload",
  "refresh",
  "beginRecovery",
  "finishRecovery",
];
