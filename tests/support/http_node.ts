/** A node on a memory store that is asked over HTTP; its clock goes on while an answer is waited for. */
import { createMemoryStore } from "../../src/object/memory.ts";
import { type RunningNode, startNode } from "../../src/node/node.ts";
import { createFakeClock } from "./fake_clock.ts";
import { nodeOptions } from "./node_options.ts";
import { testEnv } from "./test_env.ts";

/** Fake time between two looks at an answer. */
const STEP_MS = 50;

export interface Told {
  readonly method?: string;
  /** Sent as JSON, or as it is when it is text. */
  readonly body?: unknown;
  readonly type?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface Heard {
  readonly status: number;
  readonly type: string;
  readonly headers: Headers;
  readonly text: string;
  /** Undefined where the answer is no JSON. */
  // oxlint-disable-next-line no-explicit-any -- shapes of other APIs, looked into field by field
  readonly json: any;
}

function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

export async function createHttpNode(kafka: Readonly<Record<string, string>> = {}) {
  const clock = createFakeClock();
  const store = createMemoryStore(clock);
  const env = testEnv({ clock });
  const settings = { ...nodeOptions(store).settings, kafka };
  const start = (nodeId: number) =>
    startNode({ ...nodeOptions(store, { env }), settings: { ...settings, nodeId } });
  let node: RunningNode = await start(1);

  async function settled<T>(work: Promise<T>): Promise<T> {
    let isOver = false;
    work.finally(() => (isOver = true)).catch(() => {});
    await clock.settle();
    while (!isOver) await clock.advance(STEP_MS);
    return await work;
  }

  function requestOf(path: string, told: Told, signal?: AbortSignal): Request {
    const { method, body, type = "application/json", headers = {} } = told;
    const text = body === undefined ? null : typeof body === "string" ? body : JSON.stringify(body);
    return new Request(`http://node${path}`, {
      method: method ?? (text === null ? "GET" : "POST"),
      headers: { ...(text === null ? {} : { "content-type": type }), ...headers },
      body: text,
      ...(signal === undefined ? {} : { signal }),
    });
  }

  async function ask(path: string, told: Told = {}, signal?: AbortSignal): Promise<Heard> {
    const answer = await settled(node.fetch(requestOf(path, told, signal)));
    const text = await answer.text();
    return {
      status: answer.status,
      type: answer.headers.get("content-type") ?? "",
      headers: answer.headers,
      text,
      json: jsonIn(text),
    };
  }

  /** Closed, or gone as after a crash; then the same or another node id opens the store. */
  async function restart(nodeId = 1): Promise<void> {
    await settled(node.close());
    node = await settled(start(nodeId));
  }

  /** As after kill -9: what the old one still does is fenced off. */
  async function crash(nodeId = 1): Promise<void> {
    const old = node;
    node = await settled(start(nodeId));
    await settled(old.close().catch(() => {}));
  }

  return {
    ask,
    clock,
    restart,
    crash,
    store,
    env,
    settled,
    fetch: (request: Request) => node.fetch(request),
    close: () => settled(node.close()),
  };
}
