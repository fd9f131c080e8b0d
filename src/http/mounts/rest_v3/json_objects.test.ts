import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createFakeClock } from "../../../../tests/support/fake_clock.ts";
import { toUtf8, utf8 } from "../../../lib/bytes.ts";
import { LineReader } from "../../produce/line_reader.ts";
import { createBodyRooms } from "../../read_body.ts";
import { JsonObjects } from "./json_objects.ts";

function reader(parts: readonly Uint8Array[]): LineReader {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const part of parts) controller.enqueue(part);
      controller.close();
    },
  });
  const init = { method: "POST", body, duplex: "half" } as RequestInit;
  const request = new Request("http://node/", init);
  return new LineReader(request, createBodyRooms(createFakeClock()), new JsonObjects());
}

async function itemsOf(parts: readonly Uint8Array[]): Promise<string[]> {
  const items = reader(parts);
  const found: string[] = [];
  for (;;) {
    const next = await items.next();
    if (typeof next === "string") return found;
    found.push(...next.map((item) => utf8(item)));
  }
}

function cutAt(bytes: Uint8Array, places: readonly number[]): Uint8Array[] {
  const cuts = [...new Set(places.map((place) => place % (bytes.length + 1)))].toSorted((a, b) =>
    a - b
  );
  return [0, ...cuts].map((from, i) => bytes.slice(from, cuts[i] ?? bytes.length))
    .filter((part) => part.length > 0);
}

test("objects are found whatever stands in them, between them, and wherever they are cut", async () => {
  const spaces = fc.array(fc.constantFrom(" ", "\n", "\r", "\t"), { maxLength: 3 })
    .map((all) => all.join(""));
  const objects = fc.array(fc.tuple(fc.dictionary(fc.string(), fc.jsonValue()), spaces), {
    maxLength: 6,
  });
  const odd = fc.constantFrom({ a: '}{"\\' }, { '\\"': "[" }, { x: [{}, "]", { y: "\\\\" }] });
  await fc.assert(
    fc.asyncProperty(objects, odd, fc.array(fc.nat(), { maxLength: 8 }), async (all, one, cuts) => {
      const values = [...all.map(([value]) => value), one];
      const gaps = [...all.map(([, space]) => space), ""];
      const text = values.map((value, i) => JSON.stringify(value) + gaps[i]).join("");
      const items = await itemsOf(cutAt(toUtf8(text), cuts));
      assert.deepEqual(
        items.filter((item) => item !== ""),
        values.map((value) => JSON.stringify(value)),
      );
    }),
  );
});

test("what is no object is an item by itself, and nothing is read behind it", async () => {
  const items = reader([toUtf8('{"a":1}, {"b":2}'), toUtf8("{}")]);
  const first = await items.next();
  assert.ok(typeof first !== "string");
  assert.deepEqual(first.map((item) => utf8(item)), ['{"a":1}', ', {"b":2}']);
  await assert.rejects(() => items.next(), /no JSON object/);
});

test("an object that is not complete comes as it is", async () => {
  assert.deepEqual(await itemsOf([toUtf8('{}{"a":[')]), ["{}", '{"a":[']);
});
