import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { isAddress, parseV4, parseV6, reachOf } from "./ip_address.ts";

test("addresses that are nobody else's are closed, in each of their forms", () => {
  const closed = [
    // Private networks (RFC 1918), shared ones (RFC 6598), link-local ones and metadata services.
    "10.0.0.1",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "100.64.0.1",
    "100.127.255.255",
    "100.100.100.200",
    "169.254.169.254",
    "168.63.129.16",
    "192.0.0.192",
    // This network, benchmarks, documentation, relays, multicast, reserved, broadcast.
    "0.0.0.0",
    "0.1.2.3",
    "198.18.0.1",
    "198.19.255.255",
    "192.0.2.1",
    "198.51.100.1",
    "203.0.113.1",
    "192.88.99.1",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    // Version 6: unspecified, link-local, site-local, unique local, multicast, documentation, tunnels.
    "::",
    "fe80::1",
    "febf::1",
    "fec0::1",
    "fc00::1",
    "fd00:ec2::254",
    "ff02::1",
    "2001:db8::1",
    "3fff::1",
    "2001::1",
    "2001:0:4136:e378:8000:63bf:3fff:fdd2",
    "100::1",
    // Version 4 within version 6: mapped, compatible, NAT64, 6to4.
    "::ffff:10.0.0.1",
    "::ffff:a9fe:a9fe",
    "::10.0.0.1",
    "64:ff9b::169.254.169.254",
    "64:ff9b:1::1",
    "2002:c0a8:101::1",
    "2002:a9fe:a9fe::1",
  ];
  for (const address of closed) assert.equal(reachOf(address), "closed", address);
});

test("loopback is told apart, also within version 6", () => {
  const loopback = ["127.0.0.1", "127.255.255.254", "::1", "0:0:0:0:0:0:0:1", "::ffff:127.0.0.1"];
  for (const address of loopback) assert.equal(reachOf(address), "loopback", address);
});

test("addresses of others are public", () => {
  const open = [
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "11.0.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "100.63.255.255",
    "100.128.0.0",
    "169.253.255.255",
    "223.255.255.255",
    "2606:4700:4700::1111",
    "2a00:1450:4001:829::200e",
    "64:ff9b::8.8.8.8",
    "::ffff:8.8.8.8",
  ];
  for (const address of open) assert.equal(reachOf(address), "public", address);
});

test("what is no address is closed", () => {
  const none = [
    "",
    "example.com",
    "127.1",
    "010.0.0.1",
    "0x7f.0.0.1",
    "2130706433",
    "1.2.3.4.5",
    "256.1.1.1",
    "1.2.3.4 ",
    "fe80::1%eth0",
    "[2606:4700::1]",
    "2606:4700:::1",
    "2606::4700::1",
    "1:2:3:4:5:6:7",
    "1:2:3:4:5:6:7:8:9",
    "1:2:3:4:5:6:7:8::",
    "2606:12345::1",
    "::ffff:1.2.3",
    "::1.2.3.4:5",
  ];
  for (const text of none) {
    assert.equal(reachOf(text), "closed", text);
    assert.equal(isAddress(text), false, text);
  }
});

test("version 6 in full, shortened, and with dots at its end is the same address", () => {
  const group = fc.oneof(fc.constant(0), fc.nat(0xffff));
  fc.assert(
    fc.property(fc.array(group, { minLength: 8, maxLength: 8 }), (groups) => {
      const bytes = groups.flatMap((one) => [one >> 8, one & 0xff]);
      const full = groups.map((one) => one.toString(16)).join(":");
      const shortest = new URL(`http://[${full}]/`).hostname.slice(1, -1);
      const head = full.split(":").slice(0, 6).join(":");
      for (
        const text of [full, full.toUpperCase(), shortest, `${head}:${bytes.slice(12).join(".")}`]
      ) {
        assert.deepEqual(Array.from(parseV6(text) ?? []), bytes, text);
      }
    }),
  );
});

test("version 4 is the same alone and mapped", () => {
  fc.assert(
    fc.property(fc.ipV4(), (text) => {
      assert.deepEqual(parseV6(`::ffff:${text}`)?.subarray(12), parseV4(text));
      assert.equal(reachOf(`::ffff:${text}`), reachOf(text));
      assert.equal(reachOf(`64:ff9b::${text}`), reachOf(text));
    }),
  );
});
