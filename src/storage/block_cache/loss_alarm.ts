/** What metadata promises and no object holds: counted each time, and said once for each place. */
import type { Env } from "../../env/env.ts";
import type { Offset, StreamId } from "../../lib/brand.ts";
import { FaultError } from "../../lib/errors.ts";
import { LOST_PLACES_MAX } from "../../lib/limits.ts";
import { Lru } from "../../lib/lru.ts";

export class LossAlarm {
  readonly #env: Env;
  readonly #said = new Lru<string, true>(LOST_PLACES_MAX, () => 1);

  constructor(env: Env) {
    this.#env = env;
  }

  /** `key` is that of the object that is gone; null when no object is said to hold the offset. */
  raise(stream: StreamId, offset: Offset, key: string | null, cause?: unknown): FaultError {
    const code = key === null ? "data-loss" : "object-missing";
    this.#env.metrics.count("skerry_data_loss_total", { reason: code });
    const place = `${stream}/${offset}`;
    if (this.#said.get(place) === undefined) {
      this.#said.set(place, true);
      this.#env.log.log("error", "data-lost", { stream, offset, key });
    }
    const message = key === null
      ? `No object holds offset ${offset} of stream ${stream}`
      : `Object ${key} with offset ${offset} of stream ${stream} is not in the store`;
    return new FaultError(code, message, { retriable: false, cause });
  }
}
