/** Small values that the broker keeps in the metadata: read, changed as a whole, under a version. */
import { KV_CHANGES_MAX } from "../lib/limits.ts";
import type { MetadataStore } from "../controller/metadata_store.ts";
import type { ErrorName } from "../protocol/error_code.ts";

export type Texts = Readonly<Record<string, string>>;

export interface KvRefused {
  readonly ok: false;
  readonly error: ErrorName;
  readonly message: string;
}

/** A JSON object of texts. What is none reads as empty: only this code writes it. */
export function readTexts(value: string | null): Texts {
  if (value === null) return {};
  try {
    const parsed: unknown = JSON.parse(value);
    if (typeof parsed !== "object" || parsed === null) return {};
    const texts = Object.entries(parsed)
      .filter((one): one is [string, string] => typeof one[1] === "string");
    return Object.fromEntries(texts);
  } catch {
    return {};
  }
}

/**
 * Puts what `change` makes of the present value, null standing for none. Begins anew when somebody else was
 * faster. Throws FaultError; null when it is done.
 */
export async function changeKv(
  metadata: MetadataStore,
  key: string,
  change: (value: string | null) => string | null,
): Promise<KvRefused | null> {
  for (let tries = 0; tries < KV_CHANGES_MAX; tries++) {
    const row = metadata.view().kv.get(key);
    const before = row?.value ?? null;
    const value = change(before);
    if (value === before) return null;
    const expectedVersion = row?.version ?? 0;
    const decided = value === null
      ? await metadata.submit({ type: "delete-kv", key, expectedVersion })
      : await metadata.submit({ type: "put-kv", key, value, expectedVersion });
    if (decided.ok) return null;
    if (decided.reason === "invalid") {
      return { ok: false, error: "INVALID_REQUEST", message: decided.detail };
    }
    await metadata.fresh();
  }
  return { ok: false, error: "NOT_CONTROLLER", message: "Others change the same all the time" };
}
