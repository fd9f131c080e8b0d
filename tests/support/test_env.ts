/** An environment for tests: fake clock, seeded randomness, silent log, fresh metrics, real codecs. */
import { createCodecs } from "../../src/adapters/codecs.ts";
import type { Env } from "../../src/env/env.ts";
import { silentLogger } from "../../src/env/logger.ts";
import { createMetrics } from "../../src/env/metrics.ts";
import { seededRandom } from "../../src/env/random.ts";
import { createFakeClock } from "./fake_clock.ts";

export function testEnv(overrides: Partial<Env> = {}): Env {
  return {
    clock: createFakeClock(),
    random: seededRandom(1),
    log: silentLogger,
    metrics: createMetrics(),
    codecs: createCodecs(),
    ...overrides,
  };
}
