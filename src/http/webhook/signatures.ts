/**
 * Signatures of webhooks, each as its provider makes them: HMAC-SHA-256 over the body, for most behind the time at
 * which it was sent. Comparing is WebCrypto's, which takes the same time wherever two signatures differ.
 */
import { concatBytes, fromHex, toUtf8 } from "../../lib/bytes.ts";
import { WEBHOOK_SIGNATURES_MAX } from "../../lib/limits.ts";
import { fromBase64 } from "../json_record.ts";
import { type Provider, standardKey, type WebhookSettings } from "./settings.ts";

/** Null is accepted; else why not, in words that help nobody to forge one. */
export type Refused = string | null;

interface Claimed {
  /** Any of them may be right. */
  readonly signatures: readonly Uint8Array[];
  /** What is signed before the body. */
  readonly head: string;
  /** Seconds since 1970; null where none is signed. */
  readonly timeS: number | null;
}

const HEX = /^[0-9a-f]{64}$/i;
const TIME = /^\d{1,12}$/;
const ALGORITHM = { name: "HMAC", hash: "SHA-256" } as const;
const NONE: readonly Uint8Array[] = [];

function fromHexOrNone(text: string | undefined): readonly Uint8Array[] {
  return text !== undefined && HEX.test(text) ? [fromHex(text.toLowerCase())] : NONE;
}

function behind(prefix: string, text: string | null): string | undefined {
  return text?.startsWith(prefix) === true ? text.slice(prefix.length) : undefined;
}

function timeOf(text: string | null | undefined): number | null {
  return text != null && TIME.test(text) ? Number(text) : null;
}

function ofGithub(headers: Headers): Claimed {
  const text = behind("sha256=", headers.get("x-hub-signature-256"));
  return { signatures: fromHexOrNone(text), head: "", timeS: null };
}

/** `t=1492774577,v1=...,v1=...,v0=...` */
function ofStripe(headers: Headers): Claimed | null {
  const fields = (headers.get("stripe-signature") ?? "").split(",").map((one) => one.trim());
  const time = fields.map((one) => behind("t=", one)).find((one) => one !== undefined);
  const timeS = timeOf(time);
  if (timeS === null) return null;
  const signatures = fields.flatMap((one) => fromHexOrNone(behind("v1=", one)));
  return { signatures, head: `${time}.`, timeS };
}

function ofSlack(headers: Headers): Claimed | null {
  const time = headers.get("x-slack-request-timestamp");
  const timeS = timeOf(time);
  if (timeS === null) return null;
  const signatures = fromHexOrNone(behind("v0=", headers.get("x-slack-signature")));
  return { signatures, head: `v0:${time}:`, timeS };
}

/** `v1,base64 v1,base64`; other versions are of other keys. */
function ofStandard(headers: Headers): Claimed | null {
  const id = headers.get("webhook-id") ?? "";
  const time = headers.get("webhook-timestamp");
  const timeS = timeOf(time);
  if (id === "" || timeS === null) return null;
  const signatures = (headers.get("webhook-signature") ?? "").split(" ").flatMap((one) => {
    const text = behind("v1,", one);
    return text === undefined ? [] : fromBase64(text) ?? [];
  });
  return { signatures, head: `${id}.${time}.`, timeS };
}

const CLAIMED: Readonly<Record<Provider, (headers: Headers) => Claimed | null>> = {
  github: ofGithub,
  stripe: ofStripe,
  slack: ofSlack,
  standard: ofStandard,
};

function keyBytes(provider: Provider, secret: string): Uint8Array {
  return provider === "standard" ? standardKey(secret)! : toUtf8(secret);
}

async function isSignedBy(
  key: Uint8Array,
  signatures: readonly Uint8Array[],
  message: Uint8Array,
): Promise<boolean> {
  const raw = key as Uint8Array<ArrayBuffer>;
  const imported = await crypto.subtle.importKey("raw", raw, ALGORITHM, false, ["verify"]);
  const checks = signatures.map((signature) =>
    crypto.subtle.verify(
      ALGORITHM,
      imported,
      signature as Uint8Array<ArrayBuffer>,
      message as Uint8Array<ArrayBuffer>,
    )
  );
  return (await Promise.all(checks)).includes(true);
}

export async function refusal(
  { provider, secrets, toleranceS }: WebhookSettings,
  headers: Headers,
  body: Uint8Array,
  nowMs: number,
): Promise<Refused> {
  const claimed = CLAIMED[provider](headers);
  const signatures = claimed?.signatures.slice(0, WEBHOOK_SIGNATURES_MAX) ?? NONE;
  if (claimed === null || signatures.length === 0) return `it has no signature of ${provider}`;
  const message = claimed.head === "" ? body : concatBytes([toUtf8(claimed.head), body]);
  const checks = secrets.map((one) => isSignedBy(keyBytes(provider, one), signatures, message));
  if (!(await Promise.all(checks)).includes(true)) {
    return "its signature is not of a secret that is set";
  }
  const ageS = claimed.timeS === null ? 0 : Math.abs(nowMs / 1000 - claimed.timeS);
  return ageS > toleranceS ? `it was signed more than ${toleranceS} s before or after now` : null;
}
