/** The routes by which the gateway describes itself. */
import * as v from "valibot";
import { answerOf } from "../answer.ts";
import { jsonAnswer } from "../api/answers.ts";
import { route, type RouteDescription } from "../api/route.ts";
import { documentOf } from "../api/document.ts";
import { toUtf8 } from "../../lib/bytes.ts";
import type { HttpRoute } from "../services.ts";
import { DOCS_PAGE, DOCS_POLICY } from "./docs_page.ts";

/** They describe themselves, too. */
export function selfRoutes(
  describedRoutes: () => readonly RouteDescription[],
): readonly HttpRoute[] {
  return [
    route("GET", "/openapi.json", {
      id: "readDocument",
      tag: "system",
      summary: "This document",
      query: null,
      answers: { 200: jsonAnswer("OpenAPI 3.1", v.looseObject({ openapi: v.string() })) },
      handler: ({ status, env }) => {
        let made: Uint8Array | null = null;
        return ({ request }) => {
          made ??= toUtf8(JSON.stringify(documentOf(describedRoutes(), status.version)));
          const headers = { "content-type": "application/json", "cache-control": "no-cache" };
          const chunks = [made][Symbol.iterator]();
          return answerOf(chunks, { request, clock: env.clock, headers, release: () => {} });
        };
      },
    }),
    route("GET", "/docs", {
      id: "readDocs",
      tag: "system",
      summary: "This document for people",
      query: null,
      answers: { 200: { description: "a page", content: { "text/html": null } } },
      handler: () => () =>
        new Response(DOCS_PAGE, {
          headers: {
            "content-type": "text/html; charset=utf-8",
            "content-security-policy": DOCS_POLICY,
            "referrer-policy": "no-referrer",
            "cache-control": "no-cache",
          },
        }),
    }),
  ];
}
