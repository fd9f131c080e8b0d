/**
 * A store for gigabytes of records that are all zeros: of a data object it keeps only what is not zero,
 * of a WAL object nothing but its name. Answers take as long as those of a store with prices.
 */
import { sleep } from "../../src/env/clock.ts";
import type { Clock } from "../../src/env/clock.ts";
import type { ObjectStore } from "../../src/object/object_store.ts";
import { equalParts } from "../../src/object/parts.ts";

const CHUNK_BYTES = 1_024;
const ZEROS = new Uint8Array(CHUNK_BYTES);
const PUT_MS = 100;
const GET_MS = 60;

class Sparse {
  readonly lastModifiedMs: number;
  size = 0;
  readonly #chunks = new Map<number, Uint8Array>();

  constructor(nowMs: number) {
    this.lastModifiedMs = nowMs;
  }

  add(bytes: Uint8Array): void {
    for (let at = 0; at < bytes.length;) {
      const place = this.size % CHUNK_BYTES;
      const taken = bytes.subarray(at, at + CHUNK_BYTES - place);
      const number = (this.size - place) / CHUNK_BYTES;
      this.#put(number, place, taken);
      this.size += taken.length;
      at += taken.length;
    }
  }

  #put(number: number, place: number, bytes: Uint8Array): void {
    const known = this.#chunks.get(number);
    if (known === undefined && isZero(bytes)) return;
    const chunk = known ?? new Uint8Array(CHUNK_BYTES);
    chunk.set(bytes, place);
    this.#chunks.set(number, chunk);
  }

  read(start: number, end: number): Uint8Array {
    const bytes = new Uint8Array(end - start);
    const first = Math.floor(start / CHUNK_BYTES);
    for (let number = first; number * CHUNK_BYTES < end; number++) {
      const chunk = this.#chunks.get(number);
      if (chunk === undefined) continue;
      const from = Math.max(start, number * CHUNK_BYTES);
      const to = Math.min(end, (number + 1) * CHUNK_BYTES);
      const base = number * CHUNK_BYTES;
      bytes.set(chunk.subarray(from - base, to - base), from - start);
    }
    return bytes;
  }
}

function isZero(bytes: Uint8Array): boolean {
  const view = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  return view.equals(bytes.length === CHUNK_BYTES ? ZEROS : ZEROS.subarray(0, bytes.length));
}

export function createSparseStore(clock: Clock): ObjectStore {
  const objects = new Map<string, Sparse>();
  const info = (key: string, { size, lastModifiedMs }: Sparse) => ({ key, size, lastModifiedMs });
  return {
    async put(key, body, { ifAbsent = false } = {}) {
      await sleep(clock, PUT_MS);
      const created = !ifAbsent || !objects.has(key);
      if (created) {
        const object = new Sparse(clock.nowMs());
        if (key.includes("/wal/")) object.size = body.length;
        else object.add(body);
        objects.set(key, object);
      }
      return { created, storeNowMs: clock.nowMs() };
    },
    async putParts(key, parts) {
      const object = new Sparse(clock.nowMs());
      for await (const part of equalParts(parts)) {
        await sleep(clock, PUT_MS);
        object.add(part);
      }
      objects.set(key, object);
    },
    async get(key, { range } = {}) {
      await sleep(clock, GET_MS);
      const object = objects.get(key);
      if (object === undefined) return null;
      const bytes = object.read(range?.start ?? 0, Math.min(range?.end ?? Infinity, object.size));
      return { ...info(key, object), bytes, storeNowMs: clock.nowMs() };
    },
    async head(key) {
      const object = objects.get(key);
      return object === undefined ? null : info(key, object);
    },
    async *list(prefix, { startAfter } = {}) {
      for (const key of [...objects.keys()].toSorted()) {
        if (!key.startsWith(prefix) || (startAfter !== undefined && key <= startAfter)) continue;
        const object = objects.get(key);
        if (object !== undefined) yield info(key, object);
      }
    },
    async delete(keys) {
      for (const key of keys) objects.delete(key);
      return { gone: [...keys], failed: [] };
    },
    async close() {},
  };
}
