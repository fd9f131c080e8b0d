import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { toHex, toUtf8 } from "../../lib/bytes.ts";
import type { Provider } from "./settings.ts";
import { refusal } from "./signatures.ts";

interface Sample {
  readonly provider: Provider;
  readonly secret: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly signedAtS: number;
}

/** From the providers' own documents. */
const SAMPLES: readonly Sample[] = [
  {
    provider: "github",
    secret: "It's a Secret to Everybody",
    headers: {
      "x-hub-signature-256":
        "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
    },
    body: "Hello, World!",
    signedAtS: 0,
  },
  {
    provider: "slack",
    secret: "8f742231b10e8888abcd99yyyzzz85a5",
    headers: {
      "x-slack-request-timestamp": "1531420618",
      "x-slack-signature": "v0=a2114d57b48eac39b9ad189dd8316235a7b4a8d21a10bd27519666489c69b503",
    },
    body: "token=xyzz0WbapA4vBCDEFasx0q6G&team_id=T1DC2JH3J&team_domain=testteamnow" +
      "&channel_id=G8PSS9T3V&channel_name=foobar&user_id=U2CERLKJA&user_name=roadrunner" +
      "&command=%2Fwebhook-collect&text=&response_url=https%3A%2F%2Fhooks.slack.com%2Fcommands" +
      "%2FT1DC2JH3J%2F397700885554%2F96rGlfmibIGlgcZRskXaIFfN" +
      "&trigger_id=398738663015.47445629121.803a0bc887a14d10d2c447fce8b6703c",
    signedAtS: 1531420618,
  },
  {
    provider: "standard",
    secret: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    headers: {
      "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
      "webhook-timestamp": "1614265330",
      "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    },
    body: '{"test": 2432232314}',
    signedAtS: 1614265330,
  },
];

async function hmacHex(secret: string, text: string): Promise<string> {
  const algorithm = { name: "HMAC", hash: "SHA-256" };
  const bytes = new TextEncoder();
  const key = await crypto.subtle.importKey("raw", bytes.encode(secret), algorithm, false, [
    "sign",
  ]);
  return toHex(new Uint8Array(await crypto.subtle.sign("HMAC", key, bytes.encode(text))));
}

function check(
  { provider, headers, body, signedAtS }: Sample,
  secrets: string[],
  { atS = signedAtS, text = body, over = {} }: {
    readonly atS?: number;
    readonly text?: string;
    readonly over?: Readonly<Record<string, string>>;
  } = {},
) {
  const settings = { provider, secrets, toleranceS: 300 };
  return refusal(settings, new Headers({ ...headers, ...over }), toUtf8(text), atS * 1000);
}

test("signatures of the providers' documents are right, with any of the secrets", async () => {
  for (const sample of SAMPLES) {
    assert.equal(await check(sample, [sample.secret]), null, sample.provider);
    const other = sample.provider === "standard" ? "whsec_AAAAAAAAAAAA" : "another secret";
    assert.equal(await check(sample, [other, sample.secret]), null, sample.provider);
    assert.match((await check(sample, [other]))!, /not of a secret/, sample.provider);
  }
});

test("another body has another signature", async () => {
  for (const sample of SAMPLES) {
    const text = `${sample.body} `;
    assert.match((await check(sample, [sample.secret], { text }))!, /not of a secret/);
  }
});

test("a replay is refused once it is old, and so is a time to come", async () => {
  for (const sample of SAMPLES.filter(({ provider }) => provider !== "github")) {
    const at = (s: number) => check(sample, [sample.secret], { atS: sample.signedAtS + s });
    assert.equal(await at(300), null);
    assert.equal(await at(-300), null);
    assert.match((await at(301))!, /more than 300 s/);
    assert.match((await at(-301))!, /more than 300 s/);
  }
});

test("the time is signed too: a newer one is another message", async () => {
  for (const sample of SAMPLES.filter(({ provider }) => provider !== "github")) {
    const atS = sample.signedAtS + 1_000;
    const over = {
      "x-slack-request-timestamp": String(atS),
      "webhook-timestamp": String(atS),
    };
    assert.match((await check(sample, [sample.secret], { atS, over }))!, /not of a secret/);
  }
});

test("Stripe signs the time before the body, once for each secret in use", async () => {
  const body = '{"id":"evt_1"}';
  const signature = await hmacHex("whsec_stripe_secret", `1700000000.${body}`);
  const sample = (header: string): Sample => ({
    provider: "stripe",
    secret: "whsec_stripe_secret",
    headers: { "stripe-signature": header },
    body,
    signedAtS: 1_700_000_000,
  });
  const zeros = "0".repeat(64);
  for (
    const header of [
      `t=1700000000,v1=${signature},v0=${zeros}`,
      `t=1700000000,v1=${zeros},v1=${signature}`,
      `t=1700000000, v1=${signature}`,
    ]
  ) assert.equal(await check(sample(header), ["whsec_stripe_secret"]), null, header);
  for (
    const header of [
      `t=1700000000,v0=${signature}`,
      `v1=${signature}`,
      `t=1700000000`,
      `t=soon,v1=${signature}`,
      `t=1700000001,v1=${signature}`,
      "",
    ]
  ) assert.notEqual(await check(sample(header), ["whsec_stripe_secret"]), null, header);
  const old = await check(sample(`t=1700000000,v1=${signature}`), ["whsec_stripe_secret"], {
    atS: 1_700_000_301,
  });
  assert.match(old!, /more than 300 s/);
});

test("what is missing or misshapen is no signature", async () => {
  const names: Readonly<Record<string, string>> = {
    github: "x-hub-signature-256",
    slack: "x-slack-signature",
    standard: "webhook-signature",
  };
  const texts = fc.oneof(
    fc.constantFrom("", "sha256=", "sha1=00", "v0=", "v1,", "v1,*", "v1,AA==", "sha256=zz"),
    fc.string({ unit: fc.constantFrom(...Array.from("v01=,sha256 abcdef=")) }),
  );
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...SAMPLES), texts, async (sample, text) => {
      const over = { [names[sample.provider]!]: text };
      assert.notEqual(await check(sample, [sample.secret], { over }), null);
    }),
    { numRuns: 200 },
  );
});
