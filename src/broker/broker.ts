/**
 * Frame in, answer out: finds the handler, decodes, calls, encodes. What Kafka answers by hanging up
 * is hung up on: unknown keys, refused versions, bodies that do not parse (KIP-511 is the exception).
 */
import { ByteReader, DecodeError } from "../lib/bytes.ts";
import { messageOf } from "../lib/errors.ts";
import type { Env } from "../env/env.ts";
import { readRequest, responseFrame } from "../protocol/api.ts";
import { errorCode, errorName } from "../protocol/error_code.ts";
import { readRequestHeader, type RequestHeader } from "../protocol/header.ts";
import { apiVersionsApi } from "../protocol/message/18_api_versions.ts";
import { apiVersionsHandler } from "./api/18_api_versions.ts";
import { DEFAULT_FEATURES, type FinalizedFeatures } from "./features.ts";
import { CLOSE, type Handler, type RequestContext, type Session } from "./handler.ts";

export type Reply =
  | { readonly kind: "answer"; readonly chunks: readonly Uint8Array[] }
  /** acks=0: the client expects no bytes. */
  | { readonly kind: "none" }
  | { readonly kind: "close"; readonly reason: string };

/** What a connection offers to the handling of one request; see RequestContext. */
export type RequestHooks = Pick<RequestContext, "signal" | "admitted" | "afterAnswer">;

export interface Broker {
  /** Reads the frame before the first await. Never rejects. */
  handle(frame: Uint8Array, session: Session, hooks: RequestHooks): Promise<Reply>;
}

/** A handler bound to bytes; its message types are gone. */
export interface Route {
  readonly key: number;
  readonly name: string;
  readonly min: number;
  readonly max: number;
  /** What ApiVersions lists; below `min` for Produce only. */
  readonly advertisedMin: number;
  /** Throws DecodeError, or what the handler throws. Null sends nothing. */
  respond(
    header: RequestHeader,
    reader: ByteReader,
    context: RequestContext,
    observe: (response: unknown) => void,
  ): Promise<readonly Uint8Array[] | null | typeof CLOSE>;
}

export function bind<Q, S>(handler: Handler<Q, S>): Route {
  const { api, min, max } = handler;
  return {
    key: api.key,
    name: api.name,
    min,
    max,
    advertisedMin: Math.min(min, api.advertisedMin),
    async respond(header, reader, context, observe) {
      const response = await handler.handle(readRequest(api, header, reader), context);
      if (response === null) return null;
      if (response === CLOSE) return CLOSE;
      observe(response);
      return responseFrame(api, header.apiVersion, header.correlationId, response);
    },
  };
}

/** Calls back with every error code of a response; bytes are not looked into. */
function eachError(value: unknown, found: (code: number) => void): void {
  if (Array.isArray(value)) {
    for (const item of value) eachError(item, found);
  } else if (typeof value === "object" && value !== null && !(value instanceof Uint8Array)) {
    for (const [name, field] of Object.entries(value)) {
      if (name === "errorCode" && typeof field === "number" && field !== 0) found(field);
      else if (typeof field === "object" && name !== "records") eachError(field, found);
    }
  }
}

/** A version of ApiVersions that we do not know: its body cannot be parsed, the answer is version 0. */
function downgrade(header: RequestHeader, route: Route): Reply {
  const chunks = responseFrame(apiVersionsApi, 0, header.correlationId, {
    errorCode: errorCode("UNSUPPORTED_VERSION"),
    apiKeys: [{ apiKey: route.key, minVersion: route.min, maxVersion: route.max }],
  });
  return { kind: "answer", chunks };
}

function close(reason: string): Reply {
  return { kind: "close", reason };
}

/** Counts the errors of an API's responses. */
function errorCounter(env: Env, api: string): (response: unknown) => void {
  return (response) =>
    eachError(response, (code) => {
      env.metrics.count("skerry_kafka_errors_total", { api, error: errorName(code) });
    });
}

/** Every API that works is in `routes`, except ApiVersions, which lists them. */
export function createBroker(
  env: Env,
  routes: readonly Route[],
  features: FinalizedFeatures = DEFAULT_FEATURES,
): Broker {
  const byKey = new Map(routes.map((route) => [route.key, route]));
  const apiVersions = bind(apiVersionsHandler(() => [...byKey.values()], features));
  byKey.set(apiVersions.key, apiVersions);

  async function respond(
    route: Route,
    header: RequestHeader,
    reader: ByteReader,
    context: RequestContext,
  ): Promise<Reply> {
    const startMs = env.clock.monotonicMs();
    const api = { api: route.name };
    try {
      const chunks = await route.respond(header, reader, context, errorCounter(env, route.name));
      if (chunks === CLOSE) return close("acks=0 failed");
      return chunks === null ? { kind: "none" } : { kind: "answer", chunks };
    } catch (error) {
      if (error instanceof DecodeError) return close(`${route.name}: ${error.message}`);
      const fields = { ...api, version: header.apiVersion, reason: messageOf(error) };
      env.log.log("error", "request-failed", fields);
      return close("request failed");
    } finally {
      env.metrics.count("skerry_kafka_requests_total", api);
      env.metrics.observe(
        "skerry_kafka_request_seconds",
        (env.clock.monotonicMs() - startMs) / 1000,
        api,
      );
    }
  }

  return {
    async handle(frame, session, hooks) {
      const reader = new ByteReader(frame);
      let header: RequestHeader;
      try {
        header = readRequestHeader(reader);
      } catch (error) {
        return close(messageOf(error));
      }
      const { apiKey, apiVersion: version, clientId } = header;
      const route = byKey.get(apiKey);
      if (route === undefined) return close(`unknown API key ${apiKey}`);
      if (version < route.min || version > route.max) {
        return route === apiVersions
          ? downgrade(header, route)
          : close(`${route.name} version ${version} is not served`);
      }
      return await respond(route, header, reader, { version, clientId, session, ...hooks });
    },
  };
}
