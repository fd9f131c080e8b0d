import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { LogLevel } from "../env/logger.ts";
import { createSystemEnv, type LogFormat } from "./system_env.ts";

function logged(logFormat: LogFormat, logLevel: LogLevel = "info") {
  const lines: string[] = [];
  const env = createSystemEnv({ logFormat, logLevel, write: (line) => void lines.push(line) });
  return { env, lines };
}

describe("system env", () => {
  test("JSON lines begin with the event and cannot be forged by fields", () => {
    const { env, lines } = logged("json");
    env.log.log("info", "ready", { kafka: "127.0.0.1:9092", level: "fake", nothing: undefined });
    assert.match(
      lines[0]!,
      /^\{"event":"ready","kafka":"127.0.0.1:9092","level":"info","time":"20/,
    );
  });

  test("text lines quote what needs it and stay one line", () => {
    const { env, lines } = logged("text");
    env.log.log("warn", "slow-put", { durationMs: 12, key: 'a b\n"c"', none: null });
    assert.match(
      lines[0]!,
      /^20\d\d-\S+Z WARN {2}slow-put durationMs=12 key="a b\\n\\"c\\"" none=null$/,
    );
  });

  test("lines below the level are dropped", () => {
    const { env, lines } = logged("json", "warn");
    env.log.log("info", "quiet");
    env.log.log("debug", "quiet");
    env.log.log("error", "loud");
    assert.equal(lines.length, 1);
  });

  test("timers fire, cancelled ones and far ones do not", async () => {
    const { clock } = logged("text").env;
    const fired: string[] = [];
    const far = clock.after(2 ** 33, () => fired.push("far"));
    const cancelled = clock.after(0, () => fired.push("cancelled"));
    cancelled();
    await new Promise<void>((resolve) => clock.after(-5, resolve));
    await new Promise<void>((resolve) => clock.after(2, resolve));
    far();
    assert.deepEqual(fired, []);
  });

  test("the clocks run", () => {
    const { clock } = logged("text").env;
    assert.ok(clock.nowMs() > 1_700_000_000_000);
    const before = clock.monotonicMs();
    assert.ok(clock.monotonicMs() >= before);
  });

  test("random numbers stay in range and bytes may be many", () => {
    const random = logged("text").env.random.derive("anything");
    const draws = Array.from({ length: 1_000 }, () => random.float());
    assert.ok(draws.every((draw) => draw >= 0 && draw < 1));
    assert.equal(new Set(draws).size, draws.length);
    const many = random.bytes(200_000);
    assert.equal(many.length, 200_000);
    assert.ok(many.subarray(-64).some((byte) => byte !== 0));
  });
});
