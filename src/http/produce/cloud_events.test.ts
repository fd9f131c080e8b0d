import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { utf8 } from "../../lib/bytes.ts";
import { readQuery } from "../api/read_query.ts";
import { recordsOfBody } from "../body.ts";
import type { RecordInput } from "../port.ts";
import { ProblemError } from "../problem.ts";
import { produceQuery } from "./produce.ts";

const REQUIRED = { "ce-specversion": "1.0", "ce-id": "1", "ce-source": "/s", "ce-type": "t" };
const EVENT = { specversion: "1.0", id: "1", source: "/s", type: "t" };

/** Headers as hosts give them: bytes on the wire as Latin-1. */
function records(
  body: string,
  headers: Record<string, string>,
  path = "/",
): readonly RecordInput[] {
  const request = new Request(`http://node${path}`, { method: "POST", headers, body });
  if (!("content-type" in headers)) request.headers.delete("content-type");
  return recordsOfBody(request, readQuery(request, produceQuery), new TextEncoder().encode(body));
}

function shown({ key, value, headers, partition }: RecordInput) {
  return {
    key: key === null ? null : utf8(key),
    value: value === null ? null : utf8(value),
    headers: Object.fromEntries(headers.map(({ name, value: bytes }) => [name, utf8(bytes!)])),
    partition,
  };
}

function refused(body: string, headers: Record<string, string>): void {
  assert.throws(
    () => records(body, headers),
    (error) => error instanceof ProblemError && error.problem.status === 400,
    JSON.stringify([body, headers]),
  );
}

describe("CloudEvents", () => {
  test("binary: attributes are headers on both sides, and the key stays one of them", () => {
    const headers = {
      ...REQUIRED,
      "ce-partitionkey": "k",
      "ce-time": "2026-11-30T12:00:00Z",
      "ce-subject": "caf%C3%A9 %e2%82%ac 100%25",
      "ce-comexample": '"quoted \\"text\\""',
      "content-type": "text/xml; charset=utf-8",
      traceparent: "00-1",
      "x-other": "left out",
    };
    assert.deepEqual(records("<a/>", headers, "/?partition=3").map(shown), [{
      key: "k",
      value: "<a/>",
      headers: {
        ce_specversion: "1.0",
        ce_id: "1",
        ce_source: "/s",
        ce_type: "t",
        ce_partitionkey: "k",
        ce_time: "2026-11-30T12:00:00Z",
        ce_subject: "café € 100%",
        ce_comexample: 'quoted "text"',
        "content-type": "text/xml; charset=utf-8",
        traceparent: "00-1",
      },
      partition: 3,
    }]);
  });

  test("binary without data is a tombstone", () => {
    const [record] = records("", { ...REQUIRED, "ce-partitionkey": "k" });
    assert.equal(record!.value, null);
    assert.equal(record!.headers.some(({ name }) => name === "content-type"), false);
  });

  test("binary wins over JSON, whose envelope it is not", () => {
    const [record] = records('{"a":1}', { ...REQUIRED, "content-type": "application/json" });
    assert.equal(utf8(record!.value!), '{"a":1}');
  });

  test("binary that is no event is refused", () => {
    for (const name of ["ce-id", "ce-source", "ce-type"]) {
      const { [name]: _, ...others } = REQUIRED as Record<string, string>;
      refused("x", others);
      refused("x", { ...others, [name]: "" });
    }
    refused("x", { ...REQUIRED, "ce-specversion": "0.3" });
    refused("x", { ...REQUIRED, "ce-datacontenttype": "a/b" });
    refused("x", { ...REQUIRED, "ce-with-dash": "a" });
    refused("x", { ...REQUIRED, "ce-subject": "%ff" });
  });

  test("structured: the event as it was sent, byte for byte", () => {
    const text = `{ "data": {"n":1.0}, "partitionkey":"k",${JSON.stringify(EVENT).slice(1)} `;
    const type = { "content-type": "application/cloudevents+json; charset=UTF-8" };
    assert.deepEqual(records(text, type).map(shown), [{
      key: "k",
      value: text.trim(),
      headers: { "content-type": "application/cloudevents+json" },
      partition: null,
    }]);
  });

  test("a batch is a record each", () => {
    const type = { "content-type": "application/cloudevents-batch+json" };
    const second = { ...EVENT, id: "2", data_base64: "AA==" };
    const found = records(JSON.stringify([EVENT, second]), type).map(shown);
    assert.deepEqual(found.map(({ value }) => JSON.parse(value!) as unknown), [EVENT, second]);
    assert.deepEqual(found.map(({ key }) => key), [null, null]);
    refused("[]", type);
    refused(JSON.stringify(EVENT), type);
  });

  test("structured that is no event is refused", () => {
    const type = { "content-type": "application/cloudevents+json" };
    refused("[]", type);
    refused("no json", type);
    refused(JSON.stringify({ ...EVENT, specversion: 1 }), type);
    refused(JSON.stringify({ ...EVENT, id: "" }), type);
    refused(JSON.stringify({ ...EVENT, partitionkey: 1 }), type);
    refused(`{"id":"2",${JSON.stringify(EVENT).slice(1)}`, type);
  });
});
