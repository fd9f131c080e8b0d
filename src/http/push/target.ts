/** Where records may be pushed to. What a name leads to is looked at again whenever a connection is made. */
import { PUSH_URL_CHARS_MAX } from "../../lib/limits.ts";
import { isAddress, reachOf } from "../../lib/ip_address.ts";

export interface TargetRules {
  /** Also without TLS: for handlers beside the broker. */
  readonly isLoopbackAllowed: boolean;
}

export type TargetFound =
  | { readonly ok: true; readonly url: URL }
  | { readonly ok: false; readonly detail: string };

export function mayConnectTo(address: string, { isLoopbackAllowed }: TargetRules): boolean {
  const reach = reachOf(address);
  return reach === "public" || (reach === "loopback" && isLoopbackAllowed);
}

function refuse(detail: string): TargetFound {
  return { ok: false, detail };
}

/** The host of a URL as names and addresses are written elsewhere. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[(.*)\]$/, "$1");
}

function isLoopbackName(host: string): boolean {
  return reachOf(host) === "loopback" || /(^|\.)localhost\.?$/.test(host);
}

/** The URL parser has turned decimal, octal, hexadecimal and short spellings of addresses into one. */
export function targetOf(text: string, rules: TargetRules): TargetFound {
  if (text.length > PUSH_URL_CHARS_MAX) return refuse(`more than ${PUSH_URL_CHARS_MAX} characters`);
  const url = URL.parse(text);
  if (url === null) return refuse("not a URL");
  const host = hostOf(url);
  const isPlain = url.protocol === "http:";
  if (url.protocol !== "https:" && !isPlain) return refuse("not https");
  if (isPlain && !(rules.isLoopbackAllowed && isLoopbackName(host))) {
    return refuse("not https, which only loopback may do without, under skerry.push.loopback");
  }
  if (url.username !== "" || url.password !== "") return refuse("it holds a user or a password");
  if (url.hash !== "") return refuse("it has a fragment, which is never sent");
  const isClosed = isAddress(host) ? !mayConnectTo(host, rules) : isLoopbackName(host) &&
    !rules.isLoopbackAllowed;
  if (isClosed) return refuse("it is not a public address");
  return { ok: true, url };
}
