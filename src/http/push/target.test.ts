import assert from "node:assert/strict";
import { test } from "node:test";
import { mayConnectTo, targetOf } from "./target.ts";

const PUBLIC = { isLoopbackAllowed: false };
const LOOPBACK = { isLoopbackAllowed: true };

test("handlers are https URLs of others", () => {
  for (
    const url of ["https://hooks.example/a?b=c", "https://hooks.example:8443/", "https://1.1.1.1/"]
  ) {
    assert.equal(targetOf(url, PUBLIC).ok, true, url);
  }
});

test("addresses of our own network are refused in every spelling", () => {
  const urls = [
    "https://127.0.0.1/",
    "https://127.1/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://0x7f.1/",
    "https://0177.0.0.1/",
    "https://127.0.0.1./",
    "https://①②⑦.0.0.1/",
    "https://localhost/",
    "https://a.localhost/",
    "https://LOCALHOST./",
    "https://0/",
    "https://169.254.169.254/latest/meta-data/",
    "https://0xa9fea9fe/",
    "https://2852039166/",
    "https://0251.0376.0251.0376/",
    "https://192.168.0.1/",
    "https://10.1/",
    "https://100.64.0.1/",
    "https://[::1]/",
    "https://[::]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:a9fe:a9fe]/",
    "https://[0:0:0:0:0:ffff:10.0.0.1]/",
    "https://[64:ff9b::a9fe:a9fe]/",
    "https://[2002:7f00:1::]/",
    "https://[fd00:ec2::254]/",
    "https://[fe80::1]/",
  ];
  for (const url of urls) assert.equal(targetOf(url, PUBLIC).ok, false, url);
});

test("what is no URL of a handler is refused", () => {
  const urls = [
    "",
    "hooks.example",
    "//hooks.example/",
    "http://hooks.example/",
    "ftp://hooks.example/",
    "file:///etc/passwd",
    "data:text/plain,a",
    "javascript:alert(1)",
    "https://user@hooks.example/",
    "https://user:secret@hooks.example/",
    "https://hooks.example/#part",
    `https://hooks.example/${"a".repeat(2_048)}`,
  ];
  for (const url of urls) assert.equal(targetOf(url, LOOPBACK).ok, false, url);
});

test("loopback is taken where the operator allows it, also without TLS; other networks are not", () => {
  for (
    const url of ["http://127.0.0.1:9/", "http://localhost:9/", "http://[::1]:9/", "https://127.1/"]
  ) {
    assert.equal(targetOf(url, LOOPBACK).ok, true, url);
    assert.equal(targetOf(url, PUBLIC).ok, false, url);
  }
  for (const url of ["http://10.0.0.1/", "https://10.0.0.1/", "http://hooks.example/"]) {
    assert.equal(targetOf(url, LOOPBACK).ok, false, url);
  }
});

test("a name that leads inside is refused at the address", () => {
  assert.equal(mayConnectTo("127.0.0.1", PUBLIC), false);
  assert.equal(mayConnectTo("127.0.0.1", LOOPBACK), true);
  assert.equal(mayConnectTo("10.0.0.1", LOOPBACK), false);
  assert.equal(mayConnectTo("8.8.8.8", PUBLIC), true);
});
