/** Where clients find an instance again: the host that they asked for, or that their proxy names. */

const HOST = /^[A-Za-z0-9.-]{1,253}(:\d{1,5})?$|^\[[0-9A-Fa-f:.]{2,45}\](:\d{1,5})?$/;
const PREFIX = /^(\/[\w.~-]{1,100}){0,8}$/;
const SCHEMES: ReadonlySet<string> = new Set(["http", "https"]);

/** The outermost proxy's word. */
function first(request: Request, header: string): string {
  return (request.headers.get(header) ?? "").split(",")[0]!.trim();
}

/** Without a slash at its end; `route` is the part of the path behind the mount. */
export function publicUrl(request: Request, route: string): string {
  const { protocol, host, pathname } = new URL(request.url, "http://localhost");
  const scheme = first(request, "x-forwarded-proto").toLowerCase();
  const forwarded = first(request, "x-forwarded-host");
  const prefix = first(request, "x-forwarded-prefix").replace(/\/$/, "");
  const mountAt = pathname.indexOf(route);
  const mount = mountAt < 0 ? "" : pathname.slice(0, mountAt);
  return (SCHEMES.has(scheme) ? scheme : protocol.slice(0, -1)) + "://" +
    (HOST.test(forwarded) ? forwarded : host) + (PREFIX.test(prefix) ? prefix : "") + mount;
}
