/** The one bag of outside things that is handed down: clock, randomness, log, metrics, codecs. */
import type { Clock } from "./clock.ts";
import type { Codecs } from "./codecs.ts";
import type { Logger } from "./logger.ts";
import type { Metrics } from "./metrics.ts";
import type { Random } from "./random.ts";

export interface Env {
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly codecs: Codecs;
}
