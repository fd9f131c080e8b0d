/** The environment of a real process: its clock, its randomness, its log, fresh metrics, all codecs. */
import type { Clock } from "../env/clock.ts";
import type { Env } from "../env/env.ts";
import type { LogFields, Logger, LogLevel } from "../env/logger.ts";
import { createMetrics } from "../env/metrics.ts";
import type { Random } from "../env/random.ts";
import { viewOf } from "../lib/bytes.ts";
import { createCodecs } from "./codecs.ts";

export type LogFormat = "text" | "json";

export interface SystemEnvOptions {
  readonly logFormat: LogFormat;
  /** Lines below this level are dropped. */
  readonly logLevel: LogLevel;
  /** Takes each line, without line end. Default: JSON to standard output, text to standard error. */
  readonly write?: (line: string) => void;
}

/** The hosts turn a longer delay into none at all. */
const TIMER_MS_MAX = 2 ** 31 - 1;
/** One call of getRandomValues fills at most this much. */
const RANDOM_BYTES_MAX = 65_536;
/** Drawn ahead: a system call for each number would cost microseconds. */
const RANDOM_POOL_BYTES = 1_024;

/** Timers keep the process alive: who starts one also stops it. */
function systemClock(): Clock {
  return {
    nowMs: () => Date.now(),
    monotonicMs: () => performance.now(),
    after(delayMs, work) {
      let timer: ReturnType<typeof setTimeout>;
      const arm = (leftMs: number): void => {
        const stepMs = Math.min(leftMs, TIMER_MS_MAX);
        timer = setTimeout(leftMs > stepMs ? () => arm(leftMs - stepMs) : work, stepMs);
      };
      arm(Math.max(0, delayMs));
      return () => clearTimeout(timer);
    },
  };
}

function systemRandom(): Random {
  const pool = new Uint8Array(RANDOM_POOL_BYTES);
  const view = viewOf(pool);
  let used = pool.length;
  const random: Random = {
    float() {
      if (used + 8 > pool.length) {
        crypto.getRandomValues(pool);
        used = 0;
      }
      used += 8;
      // 53 bits, as many as a number holds.
      return (view.getUint32(used - 8) * 2 ** 21 + (view.getUint32(used - 4) >>> 11)) / 2 ** 53;
    },
    bytes(count) {
      const out = new Uint8Array(count);
      for (let at = 0; at < count; at += RANDOM_BYTES_MAX) {
        crypto.getRandomValues(out.subarray(at, at + RANDOM_BYTES_MAX));
      }
      return out;
    },
    // Nobody can tell the draws of one from those of another.
    derive: () => random,
  };
  return random;
}

const LEVELS: readonly LogLevel[] = ["debug", "info", "warn", "error"];

function jsonLine(time: string, level: LogLevel, event: string, fields: LogFields): string {
  return JSON.stringify({ event, ...fields, level, time });
}

function textValue(value: LogFields[string]): string {
  const text = String(value);
  return /^[^\s"=]+$/.test(text) ? text : JSON.stringify(text);
}

function textLine(time: string, level: LogLevel, event: string, fields: LogFields): string {
  const parts = Object.entries(fields)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => ` ${name}=${textValue(value)}`);
  return `${time} ${level.toUpperCase().padEnd(5)} ${event}${parts.join("")}`;
}

function streamWriter(stream: NodeJS.WriteStream): (line: string) => void {
  // A log reader that goes away must not stop the broker.
  if (stream.listenerCount("error") === 0) stream.on("error", () => {});
  return (line) => void stream.write(`${line}\n`);
}

function systemLogger(options: SystemEnvOptions, clock: Clock): Logger {
  const lowest = LEVELS.indexOf(options.logLevel);
  const json = options.logFormat === "json";
  const write = options.write ?? streamWriter(json ? process.stdout : process.stderr);
  const format = json ? jsonLine : textLine;
  return {
    log(level, event, fields = {}) {
      if (LEVELS.indexOf(level) < lowest) return;
      write(format(new Date(clock.nowMs()).toISOString(), level, event, fields));
    },
  };
}

export function createSystemEnv(options: SystemEnvOptions): Env {
  const clock = systemClock();
  return {
    clock,
    random: systemRandom(),
    log: systemLogger(options, clock),
    metrics: createMetrics(),
    codecs: createCodecs(),
  };
}
