/** The edge examples, each on the runtime that it is for: an order is stored once, and worked on once. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import process from "node:process";
import { test } from "node:test";
import { type Broker, createBroker } from "../../mod.ts";
import { createClient } from "../../src/client/mod.ts";
import { handle } from "../../examples/edge/handler.ts";

interface Runtime {
  dispatchFetch(url: string, init: RequestInit): Promise<Response>;
  dispose?(): Promise<void>;
}
/** The few members that are used here. */
interface Packages {
  readonly Miniflare: new (options: Readonly<Record<string, unknown>>) => Runtime;
  readonly EdgeRuntime: new (options: { readonly initialCode: string }) => Runtime;
}

/** By a name that the compiler does not follow: their types want those of Workers. */
async function packageNamed(name: string): Promise<Packages> {
  return await import(name) as Packages;
}

const BUN = "node_modules/.bin/bun";
const DENO = "node_modules/.bin/deno";
/** These are not run by this process, so a second run of them would say nothing new. */
const isFirstRun = process.versions["bun"] !== undefined;
const miniflare = isFirstRun ? await packageNamed("miniflare") : null;
const edge = isFirstRun ? await packageNamed("edge-runtime") : null;
const hasNode = spawnSync("node", ["--version"]).status === 0;

async function withBroker(work: (broker: Broker) => Promise<void>): Promise<void> {
  const broker = await createBroker({ store: "memory:" });
  try {
    await work(broker);
  } finally {
    await broker.close();
  }
}

/** What all of them serve. */
async function checkOrders(call: (init: RequestInit) => Promise<Response>): Promise<void> {
  const order = {
    method: "POST",
    headers: { "x-customer": "4711", "x-delivery-id": "d-1" },
    body: "three apples",
  };
  const first = await call(order);
  assert.equal(first.status, 201, await first.clone().text());
  const stored = await first.json() as Record<string, unknown>;
  assert.equal(stored["offset"], 0);
  assert.deepEqual(await (await call(order)).json(), { ...stored, duplicate: true });
  const worked = await call({ method: "GET" });
  assert.deepEqual(await worked.json(), { done: ["mail for order 0: three apples"] });
  assert.deepEqual(await (await call({ method: "GET" })).json(), { done: [] });
}

test("the handler itself", async () => {
  await withBroker((broker) =>
    checkOrders((init) => handle(new Request("http://edge/orders", init), broker.http.url))
  );
});

function bundled(entry: string, ...options: string[]): string {
  const args = ["build", entry, "--format=esm", ...options];
  const { status, stdout, stderr } = spawnSync(BUN, args, { encoding: "utf8" });
  assert.equal(status, 0, stderr);
  return stdout;
}

test(
  "a Cloudflare Worker",
  { skip: !isFirstRun, timeout: 60_000 },
  async () => {
    await withBroker(async ({ http }) => {
      const worker = new miniflare!.Miniflare({
        modules: true,
        script: bundled("examples/edge/worker.ts", "--target=browser"),
        compatibilityDate: "2026-04-01",
        bindings: { BROKER: http.url },
      });
      try {
        await checkOrders((init) => worker.dispatchFetch("http://worker/orders", init));
      } finally {
        await worker.dispose!();
      }
    });
  },
);

