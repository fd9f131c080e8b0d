/**
 * A store for WAL tests around the memory store: puts can be held and let go in any order, answers can
 * get lost, any request can fail, the process can "die" at the n-th request.
 */
import type { ObjectStore, PutAnswer } from "../../src/object/object_store.ts";
import { FaultError } from "../../src/lib/errors.ts";

export interface HeldPut {
  readonly key: string;
  /** Executes the put at the store and delivers its answer. */
  release(): Promise<void>;
  /** Executes the put at the store; the client sees a fault. */
  loseAnswer(): Promise<void>;
  /** The client sees a fault; the put may still be executed by `land`. */
  giveUp(): void;
  /** Executes the put at the store, without a client: a late ghost. */
  land(): Promise<PutAnswer>;
}

export interface WalTestStore extends ObjectStore {
  readonly inner: ObjectStore;
  /** While true, conditional puts wait in `held`. */
  hold: boolean;
  readonly held: HeldPut[];
  /** Called before each request; a throw is the request's outcome. */
  before: (op: string, key: string) => void;
  /** Called after each request was executed; a throw loses the answer. */
  after: (op: string, key: string) => void;
}

export function lost(): FaultError {
  return new FaultError("store-unavailable", "No answer", { retriable: true });
}

export function createWalTestStore(inner: ObjectStore): WalTestStore {
  async function around<T>(op: string, key: string, work: () => Promise<T>): Promise<T> {
    store.before(op, key);
    const answer = await work();
    store.after(op, key);
    return answer;
  }

  function holdPut(key: string, execute: () => Promise<PutAnswer>, signal?: AbortSignal) {
    return new Promise<PutAnswer>((resolve, reject) => {
      signal?.addEventListener("abort", () => reject(lost()), { once: true });
      store.held.push({
        key,
        release: async () => void resolve(await execute()),
        loseAnswer: async () => {
          await execute();
          reject(lost());
        },
        giveUp: () => reject(lost()),
        land: execute,
      });
    });
  }

  const store: WalTestStore = {
    inner,
    hold: false,
    held: [],
    before: () => {},
    after: () => {},
    put(key, body, options = {}) {
      const bytes = body.slice();
      const { signal, ...rest } = options;
      const execute = () => inner.put(key, bytes, rest);
      if (store.hold && options.ifAbsent === true) return holdPut(key, execute, signal);
      return around("put", key, execute);
    },
    putParts: (key, parts) => inner.putParts(key, parts),
    get: (key, options) => around("get", key, () => inner.get(key, options)),
    head: (key) => around("head", key, () => inner.head(key)),
    async *list(prefix, options) {
      store.before("list", prefix);
      yield* inner.list(prefix, options);
    },
    delete: (keys) => around("delete", keys[0] ?? "", () => inner.delete(keys)),
    close: () => inner.close(),
  };
  return store;
}

/** Dies at the n-th request: that one and all later ones get no answer; the n-th may be executed or not. */
export function dieAt(store: WalTestStore, n: number, executed: boolean): void {
  let requests = 0;
  store.before = () => {
    requests += 1;
    if (requests > n || (requests === n && !executed)) throw lost();
  };
  store.after = () => {
    if (requests >= n) throw lost();
  };
}

export function heal(store: WalTestStore): void {
  store.before = () => {};
  store.after = () => {};
}
