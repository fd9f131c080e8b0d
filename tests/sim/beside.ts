/** Seeds in a process of their own, beside those of the test that asks: a simulation uses one core. */
import { spawn } from "node:child_process";
import process from "node:process";

export interface SeedsBeside {
  readonly level: "broker" | "storage";
  readonly first: number;
  readonly count: number;
  readonly steps: number;
}

/** Starts them; resolves when all kept every promise, else rejects with what was printed. */
export function runBeside({ level, first, count, steps }: SeedsBeside): Promise<void> {
  const args = ["--level", level, "--seed", first, "--seeds", count, "--steps", steps].map(String);
  const child = spawn(process.execPath, ["tests/sim/run.ts", ...args, "--quiet"], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let text = "";
  child.stdout.on("data", (chunk: unknown) => void (text += String(chunk)));
  return new Promise((resolve, reject) => {
    child.on("error", reject);
    child.on("close", (code) => code === 0 ? resolve() : reject(new Error(text)));
  });
}
