import assert from "node:assert/strict";
import { test } from "node:test";
import { addressText, parseAddresses } from "./address.ts";

test("hosts with and without ports, IPv6 in brackets, several with commas", () => {
  assert.deepEqual(parseAddresses("edge-7"), [{ host: "edge-7", port: 9092 }]);
  assert.deepEqual(parseAddresses("a:1,b:65535"), [{ host: "a", port: 1 }, {
    host: "b",
    port: 65_535,
  }]);
  assert.deepEqual(parseAddresses("[::1]:9093, [fe80::1]"), [
    { host: "::1", port: 9093 },
    { host: "fe80::1", port: 9092 },
  ]);
  for (const text of ["", "a,", "a:", "a:0", "a:65536", "a:b", "::1", "http://a:1", "a b"]) {
    assert.equal(parseAddresses(text), null, text);
  }
});

test("and back to text", () => {
  assert.equal(addressText({ host: "::1", port: 1 }), "[::1]:1");
  assert.equal(addressText({ host: "a", port: 1 }), "a:1");
});
