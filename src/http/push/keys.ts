/**
 * The keys of a cluster: one signs, the next one is public already. When the time of the first is over, the second
 * takes its place: whoever keeps the set of keys for less than that time always knows the one that signs.
 *
 *     key     push-keys
 *     value   {"sinceMs", "keys": [{"kid", "x", "d"}, ...]}: since when the first one signs; d is private
 */
import * as v from "valibot";
import type { Env } from "../../env/env.ts";
import { PUSH_KEY_MS } from "../../lib/limits.ts";
import { PUSH_KEYS_KEY } from "../../lib/secret_keys.ts";
import { ProblemError } from "../problem.ts";
import type { MetadataTexts } from "../texts.ts";
import { keyFromSeed, publicJwk, SEED_BYTES, type SigningKey } from "./signature.ts";

const IN_USE = 2;

const key = v.object({ kid: v.string(), x: v.string(), d: v.string() });
const stored = v.object({ sinceMs: v.number(), keys: v.tuple([key, key]) });
type Stored = v.InferOutput<typeof stored>;

function read(text: string | null): Stored | null {
  return text === null ? null : v.parse(stored, JSON.parse(text));
}

export class PushKeys {
  readonly #texts: MetadataTexts;
  readonly #env: Env;

  constructor(texts: MetadataTexts, env: Env) {
    this.#texts = texts;
    this.#env = env;
  }

  jwks(): { readonly keys: readonly Readonly<Record<string, string>>[] } {
    return { keys: (read(this.#texts.get(PUSH_KEYS_KEY))?.keys ?? []).map(publicJwk) };
  }

  /** The key that signs now, made or replaced when it is time. Throws ProblemError only where there is none yet. */
  async current(): Promise<SigningKey> {
    const known = read(this.#texts.get(PUSH_KEYS_KEY));
    if (known !== null && !this.#isOver(known)) return known.keys[0];
    const fresh = await Promise.all(
      Array.from({ length: IN_USE }, () => keyFromSeed(this.#env.random.bytes(SEED_BYTES))),
    );
    const [first, second] = fresh as [SigningKey, SigningKey];
    let now: Stored = { sinceMs: this.#env.clock.nowMs(), keys: [first, second] };
    try {
      await this.#texts.change(PUSH_KEYS_KEY, (text) => {
        const present = read(text);
        if (present !== null && !this.#isOver(present)) {
          now = present;
          return text;
        }
        const sinceMs = this.#env.clock.nowMs();
        now = { sinceMs, keys: present === null ? [first, second] : [present.keys[1], first] };
        return JSON.stringify(now);
      });
    } catch (error) {
      if (known === null || !(error instanceof ProblemError)) throw error;
      return known.keys[0];
    }
    return now.keys[0];
  }

  #isOver({ sinceMs }: Stored): boolean {
    return this.#env.clock.nowMs() - sinceMs >= PUSH_KEY_MS;
  }
}
