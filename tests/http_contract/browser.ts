/**
 * A real Chromium against a broker: a page of another origin whose script judges (browser_page.html), and the
 * documentation page as the browser leaves it. Nothing but the browser's own command line is used.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { cuttingProxy } from "../support/cutting_proxy.ts";
import { tempDir, within } from "../support/broker_process.ts";

export interface Judged {
  readonly passed: readonly string[];
  readonly failed: readonly string[];
}

const PAGE_MS_MAX = 90_000;
const CUT_BYTES_MIN = 2_000;
const CUT_BYTES_STEP = 1_500;
const CUT_STEPS = 5;

export function findChromium(): string | null {
  for (const name of ["chromium", "chromium-browser", "google-chrome"]) {
    if (spawnSync(name, ["--version"]).status === 0) return name;
  }
  return null;
}

function flags(profile: string): string[] {
  return [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    `--user-data-dir=${profile}`,
  ];
}

export interface PageServer {
  /** The origin that the broker has to allow. */
  readonly origin: string;
  readonly done: Promise<Judged>;
  close(): void;
}

/** Serves the page, and takes what its script has found. */
export async function servePage(): Promise<PageServer> {
  const page = readFileSync(new URL("./browser_page.html", import.meta.url), "utf8");
  let finish: (judged: Judged) => void = () => {};
  const done = new Promise<Judged>((resolve) => void (finish = resolve));
  const server = createServer((request, response) => {
    if (request.url !== "/done") {
      response.writeHead(200, { "content-type": "text/html" }).end(page);
      return;
    }
    let text = "";
    request.setEncoding("utf8").on("data", (part: string) => void (text += part));
    request.on("end", () => {
      response.writeHead(204).end();
      finish(JSON.parse(text) as Judged);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return { origin: `http://127.0.0.1:${port}`, done, close: () => void server.close() };
}

/** Nothing is in it when the page did not report in time. */
async function judgedBy(chromium: string, page: PageServer, broker: string): Promise<Judged> {
  let connections = 0;
  const next = () => CUT_BYTES_MIN + CUT_BYTES_STEP * (connections++ % CUT_STEPS);
  const proxy = await cuttingProxy(broker, next);
  const profile = tempDir();
  const url = `${page.origin}/?${new URLSearchParams({ broker, cutting: proxy.url })}`;
  let browser: ChildProcess | null = null;
  try {
    browser = spawn(chromium, [...flags(profile.path), url], { stdio: "ignore" });
    const judged = await within(page.done, PAGE_MS_MAX);
    return judged ?? { passed: [], failed: ["the page did not end in time"] };
  } finally {
    browser?.kill("SIGKILL");
    await proxy.close();
    profile.remove();
  }
}

/** The page as it is once its script has run. */
function docsPage(chromium: string, broker: string, operations: readonly string[]): Judged {
  const profile = tempDir();
  try {
    const args = [...flags(profile.path), "--virtual-time-budget=5000", "--dump-dom"];
    const { stdout, stderr } = spawnSync(chromium, [...args, `${broker}/docs`], {
      encoding: "utf8",
      timeout: PAGE_MS_MAX,
      maxBuffer: 64 * 1024 * 1024,
    });
    const missing = operations.filter((id) => !stdout.includes(`id="${id}"`));
    const refused = /Refused to|Content Security Policy/.test(stderr);
    const name = "the documentation page shows every operation, within its policy";
    return missing.length === 0 && !refused
      ? { passed: [name], failed: [] }
      : { passed: [], failed: [`${name}: ${missing.length} missing, ${missing[0] ?? ""}`] };
  } finally {
    profile.remove();
  }
}

export async function inBrowser(
  chromium: string,
  page: PageServer,
  broker: string,
  operations: readonly string[],
): Promise<Judged> {
  const docs = docsPage(chromium, broker, operations);
  const judged = await judgedBy(chromium, page, broker);
  return {
    passed: [...docs.passed, ...judged.passed],
    failed: [...docs.failed, ...judged.failed],
  };
}
