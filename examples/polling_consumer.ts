/**
 * Consuming one partition over HTTP with a long poll: no group, no state on the broker, the caller keeps
 * the offset.
 *
 *   bun examples/polling_consumer.ts http://127.0.0.1:8080 page-views
 */

interface Page {
  readonly records: readonly {
    readonly offset: number;
    readonly key: unknown;
    readonly value: unknown;
  }[];
  readonly next: number;
}

/** Yields records for ever; stops when the signal fires. */
export async function* follow(
  broker: string,
  topic: string,
  partition: number,
  signal: AbortSignal,
  from: number | "earliest" | "latest" = "earliest",
): AsyncGenerator<Page["records"][number]> {
  let offset: number | string = from;
  while (!signal.aborted) {
    const url = `${broker}/v1/topics/${encodeURIComponent(topic)}/partitions/${partition}/records` +
      `?offset=${offset}&wait=10000`;
    const response = await fetch(url, { signal });
    if (response.status === 503) {
      await new Promise((resolve) => setTimeout(resolve, 1000));
      continue;
    }
    if (!response.ok) throw new Error(`${response.status} ${await response.text()}`);
    const page = await response.json() as Page;
    yield* page.records;
    offset = page.next;
  }
}

if (import.meta.main) {
  const [broker = "http://127.0.0.1:8080", topic = "page-views"] = process.argv.slice(2);
  const stop = new AbortController();
  process.on("SIGINT", () => stop.abort());
  for await (const { offset, key, value } of follow(broker, topic, 0, stop.signal)) {
    console.log(offset, key, value);
  }
}
