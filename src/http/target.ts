/**
 * What a request asks for: path and query as they stood in its first line. Hosts glue the Host header in
 * front of them, so its text could end up in the path, or without one there would be no URL at all.
 */
import { getPath } from "hono/utils/url";

/** Characters of a name, an address or a port; none that ends a host within a URL. */
const HOST = /^[\w.~!$&'()*+,;=%:[\]-]*$/;
const BASE = "http://localhost";

/** A missing or empty one is fine: health checks of load balancers send none. */
export function isHostSound(request: Request): boolean {
  return HOST.test(request.headers.get("host") ?? "");
}

function onAnyHost({ url }: Request): string {
  const authorityAt = url.startsWith("/") ? 0 : url.indexOf("://") + 3;
  const pathAt = url.indexOf("/", authorityAt);
  return pathAt < 0 ? BASE : `${BASE}${url.slice(pathAt)}`;
}

/** The URL of a request on a host that does not matter. */
export function urlOf(request: Request): URL {
  return new URL(onAnyHost(request));
}

/** What a listener puts before the paths of its requests. */
const prefixes = new WeakMap<Request, string>();

/** From here on the request is for a path below `prefix`. */
export function placeBelow(request: Request, prefix: string): void {
  prefixes.set(request, prefix);
}

/** The path as routes match it. Without a URL object, which costs more than the routing. */
export function pathOf(request: Request): string {
  const path = getPath({ url: onAnyHost(request) } as Request);
  const prefix = prefixes.get(request);
  if (prefix === undefined) return path;
  return path === "/" ? prefix : `${prefix}${path}`;
}

export function hasQuery({ url }: Request): boolean {
  return url.includes("?");
}
