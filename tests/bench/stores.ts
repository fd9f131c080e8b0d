/** The stores that a broker is measured on. Those that are servers run in a process of their own. */
import { type ChildProcess, spawn } from "node:child_process";
import { tempDir } from "../support/broker_process.ts";

export const STORES = ["memory", "dir", "s3", "sink"] as const;
export type StoreName = (typeof STORES)[number];

export const STORE_TITLES: Readonly<Record<StoreName, string>> = {
  memory: "memory",
  dir: "directory",
  s3: "S3, 10 ms + 2 ms/MiB",
  sink: "S3 that forgets, no latency",
};

export interface BenchStore {
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  close(): void;
}

const SERVERS: Readonly<Record<"s3" | "sink", readonly string[]>> = {
  s3: ["tests/support/s3_server.ts", "--latency-ms", "10", "--latency-per-mib-ms", "2"],
  sink: ["tests/bench/sink.ts"],
};
const CREDENTIALS = { AWS_ACCESS_KEY_ID: "test", AWS_SECRET_ACCESS_KEY: "test" };

function readyLine(
  child: ChildProcess,
): Promise<{ readonly url: string; readonly bucket: string }> {
  return new Promise((resolve, reject) => {
    let text = "";
    child.stdout!.on("data", (chunk: { toString(): string }) => {
      text += chunk.toString();
      if (text.includes("\n")) resolve(JSON.parse(text.split("\n")[0]!) as never);
    });
    child.on("exit", (code) => reject(new Error(`the store ended with ${code}`)));
  });
}

async function startServer(name: "s3" | "sink"): Promise<BenchStore> {
  const child = spawn("node_modules/.bin/bun", [...SERVERS[name]], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const { url, bucket } = await readyLine(child);
  return {
    args: ["--store", `s3://${bucket}/bench`, "--s3-endpoint", url, "--s3-path-style"],
    env: CREDENTIALS,
    close: () => void child.kill("SIGKILL"),
  };
}

export async function openStore(name: StoreName): Promise<BenchStore> {
  if (name === "memory") return { args: ["--store", "memory:"], env: {}, close: () => {} };
  if (name !== "dir") return await startServer(name);
  const dir = tempDir();
  return { args: ["--store", `dir:${dir.path}`], env: {}, close: () => dir.remove() };
}
