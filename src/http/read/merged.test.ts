import assert from "node:assert/strict";
import { test } from "node:test";
import { createHttpTopic } from "../../../tests/support/http_topic.ts";
import { HTTP_CURSOR_PARTITIONS_MAX, HTTP_RECORD_BYTES_MAX } from "../../lib/limits.ts";

interface Page {
  readonly records: readonly { readonly partition: number; readonly value: string }[];
  readonly cursor: string;
  readonly upToDate: boolean;
  readonly partition?: number;
  readonly raw?: string;
}

function rig(partitions: number) {
  const topic = createHttpTopic(partitions);
  const get = async (query: string): Promise<readonly [number, Page]> => {
    const response = await topic.app.request(`/v1/topics/t/records${query}`);
    return [response.status, await response.json() as Page];
  };
  return { topic, get };
}

test("records that were trimmed are told, with a cursor that goes on behind them", async () => {
  const { topic, get } = rig(2);
  topic.append(0, { value: "a" }, { value: "b" }, { value: "c" });
  topic.append(1, { value: "x" }, { value: "y" });
  const [, first] = await get("?limit=1");
  assert.deepEqual(first.records.map(({ value }) => value), ["a"]);
  topic.trim(0, 2);
  const seen: string[] = [];
  const statuses: number[] = [];
  let { cursor } = first;
  for (let i = 0; i < 6; i++) {
    const [status, page] = await get(`?limit=1&cursor=${cursor}`);
    statuses.push(status);
    if (status === 416) assert.equal(page.partition, 0);
    seen.push(...(page.records ?? []).map(({ value }) => value));
    cursor = page.cursor;
    if (page.upToDate) break;
  }
  assert.deepEqual(seen.toSorted(), ["c", "x", "y"]);
  assert.equal(statuses.filter((status) => status === 416).length, 1);
  assert.equal(topic.held, 0);
});

test("a partition that fails for now is left out as long as others have records", async () => {
  const { topic, get } = rig(2);
  topic.append(0, { value: "a" });
  topic.append(1, { value: "x" });
  topic.fail(0, "KAFKA_STORAGE_ERROR");
  const [status, page] = await get("");
  assert.equal(status, 200);
  assert.deepEqual(page.records.map(({ value }) => value), ["x"]);
  assert.equal(page.upToDate, false);
  assert.equal((await get(`?cursor=${page.cursor}`))[0], 503);
  topic.fail(0, null);
  const [, rest] = await get(`?cursor=${page.cursor}`);
  assert.deepEqual(rest.records.map(({ value }) => value), ["a"]);
  assert.equal(topic.held, 0);
});

test("a record that is too large for JSON is a problem of its turn, with a cursor behind it", async () => {
  const { topic, get } = rig(2);
  topic.append(0, { value: new Uint8Array(HTTP_RECORD_BYTES_MAX + 1) }, { value: "b" });
  topic.append(1, { value: "x" });
  const seen: string[] = [];
  let query = "";
  for (let i = 0; i < 5; i++) {
    const [status, page] = await get(query);
    if (status === 422) assert.equal(page.raw, "/v1/topics/t/partitions/0/records/0");
    seen.push(...(page.records ?? []).map(({ value }) => value));
    query = `?cursor=${page.cursor}`;
    if (page.upToDate) break;
  }
  assert.deepEqual(seen.toSorted(), ["b", "x"]);
  assert.equal(topic.held, 0);
});

test("more partitions than a cursor takes have to be named", async () => {
  const { topic, get } = rig(HTTP_CURSOR_PARTITIONS_MAX + 1);
  topic.append(3, { value: "a" });
  assert.equal((await get(""))[0], 400);
  const [status, page] = await get("?partitions=3,5");
  assert.equal(status, 200);
  assert.deepEqual(page.records.map(({ partition }) => partition), [3]);
});

test("what does not divide evenly goes to another partition each time", async () => {
  const { topic, get } = rig(4);
  for (let i = 0; i < 40; i++) topic.append(i % 4, { value: `${i}` });
  const counts = [0, 0, 0, 0];
  let query = "?limit=6";
  for (let i = 0; i < 4; i++) {
    const [, page] = await get(query);
    for (const { partition } of page.records) counts[partition]! += 1;
    query = `?limit=6&cursor=${page.cursor}`;
  }
  assert.deepEqual(counts, [6, 6, 6, 6]);
});

test("a filter passes over what nobody wants, and the cursor with it", async () => {
  const { topic, get } = rig(1);
  topic.append(0, { key: "a", value: "no" }, { key: "b", value: "yes" }, { key: "a", value: "no" });
  const [, page] = await get("?keys=b");
  assert.deepEqual(page.records.map(({ value }) => value), ["yes"]);
  assert.equal(page.upToDate, true);
  topic.append(0, { key: "b", value: "more" });
  const [, rest] = await get(`?keys=b&cursor=${page.cursor}`);
  assert.deepEqual(rest.records.map(({ value }) => value), ["more"]);
});
