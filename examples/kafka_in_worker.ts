/**
 * A Cloudflare Worker with a stock Kafka client, over a WebSocket to the broker. It needs the compatibility flag
 * `nodejs_compat`, and `BROKER` as a variable: `wss://broker.example/v1/kafka`.
 */
import { kafkaOver, roundTrip } from "./kafka_over_websocket.ts";

const worker = {
  async fetch(request: Request, { BROKER }: { readonly BROKER: string }): Promise<Response> {
    const topic = new URL(request.url).pathname.slice(1);
    const value = await request.text();
    return Response.json(await roundTrip(kafkaOver(BROKER), topic, [{ key: "worker", value }]));
  },
};

// What Workers call.
// oxlint-disable-next-line import/no-default-export
export default worker;