test("an edge function of Vercel", { skip: !isFirstRun }, async () => {
  await withBroker(async ({ http }) => {
    const folder = mkdtempSync("tests/client/vercel-");
    try {
      const main = join(folder, "main.ts");
      writeFileSync(
        main,
        'import orders from "../../../examples/edge/vercel.ts";\n' +
          'addEventListener("fetch", (event) => event.respondWith(orders(event.request)));\n',
      );
      const broker = JSON.stringify(http.url);
      const define = `--define=process.env.BROKER=${broker}`;
      const initialCode = bundled(main, "--target=browser", define).replace(/^export .*$/gm, "");
      const runtime = new edge!.EdgeRuntime({ initialCode });
      await checkOrders((init) => runtime.dispatchFetch("http://edge/api/orders", init));
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

const LINE_MS_MAX = 20_000;

/** The first line that matches. */
function lineOf(child: ChildProcess, pattern: RegExp): Promise<RegExpExecArray> {
  return new Promise((resolve, reject) => {
    let text = "";
    const timer = setTimeout(() => reject(new Error(`no line in time: ${text}`)), LINE_MS_MAX);
    const take = (chunk: { toString(): string }) => {
      text += chunk.toString();
      const found = pattern.exec(text);
      if (found === null) return;
      clearTimeout(timer);
      resolve(found);
    };
    child.stdout!.on("data", take);
    child.stderr!.on("data", take);
    child.on("exit", (code) => reject(new Error(`ended with ${code}: ${text}`)));
  });
}

async function stop(child: ChildProcess): Promise<void> {
  const ended = new Promise((resolve) => child.on("exit", resolve));
  // Deno shows no exit code after child.kill().
  process.kill(child.pid!, "SIGTERM");
  await ended;
}

async function checkServer(command: string, args: readonly string[]): Promise<void> {
  await withBroker(async ({ http }) => {
    const child = spawn(command, args, { env: { ...process.env, BROKER: http.url } });
    try {
      const [, url] = await lineOf(child, /listening on (http:\S+)/);
      await checkOrders((init) => fetch(`${url}`, init));
      if (command !== BUN) return;
      const page = await fetch(new URL("/page", url));
      assert.match(await page.text(), /new EventSource/);
    } finally {
      await stop(child);
    }
  });
}

test("a Bun server", { skip: !isFirstRun }, () => checkServer(BUN, ["examples/edge/bun.ts"]));

test("a Deno server", { skip: !isFirstRun }, () =>
  checkServer(DENO, [
    "run",
    "--no-check",
    "--allow-net",
    "--allow-env",
    "examples/edge/deno.ts",
  ]));

test("a Node program goes on behind the last order after a restart", {
  skip: !isFirstRun || !hasNode,
}, async () => {
  const folder = mkdtempSync(join(tmpdir(), "skerry-edge-"));
  try {
    await withBroker(async ({ http }) => {
      const orders = createClient({ url: http.url }).topic("orders");
      await orders.produce({ value: "one", partition: 0 });
      const program = join(folder, "follow.mjs");
      bundled("examples/edge/node.ts", "--target=node", `--outfile=${program}`);
      const file = join(folder, "cursor");
      const run = () => spawn("node", [program, http.url, file]);
      const first = run();
      await lineOf(first, /^0\/0 one$/m);
      await stop(first);
      assert.notEqual(readFileSync(file, "utf8"), "");
      await orders.produce({ value: "two", partition: 0 });
      const second = run();
      const shown = await lineOf(second, /^0\/\d+ .*$/m);
      await stop(second);
      assert.equal(shown[0], "0/1 two");
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
});

interface Item {
  textContent: string;
}

test("the page shows orders as they come, and begins anew where the browser gives up", async () => {
  const page = readFileSync("examples/edge/page.html", "utf8");
  const script = /<script type="module">([\s\S]*)<\/script>/.exec(page)![1]!;
  const items: Item[] = [];
  const state = { textContent: "" };
  const list = {
    append: (item: Item) => void items.push(item),
    replaceChildren: () => void items.splice(0),
  };
  const waiting: (() => void)[] = [];
  class FakeEvents {
    static readonly CLOSED = 2;
    static readonly all: FakeEvents[] = [];
    readyState = 0;
    onopen = () => {};
    onmessage: (event: { readonly data: string }) => void = () => {};
    onerror = () => {};
    readonly url: string;
    constructor(url: string) {
      this.url = url;
      FakeEvents.all.push(this);
    }
    addEventListener(): void {}
  }
  const names = ["document", "location", "EventSource", "setTimeout"];
  // oxlint-disable-next-line no-new-func, typescript/no-implied-eval
  new Function(...names, script)(
    {
      querySelector: (id: string) => id === "#state" ? state : list,
      createElement: () => ({ textContent: "" }),
    },
    { search: "?broker=http%3A%2F%2Fbroker%3A1" },
    FakeEvents,
    (work: () => void) => void waiting.push(work),
  );
  const [events] = FakeEvents.all;
  assert.equal(events!.url, "http://broker:1/v1/topics/orders/stream?from=earliest");
  events!.onopen();
  assert.equal(state.textContent, "live");
  events!.onmessage({ data: '{"partition":0,"offset":7,"value":"<b>one</b>"}' });
  assert.deepEqual(items.map(({ textContent }) => textContent), ["0/7 <b>one</b>"]);
  events!.onerror();
  assert.deepEqual([items.length, waiting.length], [1, 0], "the browser comes back by itself");
  events!.readyState = FakeEvents.CLOSED;
  events!.onerror();
  assert.equal(items.length, 0);
  waiting[0]!();
  assert.equal(FakeEvents.all.length, 2);
  await withBroker(async ({ http }) => {
    await createClient({ url: http.url }).topic("orders").produce({ value: "one" });
    const answer = await fetch(events!.url.replace("http://broker:1", http.url));
    assert.equal(answer.status, 200);
    await answer.body!.cancel();
  });
});
