/** Small texts in memory, as the metadata keeps them. */
import type { MetadataTexts } from "../../src/http/texts.ts";

export interface MemoryTexts extends MetadataTexts {
  readonly texts: Map<string, string>;
}

export function createMemoryTexts(texts = new Map<string, string>()): MemoryTexts {
  const listeners = new Set<() => void>();
  return {
    texts,
    get: (key) => texts.get(key) ?? null,
    keys: (prefix) => [...texts.keys()].filter((key) => key.startsWith(prefix)),
    async change(key, change) {
      await Promise.resolve();
      const text = change(texts.get(key) ?? null);
      if (text === null) texts.delete(key);
      else texts.set(key, text);
      for (const listener of Array.from(listeners)) listener();
    },
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}
