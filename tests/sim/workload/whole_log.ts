/** A whole log, read as clients read it. */
import type { WholeLog } from "../checker/readable.ts";
import { type KafkaClient, NoAnswer } from "../kafka_client.ts";
import type { Context, SimTopic } from "./context.ts";
import { earliestOf, fetchFrom } from "./fetch.ts";

/** From its start to its end; tries until it is answered. */
export async function wholeLog(
  context: Context,
  client: KafkaClient,
  topic: SimTopic,
  partition: number,
): Promise<WholeLog> {
  const { topicId } = topic;
  const records = new Map<number, string>();
  for (let offset = 0;;) {
    try {
      const answer = await fetchFrom(context, client, {
        topicId,
        partition,
        offset,
        maxBytes: 100_000,
        waitMs: 0,
        timeoutMs: 30_000,
      });
      const { logStart, watermark } = answer;
      if (answer.error === "OFFSET_OUT_OF_RANGE") {
        offset = await earliestOf(client, topic.name, partition) ?? offset;
      }
      if (answer.code === 0) {
        for (const one of answer.records) records.set(one.offset, one.value);
        const last = answer.records.at(-1)?.offset;
        if (last === undefined) {
          const list = [...records].map(([at, value]) => ({ offset: at, value }));
          return { logStart, watermark, records: list.filter((one) => one.offset >= logStart) };
        }
        offset = last + 1;
        continue;
      }
    } catch (error) {
      if (!(error instanceof NoAnswer)) throw error;
    }
    await context.world.sleep(100);
  }
}
