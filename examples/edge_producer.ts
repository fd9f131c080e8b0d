/**
 * Producing as an edge script does it: one fetch, no client library, no connection to keep.
 * Runs in Workers, Deno, Bun, browsers and Node alike.
 *
 *   bun examples/edge_producer.ts http://127.0.0.1:8080
 */

interface Result {
  readonly partition: number;
  readonly offset: number;
  readonly timestamp: number;
}

/** Resolves once the events are durable. */
export async function sendEvents(
  broker: string,
  topic: string,
  events: readonly { readonly key: string; readonly value: unknown }[],
): Promise<readonly Result[]> {
  const response = await fetch(`${broker}/v1/topics/${encodeURIComponent(topic)}/records`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ records: events }),
  });
  if (!response.ok) {
    const problem = await response.json() as { title: string; detail: string };
    throw new Error(`${response.status} ${problem.title}: ${problem.detail}`);
  }
  const { results } = await response.json() as { results: Result[] };
  return results;
}

if (import.meta.main) {
  const broker = process.argv[2] ?? "http://127.0.0.1:8080";
  const results = await sendEvents(broker, "page-views", [
    { key: "/home", value: { agent: "example", ms: 12 } },
    { key: "/about", value: { agent: "example", ms: 7 } },
  ]);
  for (const { partition, offset } of results) console.log(`stored at ${partition}/${offset}`);
}
