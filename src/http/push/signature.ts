/**
 * Signatures of deliveries: a detached JWS (RFC 7515, appendix F) by Ed25519. What it says of itself stands in its
 * protected header: who it is for, what it delivers and when, so that it serves for nothing else.
 */
import { toBase64Url } from "../../lib/base64.ts";
import { toUtf8 } from "../../lib/bytes.ts";
import { sha256 } from "../../lib/sha256.ts";

/** A private key as it is stored (RFC 8037). */
export interface SigningKey {
  readonly kid: string;
  /** Public part. */
  readonly x: string;
  /** Private part: leaves the metadata only into memory. */
  readonly d: string;
}

export interface Signed {
  /** The handler's URL as it was configured. */
  readonly audience: string;
  readonly subscription: string;
  readonly delivery: string;
  readonly nowMs: number;
}

const ALGORITHM = { name: "Ed25519" } as const;
/** What stands before the 32 bytes of a key in PKCS #8 (RFC 8410). */
const PKCS8_HEAD = [48, 46, 2, 1, 0, 48, 5, 6, 3, 43, 101, 112, 4, 34, 4, 32];
export const SEED_BYTES = 32;

/** RFC 7638: the same key has the same name everywhere. */
function thumbprint(x: string): string {
  return toBase64Url(sha256(toUtf8(JSON.stringify({ crv: "Ed25519", kty: "OKP", x }))));
}

/** The public part follows from the private one, which is any 32 bytes. */
export async function keyFromSeed(seed: Uint8Array): Promise<SigningKey> {
  const pkcs8 = Uint8Array.from([...PKCS8_HEAD, ...seed]);
  const key = await crypto.subtle.importKey("pkcs8", pkcs8, ALGORITHM, true, ["sign"]);
  const { x } = await crypto.subtle.exportKey("jwk", key);
  return { kid: thumbprint(x!), x: x!, d: toBase64Url(seed) };
}

export function publicJwk({ kid, x }: SigningKey): Readonly<Record<string, string>> {
  return { kty: "OKP", crv: "Ed25519", alg: "EdDSA", use: "sig", kid, x };
}

/** A detached JWS of a body. */
export type Sign = (key: SigningKey, body: Uint8Array, signed: Signed) => Promise<string>;

/** Imported once for each key: a delivery costs one signature. */
export class Signer {
  readonly #imported = new Map<string, Promise<CryptoKey>>();

  async sign(key: SigningKey, body: Uint8Array, signed: Signed): Promise<string> {
    const { audience, subscription, delivery, nowMs } = signed;
    const header = toBase64Url(toUtf8(JSON.stringify({
      alg: "EdDSA",
      kid: key.kid,
      iat: Math.floor(nowMs / 1000),
      aud: audience,
      sub: subscription,
      jti: delivery,
    })));
    const text = toUtf8(`${header}.${toBase64Url(body)}`) as Uint8Array<ArrayBuffer>;
    const signature = await crypto.subtle.sign(ALGORITHM, await this.#keyOf(key), text);
    return `${header}..${toBase64Url(new Uint8Array(signature))}`;
  }

  #keyOf({ kid, x, d }: SigningKey): Promise<CryptoKey> {
    const known = this.#imported.get(kid);
    if (known !== undefined) return known;
    const jwk = { kty: "OKP", crv: "Ed25519", x, d };
    const importing = crypto.subtle.importKey("jwk", jwk, ALGORITHM, false, ["sign"]);
    // Keys come and go by the month; whoever signs with an old one imports it again.
    this.#imported.clear();
    this.#imported.set(kid, importing);
    return importing;
  }
}
