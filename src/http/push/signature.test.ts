import assert from "node:assert/strict";
import { test } from "node:test";
import { createFakeClock } from "../../../tests/support/fake_clock.ts";
import { createMemoryTexts } from "../../../tests/support/memory_texts.ts";
import { testEnv } from "../../../tests/support/test_env.ts";
import { fromHex, toUtf8 } from "../../lib/bytes.ts";
import { PUSH_KEY_MS } from "../../lib/limits.ts";
import { PushKeys } from "./keys.ts";
import { keyFromSeed, publicJwk, Signer } from "./signature.ts";

const SIGNED = { audience: "https://h.example/a", subscription: "s", delivery: "d", nowMs: 1_500 };

function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  const base64 = text.replaceAll("-", "+").replaceAll("_", "/");
  return Uint8Array.from(atob(base64), (char) => char.charCodeAt(0));
}

/** As RFC 7515 has it, without any of our code. */
async function isValid(
  jws: string,
  body: Uint8Array,
  jwk: Readonly<Record<string, string>>,
): Promise<boolean> {
  const [header, payload, signature] = jws.split(".");
  assert.equal(payload, "", "detached");
  const encoded = btoa(String.fromCharCode(...body)).replaceAll("+", "-").replaceAll("/", "_")
    .replaceAll("=", "");
  const key = await crypto.subtle.importKey("jwk", { ...jwk }, "Ed25519", false, ["verify"]);
  const text = new TextEncoder().encode(`${header}.${encoded}`);
  return await crypto.subtle.verify("Ed25519", key, bytesOf(signature!), text);
}

test("the public key and the name of a key are those of the standards", async () => {
  // RFC 8032, section 7.1, test 1; the thumbprint of the same key is in RFC 8037, appendix A.3.
  const seed = fromHex("9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60");
  const key = await keyFromSeed(seed);
  assert.equal(key.x, "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo");
  assert.equal(key.kid, "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k");
  assert.deepEqual(publicJwk(key), {
    kty: "OKP",
    crv: "Ed25519",
    alg: "EdDSA",
    use: "sig",
    kid: key.kid,
    x: key.x,
  });
});

test("a signature holds for its body and its key alone, and says what it is for", async () => {
  const [key, other] = await Promise.all([
    keyFromSeed(new Uint8Array(32).fill(1)),
    keyFromSeed(new Uint8Array(32).fill(2)),
  ]);
  const body = toUtf8("päyload");
  const jws = await new Signer().sign(key, body, SIGNED);
  assert.deepEqual(JSON.parse(new TextDecoder().decode(bytesOf(jws.split(".")[0]!))), {
    alg: "EdDSA",
    kid: key.kid,
    iat: 1,
    aud: "https://h.example/a",
    sub: "s",
    jti: "d",
  });
  assert.equal(await isValid(jws, body, publicJwk(key)), true);
  assert.equal(await isValid(jws, toUtf8("payload"), publicJwk(key)), false);
  assert.equal(await isValid(jws, body, publicJwk(other)), false);
});

test("the next key is public long before it signs, and keys follow each other", async () => {
  const clock = createFakeClock();
  const env = testEnv({ clock });
  const texts = createMemoryTexts();
  const keys = new PushKeys(texts, env);
  assert.deepEqual(keys.jwks(), { keys: [] });
  const first = await keys.current();
  const shown = () => keys.jwks().keys.map(({ kid }) => kid);
  const [, second] = shown();
  assert.equal(shown()[0], first.kid);
  assert.notEqual(second, first.kid);
  await clock.advance(PUSH_KEY_MS - 1);
  assert.equal((await keys.current()).kid, first.kid);
  await clock.advance(1);
  assert.equal((await keys.current()).kid, second);
  assert.equal(shown()[0], second);
  assert.equal(shown().length, 2);
  assert.equal(shown().includes(first.kid), false);
});

test("nodes that make keys at once agree on them, and none shows what is private", async () => {
  const texts = createMemoryTexts();
  const env = testEnv();
  const [a, b] = [new PushKeys(texts, env), new PushKeys(texts, env)];
  const [one, other] = await Promise.all([a.current(), b.current()]);
  assert.equal(one.kid, other.kid);
  assert.deepEqual(a.jwks(), b.jwks());
  assert.doesNotMatch(JSON.stringify(a.jwks()), new RegExp(one.d));
});
