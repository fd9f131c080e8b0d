/**
 * What is set for a topic's webhooks: whose signatures they carry, and the secrets, which are never shown again.
 *
 *     key     webhook/TOPIC
 *     value   {"provider", "secrets", "toleranceS"}
 */
import * as v from "valibot";
import {
  WEBHOOK_SECRET_CHARS_MAX,
  WEBHOOK_SECRETS_MAX,
  WEBHOOK_TOLERANCE_S_MAX,
  WEBHOOKS_MAX,
} from "../../lib/limits.ts";
import { WEBHOOK_KEY_PREFIX } from "../../lib/secret_keys.ts";
import { choice, described, integer } from "../api/fields.ts";
import { fromBase64 } from "../json_record.ts";
import { ProblemError } from "../problem.ts";
import type { MetadataTexts } from "../texts.ts";

const PROVIDERS = ["github", "stripe", "slack", "standard"] as const;
export type Provider = (typeof PROVIDERS)[number];

const TOLERANCE_S_DEFAULT = 300;
const STANDARD_PREFIX = "whsec_";

const secret = v.pipe(
  v.string(),
  v.minLength(8, "fewer than 8 characters"),
  v.maxLength(WEBHOOK_SECRET_CHARS_MAX, `more than ${WEBHOOK_SECRET_CHARS_MAX} characters`),
);

/** The key within a secret of Standard Webhooks; null when it is none. */
export function standardKey(text: string): Uint8Array | null {
  const key = fromBase64(
    text.startsWith(STANDARD_PREFIX) ? text.slice(STANDARD_PREFIX.length) : text,
  );
  return key === null || key.length === 0 ? null : key;
}

export const webhookSettings = v.pipe(
  v.strictObject({
    provider: described(
      choice(PROVIDERS),
      "whose signatures are checked; standard is Standard Webhooks",
    ),
    secrets: described(
      v.pipe(
        v.array(secret),
        v.minLength(1, "names no secret"),
        v.maxLength(WEBHOOK_SECRETS_MAX, `more than ${WEBHOOK_SECRETS_MAX} secrets`),
      ),
      "any of them may sign, so that one can follow another; never shown",
    ),
    toleranceS: described(
      v.optional(integer(1, WEBHOOK_TOLERANCE_S_MAX), TOLERANCE_S_DEFAULT),
      "seconds that a signed time may differ from now; GitHub signs none",
    ),
  }),
  v.check(
    ({ provider, secrets }) =>
      provider !== "standard" || secrets.every((one) => standardKey(one) !== null),
    "a secret of Standard Webhooks is base64, behind whsec_ or alone",
  ),
);

export type WebhookSettings = v.InferOutput<typeof webhookSettings>;

export const webhookShown = v.strictObject({
  provider: v.picklist(PROVIDERS),
  secrets: described(integer(1), "how many there are"),
  toleranceS: integer(1),
});

function tooMany(): ProblemError {
  const detail = `Cannot keep settings of webhooks for more than ${WEBHOOKS_MAX} topics`;
  return new ProblemError({ status: 409, title: "Conflict", detail });
}

/** By the topic's name: one that is created again asks for no less than the one before. */
export class Webhooks {
  readonly #texts: MetadataTexts;

  constructor(texts: MetadataTexts) {
    this.#texts = texts;
  }

  get(topic: string): WebhookSettings | null {
    const text = this.#texts.get(`${WEBHOOK_KEY_PREFIX}${topic}`);
    return text === null ? null : v.parse(webhookSettings, JSON.parse(text));
  }

  /** Null takes them back. Throws ProblemError. */
  async put(topic: string, settings: WebhookSettings | null): Promise<void> {
    const key = `${WEBHOOK_KEY_PREFIX}${topic}`;
    const isNew = settings !== null && this.#texts.get(key) === null;
    // Topics need not be there, so nothing else bounds them.
    if (isNew && this.#texts.keys(WEBHOOK_KEY_PREFIX).length >= WEBHOOKS_MAX) throw tooMany();
    const text = settings === null ? null : JSON.stringify(settings);
    await this.#texts.change(key, () => text);
  }
}
