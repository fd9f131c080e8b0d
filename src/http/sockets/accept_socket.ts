/** What a request for a WebSocket has to be, before a host is told to open one. */
import type { Context } from "hono";
import { badRequest, ProblemError, RETRY_AFTER_S } from "../problem.ts";
import type { OpenSockets } from "./open_sockets.ts";
import type { HttpHost, SocketOffer } from "./socket_port.ts";

export interface SocketServices {
  readonly sockets: OpenSockets;
  /** Origins of pages that may open sockets; browsers ask nobody before they do. */
  readonly corsOrigins: readonly string[];
}

const VERSION = "13";

function tokensOf(request: Request, name: string): readonly string[] {
  return (request.headers.get(name) ?? "").split(",").map((token) => token.trim()).filter(Boolean);
}

function upgradeRequired(detail: string): ProblemError {
  return new ProblemError({
    status: 426,
    title: "Upgrade required",
    detail,
    headers: { upgrade: "websocket", "sec-websocket-version": VERSION },
  });
}

function checkHandshake(request: Request): void {
  const upgrades = tokensOf(request, "upgrade").map((token) => token.toLowerCase());
  if (!upgrades.includes("websocket")) {
    throw upgradeRequired("Cannot answer without a WebSocket: this is where one is opened");
  }
  if (request.headers.get("sec-websocket-version") !== VERSION) {
    throw upgradeRequired(`Cannot open a WebSocket of another version than ${VERSION}`);
  }
}

/** A page of any origin can open a socket to whatever its browser reaches, so the server has to look. */
function checkOrigin(request: Request, allowed: readonly string[]): void {
  const origin = request.headers.get("origin");
  if (origin === null || allowed.includes("*") || allowed.includes(origin)) return;
  throw new ProblemError({
    status: 403,
    title: "Origin not allowed",
    detail: "Cannot open a WebSocket for a page of this origin: see skerry.http.cors.origins",
  });
}

/** A client that offers subprotocols expects one of them; one that offers none gets none. */
function chosenProtocol(request: Request, wanted: string): string | null {
  const offered = tokensOf(request, "sec-websocket-protocol");
  if (offered.length === 0) return null;
  if (offered.includes(wanted)) return wanted;
  throw badRequest(`Cannot open a WebSocket: its subprotocol here is ${wanted}`);
}

/** Throws ProblemError where no socket can be opened. What it returns is for the host, not for the client. */
export function acceptSocket(
  c: Context,
  { sockets, corsOrigins }: SocketServices,
  protocol: string,
  open: SocketOffer["open"],
): Response {
  const request = c.req.raw;
  checkHandshake(request);
  checkOrigin(request, corsOrigins);
  const offer = { protocol: chosenProtocol(request, protocol), open };
  const host = (c.env as { readonly host?: HttpHost } | undefined)?.host;
  if (host === undefined) {
    throw new ProblemError({
      status: 501,
      title: "Not implemented",
      detail: "Cannot open a WebSocket: what embeds the broker passes requests only",
    });
  }
  if (!sockets.hasRoom) {
    throw new ProblemError({
      status: 503,
      title: "Too many WebSockets",
      detail: "Cannot open one more: come back later",
      headers: { "retry-after": RETRY_AFTER_S },
    });
  }
  host.upgrade(offer);
  return new Response(null);
}
