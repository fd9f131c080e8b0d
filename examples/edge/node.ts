/**
 * Node: prints orders as they come, for ever, and goes on behind the last one after a restart. Bundle it, or run
 * it as it is with a Node that strips types.
 *
 *   node examples/edge/node.ts http://127.0.0.1:8080 cursor.txt
 */
import { readFile, writeFile } from "node:fs/promises";
import process from "node:process";
import { createClient } from "../../src/client/mod.ts";

const [url = "http://127.0.0.1:8080", file = "cursor.txt"] = process.argv.slice(2);
const stop = new AbortController();
process.on("SIGTERM", () => stop.abort());

const cursor = await readFile(file, "utf8").catch(() => "");
const orders = createClient({ url }).topic("orders").consume({
  ...(cursor === "" ? {} : { cursor }),
  signal: stop.signal,
  onRetry: ({ message }) => console.error(message),
  onSkip: ({ reason, details }) => console.error(reason, details),
});
for await (const order of orders) {
  console.log(`${order.partition}/${order.offset} ${String(order.value)}`);
  await writeFile(file, order.cursor);
}
