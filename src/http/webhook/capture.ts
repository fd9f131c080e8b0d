/** POST /webhook/{topic}: a body as it is, with its sender's headers, once its signature is found right. */
import * as v from "valibot";
import { toUtf8 } from "../../lib/bytes.ts";
import { answerProduce } from "../produce/answer_produce.ts";
import { HeldRequest } from "../produce/held_request.ts";
import { key, partition } from "../produce/parameters.ts";
import { bytesOfHeader } from "../header_text.ts";
import { jsonTextOf } from "../record_json.ts";
import type { RecordInput } from "../port.ts";
import { ProblemError } from "../problem.ts";
import { senderHeaders } from "../sender_headers.ts";
import type { HttpServices } from "../services.ts";
import { refusal } from "./signatures.ts";

export const captureQuery = v.strictObject({ key, partition });
type CaptureQuery = v.InferOutput<typeof captureQuery>;

const HANDSHAKE_BYTES_MAX = 4_096;
const handshake = v.object({
  type: v.literal("url_verification"),
  challenge: v.pipe(v.string(), v.maxLength(512)),
});

function notSigned(why: string): ProblemError {
  const detail = `Cannot take the webhook: ${why}`;
  return new ProblemError({ status: 401, title: "Unauthorized", detail });
}

/** What Slack asks an address before it sends anything there; null for all else. */
function challengeIn(body: Uint8Array): string | null {
  const text = body.length > HANDSHAKE_BYTES_MAX ? null : jsonTextOf(body);
  const parsed = text === null ? null : v.safeParse(handshake, JSON.parse(text));
  return parsed?.success === true ? parsed.output.challenge : null;
}

function recordOf({ headers }: Request, query: CaptureQuery, value: Uint8Array): RecordInput {
  const type = headers.get("content-type");
  return {
    key: query.key === undefined ? null : toUtf8(query.key),
    value,
    headers: [
      ...senderHeaders(headers),
      ...(type === null ? [] : [{ name: "content-type", value: bytesOfHeader(type) }]),
    ],
    timestampMs: null,
    partition: query.partition ?? null,
  };
}

export async function capture(
  services: HttpServices,
  request: Request,
  topic: string,
  query: CaptureQuery,
): Promise<Response> {
  const { gateway, webhooks, env: { clock } } = services;
  const held = await HeldRequest.read(services, request);
  const release = () => held.release();
  try {
    const { bytes } = held.body;
    const settings = webhooks.get(topic);
    if (settings !== null) {
      const refused = await refusal(settings, request.headers, bytes, clock.nowMs());
      if (refused !== null) throw notSigned(refused);
      const challenge = settings.provider === "slack" ? challengeIn(bytes) : null;
      if (challenge !== null) {
        release();
        return new Response(challenge, { headers: { "content-type": "text/plain" } });
      }
    }
    const results = await gateway.produce(topic, [recordOf(request, query, bytes)]);
    held.releasePermits();
    return answerProduce({ results, options: {}, request, clock, release });
  } catch (error) {
    release();
    throw error;
  }
}
